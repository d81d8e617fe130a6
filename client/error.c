/* Decides nothing: formats messages. */
#include "client/error.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/assert.h"

int hbc_error_set(struct holdback_error *error, int status, const char *reason, const char *format,
                  ...) {
  HB_ASSERT(status != HOLDBACK_OK);
  if (!error) return status;
  error->status = status;
  (void)snprintf(error->reason, sizeof error->reason, "%s", reason ? reason : "");
  va_list args;
  va_start(args, format);
  (void)vsnprintf(error->message, sizeof error->message, format, args); /* a cut message is fine */
  va_end(args);
  return status;
}

int hbc_error_copy(struct holdback_error *to, const struct holdback_error *from) {
  if (to) *to = *from;
  return from->status;
}
