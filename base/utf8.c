/* Decides what is UTF-8. ASCII is skipped eight bytes at a time: most texts are nothing else. */
#include "base/utf8.h"

#include <string.h>

static bool is_tail(uint8_t byte) { return (byte & 0xc0) == 0x80; }

size_t hb_utf8_size(const uint8_t *at, size_t left) {
  uint8_t lead = at[0];
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead <= 0xdf) return left >= 2 && is_tail(at[1]) ? 2 : 0;
  if (lead >= 0xe0 && lead <= 0xef) {
    if (left < 3 || !is_tail(at[1]) || !is_tail(at[2])) return 0;
    if (lead == 0xe0 && at[1] < 0xa0) return 0;
    return lead == 0xed && at[1] > 0x9f ? 0 : 3;
  }
  if (lead >= 0xf0 && lead <= 0xf4) {
    if (left < 4 || !is_tail(at[1]) || !is_tail(at[2]) || !is_tail(at[3])) return 0;
    if (lead == 0xf0 && at[1] < 0x90) return 0;
    return lead == 0xf4 && at[1] > 0x8f ? 0 : 4;
  }
  return 0;
}

bool hb_utf8_valid(struct hb_slice text) {
  size_t i = 0;
  while (i < text.size) {
    uint64_t word;
    if (text.size - i >= sizeof word) {
      memcpy(&word, text.data + i, sizeof word);
      if (!(word & UINT64_C(0x8080808080808080))) {
        i += sizeof word;
        continue;
      }
    }
    size_t step = hb_utf8_size(text.data + i, text.size - i);
    if (step == 0) return false;
    i += step;
  }
  return true;
}
