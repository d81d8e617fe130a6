/* Instants as RFC 3339 text, nanoseconds exact, years 0001 to 9999. */
#ifndef HB_CLIENT_CMD_RFC3339_H
#define HB_CLIENT_CMD_RFC3339_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RFC3339_SIZE = sizeof "0001-01-01T00:00:00.000000000Z" };

/* In UTC, with 0, 3, 6 or 9 digits of fraction: as many as are needed. The instant is in range. */
void rfc3339_format(int64_t seconds, int32_t nanos, char out[RFC3339_SIZE]);
/* Any offset, up to 9 digits. NULL: fine; else what is wrong, static. */
const char *rfc3339_parse(const char *text, size_t size, int64_t *out_seconds, int32_t *out_nanos);

#endif
