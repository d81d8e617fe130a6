/* Decides nothing: formats messages and looks rows up. */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"

static const struct {
  const char *text;
  const char *reason;
  int grpc_status;
  bool retryable;
  bool fatal;
  int exit_code;
} rows[HB_CODE_COUNT] = {
#define HB_ERR_ROW(name, text, grpc, retry, fatal, exit_code) \
  [name] = {text, &#name[3], grpc, retry, fatal, exit_code},
    HB_ERR_TABLE(HB_ERR_ROW)
#undef HB_ERR_ROW
};

enum hb_code hb_err_set(struct hb_err *err, enum hb_code code, const char *reason,
                        const char *format, ...) {
  HB_ASSERT(code > HB_OK && code < HB_CODE_COUNT);
  if (!err) return code;
  err->code = code;
  err->reason = reason ? reason : rows[code].reason;
  va_list args;
  va_start(args, format);
  (void)vsnprintf(err->message, sizeof err->message, format, args); /* a cut message is fine */
  va_end(args);
  return code;
}

void hb_err_wrap(struct hb_err *err, const char *format, ...) {
  if (!err) return;
  char tail[HB_ERR_MESSAGE_SIZE];
  memcpy(tail, err->message, sizeof tail);
  va_list args;
  va_start(args, format);
  int used = vsnprintf(err->message, sizeof err->message, format, args);
  va_end(args);
  size_t at = used < 0 ? 0 : (size_t)used;
  if (at < sizeof err->message) {
    int room = (int)(sizeof err->message - at) - 3;
    (void)snprintf(err->message + at, sizeof err->message - at, ": %.*s", room > 0 ? room : 0,
                   tail);
  }
}

const char *hb_code_text(enum hb_code code) { return rows[code].text; }
const char *hb_code_reason(enum hb_code code) { return rows[code].reason; }
int hb_code_grpc_status(enum hb_code code) { return rows[code].grpc_status; }
bool hb_code_is_retryable(enum hb_code code) { return rows[code].retryable; }
bool hb_code_is_fatal(enum hb_code code) { return rows[code].fatal; }
int hb_code_exit(enum hb_code code) { return rows[code].exit_code; }
