/* Is it UTF-8? protobuf strings and JSON must be, and protobuf-c does not look. */
#ifndef HB_CLIENT_UTF8_H
#define HB_CLIENT_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Well-formed by Unicode's table 3-7: no overlong forms, no surrogates, nothing above U+10FFFF. */
bool hbc_utf8_valid(const void *text, size_t size);

#endif
