/* Is it UTF-8? protobuf strings and JSON must be, and neither gRPC nor protobuf-c looks. */
#ifndef HB_BASE_UTF8_H
#define HB_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

/* Bytes of the character at `at`, 1 to 4; 0 where the `left` > 0 bytes do not begin with one.
 * Well-formed by Unicode's table 3-7: no overlong forms, no surrogates, nothing above U+10FFFF. */
size_t hb_utf8_size(const uint8_t *at, size_t left);
bool hb_utf8_valid(struct hb_slice text);

#endif
