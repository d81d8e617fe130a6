/* Decides which names streams may have. */
#include "base/stream_name.h"

#include "base/types.h"

static bool is_name_byte(uint8_t byte, bool first) {
  if ((byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9')) return true;
  return !first && (byte == '.' || byte == '_' || byte == '-');
}

enum hb_code hb_stream_name_check(const char *field, struct hb_slice name, struct hb_err *err) {
  if (name.size == 0) {
    return hb_err_set(err, HB_INVALID, "STREAM_MISSING", "%s is empty: name a stream", field);
  }
  if (name.size > HB_STREAM_NAME_MAX) {
    return hb_err_set(err, HB_INVALID, "STREAM_NAME_INVALID", "%s has %zu bytes, at most %d", field,
                      name.size, HB_STREAM_NAME_MAX);
  }
  for (size_t i = 0; i < name.size; i++) {
    if (is_name_byte(name.data[i], i == 0)) continue;
    return hb_err_set(err, HB_INVALID, "STREAM_NAME_INVALID",
                      "%s has byte 0x%02x at %zu: a name is [a-z0-9][a-z0-9._-]{0,127}", field,
                      name.data[i], i);
  }
  return HB_OK;
}
