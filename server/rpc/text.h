/* Texts from outside: UTF-8, names of streams, opaque tokens. */
#ifndef HB_SERVER_RPC_TEXT_H
#define HB_SERVER_RPC_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/slice.h"
#include "base/types.h"

/* Well-formed UTF-8 without NUL. *out_at: place of the first byte that is wrong. */
bool hb_text_is_clean(struct hb_slice text, size_t *out_at);
/* As a protobuf string may be: each byte that is wrong is a '?'. For what user code said, which may
 * be anything, and may have been cut within a character. The caller frees it. */
char *hb_text_cleaned(struct hb_slice text);
/* HB_INVALID (STREAM_MISSING, STREAM_NAME_INVALID) naming `field`. `out` has room for
 * HB_STREAM_NAME_MAX + 1 bytes. */
HB_MUST_CHECK enum hb_code hb_text_stream_name(const char *field, struct hb_slice text, char *out,
                                               struct hb_err *err);
/* Opaque bytes as text that a protobuf string may carry, and back. `out` is appended to. */
void hb_text_encode_token(struct hb_slice token, struct hb_buf *out);
HB_MUST_CHECK enum hb_code hb_text_decode_token(struct hb_slice text, struct hb_buf *out,
                                                struct hb_err *err);

#endif
