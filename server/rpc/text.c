/* Decides which texts are accepted from outside. */
#include "server/rpc/text.h"

#include <stdint.h>
#include <string.h>

#include "base/stream_name.h"
#include "base/utf8.h"

bool hb_text_is_clean(struct hb_slice text, size_t *out_at) {
  for (size_t at = 0; at < text.size;) {
    size_t size = text.data[at] ? hb_utf8_size(text.data + at, text.size - at) : 0;
    if (size == 0) {
      *out_at = at;
      return false;
    }
    at += size;
  }
  return true;
}

char *hb_text_cleaned(struct hb_slice text) {
  struct hb_buf out = {0};
  size_t at;
  while (!hb_text_is_clean(text, &at)) {
    hb_buf_append(&out, text.data, at);
    hb_buf_append_u8(&out, '?');
    text = hb_slice_of(text.data + at + 1, text.size - at - 1);
  }
  hb_buf_append(&out, text.data, text.size);
  hb_buf_append_u8(&out, '\0');
  size_t size;
  return (char *)hb_buf_take(&out, &size);
}

enum hb_code hb_text_stream_name(const char *field, struct hb_slice text, char *out,
                                 struct hb_err *err) {
  enum hb_code code = hb_stream_name_check(field, text, err);
  if (code) return code;
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
