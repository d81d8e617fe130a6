/* Decides which code a name means: a built-in, or a shared object in the folder that the operator
 * named. */
#include <dlfcn.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

static enum hb_code not_loadable(struct hb_err *err, const char *reason, const char *path,
                                 const char *why) {
  return hb_err_set(err, HB_PRECONDITION, reason, "%s: %s", path, why);
}

/* What was compiled with another header must not be called. */
static enum hb_code check_code(const struct hbp_processor *code, const char *name, const char *path,
                               struct hb_err *err) {
  if (code->abi_version != HBP_ABI || code->size < sizeof *code) {
    return hb_err_set(err, HB_PRECONDITION, "PROCESSOR_ABI_MISMATCH",
                      "%s: built for version %" PRIu32 " of the interface (%" PRIu32
                      " bytes), this server has %u (%zu bytes)",
                      path, code->abi_version, code->size, HBP_ABI, sizeof *code);
  }
  if (!code->name || strcmp(code->name, name) != 0) {
    return hb_err_set(err, HB_PRECONDITION, "PROCESSOR_NAME_MISMATCH",
                      "%s: it calls itself '%.64s'", path, code->name ? code->name : "");
  }
  if (!code->create || !code->on_event) {
    return not_loadable(err, "PROCESSOR_INCOMPLETE", path, "it has no create or no on_event");
  }
  return HB_OK;
}

static enum hb_code open_library(const char *name, const char *path, struct hb_attached_code *out,
                                 struct hb_err *err) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *why = dlerror();
    return not_loadable(err, "PROCESSOR_NOT_LOADABLE", path, why ? why : "dlopen failed");
  }
  const struct hbp_processor *code = dlsym(library, HBP_SYMBOL);
  enum hb_code result = code ? check_code(code, name, path, err)
                             : not_loadable(err, "PROCESSOR_SYMBOL_MISSING", path,
                                            "it exports no symbol '" HBP_SYMBOL "'");
  if (result != HB_OK) {
    dlclose(library);
    return result;
  }
  *out = (struct hb_attached_code){.code = code, .library = library};
  return HB_OK;
}

/* A name has no '/' in it. *out->code NULL: there is no such file. */
static enum hb_code load(const struct hb_engine *engine, const char *name,
                         struct hb_attached_code *out, struct hb_err *err) {
  if (!engine->processor_dir) return HB_OK;
  char path[PATH_MAX];
  int size = snprintf(path, sizeof path, "%s/%s.so", engine->processor_dir, name);
  if (size < 0 || (size_t)size >= sizeof path || access(path, F_OK) != 0) return HB_OK;
  return open_library(name, path, out, err);
}

static enum hb_code no_code(const struct hb_engine *engine, const char *name, struct hb_err *err) {
  char known[256] = "";
  size_t count;
  const struct hbp_processor *const *all = hb_builtin_all(&count);
  for (size_t i = 0; i < count; i++) {
    size_t used = strlen(known);
    (void)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", all[i]->name);
  }
  return hb_err_set(err, HB_NOT_FOUND, "PROCESSOR_NOT_FOUND",
                    "processor '%s' is not known; built in are %s; %s has none of that name", name,
                    known, engine->processor_dir ? engine->processor_dir : "--processor-dir");
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
  enum hb_code code = attached.code ? HB_OK : load(engine, name, &attached, err);
  if (code != HB_OK) return code;
  if (!attached.code) return no_code(engine, name, err);
  code = make(&attached, parameters, err);
  if (code == HB_OK) {
    *out = attached;
  } else if (attached.library) {
    dlclose(attached.library);
  }
  return code;
}

void hb_attached_code_done(struct hb_attached_code *attached) {
  if (attached->code && attached->code->destroy) attached->code->destroy(attached->self);
  if (attached->library) dlclose(attached->library);
  *attached = (struct hb_attached_code){0};
}
