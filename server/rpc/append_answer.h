/* Answers to batches as messages. */
#ifndef HB_SERVER_RPC_APPEND_ANSWER_H
#define HB_SERVER_RPC_APPEND_ANSWER_H

#include <grpc/grpc.h>
#include <stdint.h>

#include "server/engine/engine.h"
#include "server/rpc/call.h"

/* AppendResponse, AppendStreamResponse. The call's lane has the scratch buffer; the message is the
 * caller's. */
grpc_byte_buffer *hb_append_response(const struct hb_call *call, const struct hb_append *append);
grpc_byte_buffer *hb_append_response_stream(const struct hb_call *call,
                                            const struct hb_append *append, uint64_t ordinal);

#endif
