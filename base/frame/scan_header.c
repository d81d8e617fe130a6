/* Decides what a Header's bytes say, and which names are no text. */
#include "base/frame/scan_event.h"
#include "base/frame/wire_inline.h"
#include "base/utf8.h"

enum { HEADER_NAME = HB_WIRE_TAG(1, HB_WIRE_LEN), HEADER_VALUE = HB_WIRE_TAG(2, HB_WIRE_LEN) };

static enum hb_name_fault check_text(struct hb_slice name, uint64_t *out_place) {
  const uint8_t *end = name.data + name.size;
  for (const uint8_t *at = name.data; at < end;) {
    size_t size = hb_utf8_size(at, (size_t)(end - at));
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
