/* Decides nothing: a codec. */
#include "client/cmd/base64.h"

#include <stdint.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_encode(struct hb_buf *out, struct hb_slice bytes) {
  uint8_t *at = hb_buf_reserve(out, (bytes.size + 2) / 3 * 4);
  uint8_t *start = at;
  for (size_t i = 0; i < bytes.size; i += 3) {
    size_t left = bytes.size - i;
    uint32_t group = (uint32_t)bytes.data[i] << 16;
    if (left > 1) group |= (uint32_t)bytes.data[i + 1] << 8;
    if (left > 2) group |= bytes.data[i + 2];
    *at++ = (uint8_t)alphabet[group >> 18];
    *at++ = (uint8_t)alphabet[group >> 12 & 63];
    *at++ = (uint8_t)(left > 1 ? alphabet[group >> 6 & 63] : '=');
    *at++ = (uint8_t)(left > 2 ? alphabet[group & 63] : '=');
  }
  out->size += (size_t)(at - start);
}

/* -1: not of the alphabet. */
static int value_of(uint8_t c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  return c == '/' ? 63 : -1;
}

/* Characters of the group at `text` that stand for bits: 2, 3 or 4; else 0 and where. */
static size_t group_values(const uint8_t *text, bool is_last, uint32_t *out_bits, size_t *out_at) {
  size_t count = 4;
  if (is_last && text[3] == '=') count = text[2] == '=' ? 2 : 3;
  uint32_t bits = 0;
  for (size_t i = 0; i < count; i++) {
    int value = value_of(text[i]);
    if (value < 0) {
      *out_at = i;
      return 0;
    }
    bits = bits << 6 | (uint32_t)value;
  }
  unsigned unused = count == 2 ? 4 : count == 3 ? 2 : 0;
  if (bits & ((1u << unused) - 1)) {
    *out_at = count - 1;
    return 0;
  }
  *out_bits = bits >> unused;
  return count;
}

bool base64_decode(struct hb_buf *out, struct hb_slice text, size_t *out_at) {
  size_t before = out->size;
  (void)hb_buf_reserve(out, text.size / 4 * 3);
  for (size_t i = 0; i < text.size; i += 4) {
    uint32_t bits = 0;
    size_t at = text.size - i < 4 ? text.size - i : 0; /* cut short: wrong at its end */
    size_t count = at ? 0 : group_values(text.data + i, i + 4 == text.size, &bits, &at);
    if (count == 0) {
      out->size = before;
      *out_at = i + at;
      return false;
    }
    for (size_t left = count - 1; left > 0; left--)
      hb_buf_append_u8(out, (uint8_t)(bits >> 8 * (left - 1)));
  }
  return true;
}
