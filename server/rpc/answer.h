/* The answer to a batch: AppendResult, written by hand from the decisions. Pure. */
#ifndef HB_SERVER_RPC_ANSWER_H
#define HB_SERVER_RPC_ANSWER_H

#include "base/slice.h"
#include "server/engine/engine.h"

/* AppendResult appended to `out`: never over 2 MiB, for a batch has at most 65,536 events.
 * The batch was answered without an error; `incarnation` is its stream's. */
void hb_answer_encode(const struct hb_append *append, const uint8_t *incarnation,
                      struct hb_buf *out);

#endif
