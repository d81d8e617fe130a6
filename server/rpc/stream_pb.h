/* Streams between our structs and the contract's messages. Pure. */
#ifndef HB_SERVER_RPC_STREAM_PB_H
#define HB_SERVER_RPC_STREAM_PB_H

#include "base/err.h"
#include "base/types.h"
#include "google/protobuf/timestamp.pb-c.h"
#include "holdback/v1/event.pb-c.h"
#include "holdback/v1/stream.pb-c.h"

/* A configuration from a request. HB_INVALID naming the field, HB_UNIMPLEMENTED: PER_KEY,
 * retention. Bounds of the limits are the engine's to check. */
HB_MUST_CHECK enum hb_code hb_stream_config_from_pb(const Holdback__V1__StreamConfig *from,
                                                    struct hb_stream_config *out,
                                                    struct hb_err *err);
HB_MUST_CHECK enum hb_code hb_stream_changes_from_pb(const Holdback__V1__UpdateStreamRequest *from,
                                                     struct hb_stream_config *out,
                                                     struct hb_err *err);

/* A message that lies in one struct with its parts, which point into each other: don't copy. */
struct hb_stream_config_pb {
  Holdback__V1__StreamConfig config;
  Holdback__V1__StreamLimits limits;
};
/* `pb` borrows the name from `config`. */
void hb_stream_config_to_pb(const struct hb_stream_config *config, struct hb_stream_config_pb *pb);

struct hb_gap_pb {
  Holdback__V1__Gap gap;
  Google__Protobuf__Timestamp first_seen;
};
/* Ages are counted up to `served_ms`; none where it is not known when the gap was first seen. */
void hb_gap_to_pb(const struct hb_gap *gap, uint64_t served_ms, struct hb_gap_pb *pb);

struct hb_stream_status_pb {
  Holdback__V1__StreamStatus status;
  Google__Protobuf__Timestamp max_event_time;
  struct hb_gap_pb gaps[HB_STATUS_GAPS_MAX];
  Holdback__V1__Gap *gap_list[HB_STATUS_GAPS_MAX];
};
void hb_stream_status_to_pb(const struct hb_stream_status *status, uint64_t served_ms,
                            struct hb_stream_status_pb *pb);

#endif
