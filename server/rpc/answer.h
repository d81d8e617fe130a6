/* The answer to a batch: AppendResult, written by hand from the decisions. Pure. */
#ifndef HB_SERVER_RPC_ANSWER_H
#define HB_SERVER_RPC_ANSWER_H

#include <stdbool.h>

#include "base/slice.h"
#include "server/engine/engine.h"

/* The stream of the batch, and what is named where a limit refused. */
struct hb_answer_stream {
  const uint8_t *incarnation;     /* HB_INCARNATION_SIZE bytes */
  struct hb_stream_limits limits; /* in force */
  uint64_t held_index_max;        /* the server's */
  bool per_key;                   /* the stream's mode */
};

/* AppendResult appended to `out`: never over 2 MiB, for a batch has at most 65,536 events.
 * The batch was answered without an error. */
void hb_answer_encode(const struct hb_append *append, const struct hb_answer_stream *stream,
                      struct hb_buf *out);

#endif
