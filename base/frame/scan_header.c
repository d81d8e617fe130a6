/* Decides what a Header's bytes say, and which names are no text. */
#include "base/frame/scan_event.h"
#include "base/frame/wire_inline.h"

enum { HEADER_NAME = HB_WIRE_TAG(1, HB_WIRE_LEN), HEADER_VALUE = HB_WIRE_TAG(2, HB_WIRE_LEN) };

/* Bytes of the UTF-8 character at the start of [at, end): 1 to 4; 0 where it is none (cut,
 * overlong, a surrogate, above U+10FFFF). */
static size_t utf8_size(const uint8_t *at, const uint8_t *end) {
  static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
  uint8_t lead = *at;
  if (lead < 0x80) return 1;
  size_t size = lead >= 0xf8 ? 0 : lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 0;
  if (!size || size > (size_t)(end - at)) return 0;
  uint32_t point = lead & (0x7fu >> size);
  for (size_t i = 1; i < size; i++) {
    if ((at[i] & 0xc0) != 0x80) return 0;
    point = point << 6 | (at[i] & 0x3f);
  }
  bool surrogate = point >= 0xd800 && point <= 0xdfff;
  return point < least[size] || surrogate || point > 0x10ffff ? 0 : size;
}

static enum hb_name_fault check_text(struct hb_slice name, uint64_t *out_place) {
  const uint8_t *end = name.data + name.size;
  for (const uint8_t *at = name.data; at < end;) {
    size_t size = utf8_size(at, end);
    if (size && *at) {
      at += size;
      continue;
    }
    *out_place = (uint64_t)(at - name.data);
    return size ? HB_NAME_HAS_NUL : HB_NAME_NOT_UTF8;
  }
  return HB_NAME_OK;
}

static void note_fault(struct hb_headers_seen *seen, enum hb_name_fault fault, uint64_t value) {
  if (seen->fault) return;
  seen->fault = fault;
  seen->fault_index = seen->count;
  seen->fault_value = value;
}

bool hb_scan_header(struct hb_slice header, uint64_t name_bytes_max, struct hb_headers_seen *seen) {
  const uint8_t *at = header.data;
  const uint8_t *end = at + header.size;
  struct hb_slice name = {0};
  struct hb_slice value = {0};
  while (at < end) {
    uint32_t tag;
    at = hb_wire_read_tag(at, end, &tag);
    if (!at) return false;
    if (tag == HEADER_NAME) {
      at = hb_wire_read_bytes(at, end, &name);
      if (!at) return false;
      /* Also of a name that a later one replaces: a subscriber's decoder refuses either. */
      uint64_t place = 0;
      enum hb_name_fault fault = check_text(name, &place);
      if (fault) note_fault(seen, fault, place);
    } else {
      at = tag == HEADER_VALUE ? hb_wire_read_bytes(at, end, &value) : hb_wire_skip(at, end, tag);
      if (!at) return false;
    }
  }
  if (name.size > name_bytes_max) note_fault(seen, HB_NAME_TOO_LONG, name.size);
  seen->count++;
  seen->bytes += name.size + value.size;
  return true;
}
