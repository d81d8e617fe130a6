/* Decides which texts are accepted from outside. */
#include "server/rpc/text.h"

#include <stdint.h>
#include <string.h>

/* Bytes of the UTF-8 character at `at`; 0 where there is none (overlong, surrogate, NUL, cut). */
static size_t character_size(const uint8_t *at, size_t left) {
  uint8_t first = at[0];
  if (first < 0x80) return first ? 1 : 0;
  size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || left < size) return 0;
  for (size_t i = 1; i < size; i++) {
    if ((at[i] & 0xc0) != 0x80) return 0;
  }
  bool bad = (first == 0xe0 && at[1] < 0xa0) || (first == 0xed && at[1] > 0x9f) ||
             (first == 0xf0 && at[1] < 0x90) || (first == 0xf4 && at[1] > 0x8f);
  return bad ? 0 : size;
}

bool hb_text_is_clean(struct hb_slice text, size_t *out_at) {
  for (size_t at = 0; at < text.size;) {
    size_t size = character_size(text.data + at, text.size - at);
    if (size == 0) {
      *out_at = at;
      return false;
    }
    at += size;
  }
  return true;
}

static bool is_name_byte(uint8_t byte, bool first) {
  if ((byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9')) return true;
  return !first && (byte == '.' || byte == '_' || byte == '-');
}

enum hb_code hb_text_stream_name(const char *field, struct hb_slice text, char *out,
                                 struct hb_err *err) {
  if (text.size == 0) {
    return hb_err_set(err, HB_INVALID, "STREAM_MISSING", "%s is empty: name a stream", field);
  }
  if (text.size > HB_STREAM_NAME_MAX) {
    return hb_err_set(err, HB_INVALID, "STREAM_NAME_INVALID", "%s has %zu bytes, at most %d", field,
                      text.size, HB_STREAM_NAME_MAX);
  }
  for (size_t i = 0; i < text.size; i++) {
    if (is_name_byte(text.data[i], i == 0)) continue;
    return hb_err_set(err, HB_INVALID, "STREAM_NAME_INVALID",
                      "%s has byte 0x%02x at %zu: a name is [a-z0-9][a-z0-9._-]{0,127}", field,
                      text.data[i], i);
  }
  memcpy(out, text.data, text.size);
  out[text.size] = '\0';
  return HB_OK;
}

void hb_text_encode_token(struct hb_slice token, struct hb_buf *out) {
  static const char digits[] = "0123456789abcdef";
  for (size_t i = 0; i < token.size; i++) {
    hb_buf_append_u8(out, (uint8_t)digits[token.data[i] >> 4]);
    hb_buf_append_u8(out, (uint8_t)digits[token.data[i] & 15]);
  }
}

static int digit_value(uint8_t digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  return -1;
}

enum hb_code hb_text_decode_token(struct hb_slice text, struct hb_buf *out, struct hb_err *err) {
  size_t before = out->size;
  bool good = text.size % 2 == 0;
  for (size_t i = 0; good && i < text.size; i += 2) {
    int high = digit_value(text.data[i]);
    int low = digit_value(text.data[i + 1]);
    good = high >= 0 && low >= 0;
    if (good) hb_buf_append_u8(out, (uint8_t)(high << 4 | low));
  }
  if (good) return HB_OK;
  out->size = before;
  return hb_err_set(err, HB_INVALID, "PAGE_TOKEN_INVALID",
                    "page_token is not one that this server gave: %zu bytes", text.size);
}
