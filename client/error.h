/* Filling struct holdback_error: the one way in which this library tells what went wrong. */
#ifndef HB_CLIENT_ERROR_H
#define HB_CLIENT_ERROR_H

#include <stdbool.h>

#include "base/err.h"
#include "client/holdback.h"

/* Fill `error` (may be NULL) and return `status`. `reason` NULL = none. */
int hbc_error_set(struct holdback_error *error, int status, const char *reason, const char *format,
                  ...) __attribute__((format(printf, 4, 5)));
/* Copy to `to` (may be NULL); returns the status. */
int hbc_error_copy(struct holdback_error *to, const struct holdback_error *from);

#endif
