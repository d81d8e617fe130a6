/* Answers to batches as messages. */
#ifndef HB_SERVER_RPC_APPEND_ANSWER_H
#define HB_SERVER_RPC_APPEND_ANSWER_H

#include <grpc/grpc.h>
#include <stdint.h>

#include "base/slice.h"
#include "server/engine/engine.h"

/* AppendResponse, AppendStreamResponse. `scratch` is overwritten. The message is the caller's. */
grpc_byte_buffer *hb_append_response(const struct hb_append *append, struct hb_buf *scratch);
grpc_byte_buffer *hb_append_response_stream(const struct hb_append *append, uint64_t ordinal,
                                            struct hb_buf *scratch);

#endif
