/* A call that asks for a page of gaps, or of keys with gaps. */
#ifndef HB_SERVER_RPC_GAPS_CALL_H
#define HB_SERVER_RPC_GAPS_CALL_H

#include "server/engine/gaps.h"
#include "server/rpc/unary.h"

struct hb_gaps_call {
  struct hb_job_call base; /* first */
  struct hb_gap_request gaps;
  struct hb_buf key;
  struct hb_buf token;
};

/* What both requests have, into the job, which is submitted; or the call is ended. `key`: a key, or
 * a prefix of keys, which the request calls `field`. */
void hb_gaps_call_submit(struct hb_gaps_call *self, const char *stream, const char *field,
                         const ProtobufCBinaryData *key, uint32_t page_size,
                         const char *page_token);
/* next_page_token; the caller frees it. */
char *hb_gaps_call_next_token(const struct hb_gaps_call *self);
/* For hb_method.done. */
void hb_gaps_call_done(struct hb_call *call);

#endif
