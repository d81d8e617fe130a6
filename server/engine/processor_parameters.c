/* Parameters of a processor as bytes: for each name's size u16, name, NUL (so that it is text in
 * place), value's size u32, value. Decides which bytes are none. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/endian.h"
#include "processing/holdback/processor.h"
#include "server/engine/processors.h"

void hb_parameters_append(struct hb_buf *out, const char *name, struct hb_slice value) {
  size_t size = strlen(name);
  uint8_t *at = hb_buf_reserve(out, 7 + size);
  at[0] = (uint8_t)size;
  at[1] = (uint8_t)(size >> 8);
  memcpy(at + 2, name, size + 1);
  hb_put_u32_le(at + 3 + size, (uint32_t)value.size);
  out->size += 7 + size;
  hb_buf_append(out, value.data, value.size);
}

static bool take(struct hb_slice *rest, struct hbp_parameter *out) {
  if (rest->size < 7) return false;
  size_t size = (size_t)(rest->data[0] | rest->data[1] << 8);
  if (rest->size - 7 < size || rest->data[2 + size] != 0) return false;
  size_t value = hb_get_u32_le(rest->data + 3 + size);
  if (rest->size - 7 - size < value) return false;
  out->name = (const char *)rest->data + 2;
  out->value = (struct hbp_bytes){rest->data + 7 + size, value};
  *rest = hb_slice_of(rest->data + 7 + size + value, rest->size - 7 - size - value);
  return true;
}

enum hb_code hb_parameters_decode(struct hb_slice bytes, struct hbp_parameter **out,
                                  size_t *out_count, struct hb_err *err) {
  struct hbp_parameter *parameters = NULL;
  size_t count = 0;
  size_t cap = 0;
  while (bytes.size > 0) {
    hb_reserve((void **)&parameters, &cap, count + 1, sizeof *parameters);
    if (take(&bytes, &parameters[count++])) continue;
    free(parameters);
    return hb_err_set(err, HB_CORRUPT, NULL, "parameters of a processor are damaged");
  }
  *out = parameters;
  *out_count = count;
  return HB_OK;
}
