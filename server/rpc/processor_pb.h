/* Processors between our structs and the contract's messages. Pure. */
#ifndef HB_SERVER_RPC_PROCESSOR_PB_H
#define HB_SERVER_RPC_PROCESSOR_PB_H

#include "base/err.h"
#include "base/slice.h"
#include "google/protobuf/timestamp.pb-c.h"
#include "holdback/v1/processor.pb-c.h"
#include "server/engine/processors.h"

/* What to attach. The parameters are put into `parameters`, which the request then looks at.
 * HB_INVALID naming the field. */
HB_MUST_CHECK enum hb_code hb_processor_request_from_pb(
    const Holdback__V1__AttachProcessorRequest *from, struct hb_buf *parameters,
    struct hb_processor_request *out, struct hb_err *err);
/* A processor's name in a request, as field `name`. `out` has HB_PROCESSOR_NAME_MAX + 1 bytes. */
HB_MUST_CHECK enum hb_code hb_processor_name_from_pb(const char *field, const char *from, char *out,
                                                     struct hb_err *err);

/* A message that lies in one struct with its parts, which point into each other: don't copy. */
struct hb_processor_info_pb {
  Holdback__V1__ProcessorInfo info;
  Holdback__V1__ProcessorConfig config;
  Holdback__V1__ProcessorStatus status;
  Google__Protobuf__Timestamp watermark;
  Holdback__V1__ProcessorParameter *parameters; /* owned */
  Holdback__V1__ProcessorParameter **list;      /* owned */
  char *why;                                    /* owned, as is failure; NULL: none */
  char *failure;
};
/* `pb` borrows from `info`. */
void hb_processor_info_to_pb(const struct hb_processor_info *info, struct hb_processor_info_pb *pb);
void hb_processor_info_pb_done(struct hb_processor_info_pb *pb);

#endif
