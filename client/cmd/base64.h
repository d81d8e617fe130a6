/* Base64 (RFC 4648, section 4) for what JSON strings can't hold. */
#ifndef HB_CLIENT_CMD_BASE64_H
#define HB_CLIENT_CMD_BASE64_H

#include <stdbool.h>

#include "base/slice.h"

/* Append `bytes` encoded, with padding. */
void base64_encode(struct hb_buf *out, struct hb_slice bytes);
/* Append what `text` stands for. Strict: padding where it belongs, no other characters, no bits
 * lost in the last one. False: *out_at is where it goes wrong, and `out` is as it was. */
bool base64_decode(struct hb_buf *out, struct hb_slice text, size_t *out_at);

#endif
