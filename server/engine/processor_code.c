/* Decides which code a name means: a built-in, or a shared object in the folder that the operator
 * named. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/endian.h"
#include "processing/builtin.h"
#include "server/engine/engine_internal.h"

bool hb_processor_name_is_valid(const char *name) {
  size_t size = strnlen(name, HB_PROCESSOR_NAME_MAX + 1);
  if (size == 0 || size > HB_PROCESSOR_NAME_MAX) return false;
  for (size_t i = 0; i < size; i++) {
    bool plain = (name[i] >= 'a' && name[i] <= 'z') || (name[i] >= '0' && name[i] <= '9');
    if (!plain && (i == 0 || !strchr("._-", name[i]))) return false;
  }
  return true;
}

/* ---- parameters: name's size u16, name, NUL (so that it is text in place), value's size u32 */

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

/* ---- code */

static const struct hbp_processor *find(struct hb_engine *engine, const char *name) {
  const struct hbp_processor *code = NULL;
  if (engine->tuning.find_processor) code = engine->tuning.find_processor(name);
  return code ? code : hb_builtin_find(name);
}

static enum hb_code no_code(const char *name, struct hb_err *err) {
  char known[256] = "";
  size_t count;
  const struct hbp_processor *const *all = hb_builtin_all(&count);
  for (size_t i = 0; i < count; i++) {
    size_t used = strlen(known);
    (void)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", all[i]->name);
  }
  return hb_err_set(err, HB_NOT_FOUND, "PROCESSOR_NOT_FOUND",
                    "processor '%s' is not known; built in are %s", name, known);
}

static enum hb_code make(struct hb_attached_code *attached, struct hb_slice parameters,
                         struct hb_err *err) {
  struct hbp_parameter *array = NULL;
  size_t count = 0;
  enum hb_code code = hb_parameters_decode(parameters, &array, &count, err);
  if (code != HB_OK) return code;
  char error[256] = "";
  if (attached->code->create(array, count, &attached->self, error, sizeof error) != HBP_OK) {
    error[sizeof error - 1] = '\0';
    code = hb_err_set(err, HB_INVALID, "PROCESSOR_PARAMETERS_INVALID", "processor '%s': %s",
                      attached->code->name, error[0] ? error : "create failed without a reason");
  }
  free(array);
  return code;
}

enum hb_code hb_attached_code_find(struct hb_engine *engine, const char *name,
                                   struct hb_slice parameters, struct hb_attached_code *out,
                                   struct hb_err *err) {
  struct hb_attached_code attached = {.code = find(engine, name)};
  if (!attached.code) return no_code(name, err);
  enum hb_code code = make(&attached, parameters, err);
  if (code == HB_OK) *out = attached;
  return code;
}

void hb_attached_code_done(struct hb_attached_code *attached) {
  if (attached->code && attached->code->destroy) attached->code->destroy(attached->self);
  *attached = (struct hb_attached_code){0};
}
