/* Decides which code a name means: a built-in, or a shared object in the folder that the operator
 * named. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
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
