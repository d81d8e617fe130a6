/* A SubscribeRequest, checked. Pure. */
#ifndef HB_SERVER_RPC_SUBSCRIBE_REQUEST_H
#define HB_SERVER_RPC_SUBSCRIBE_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/limits.h"
#include "base/types.h"
#include "holdback/v1/delivery.pb-c.h"
#include "server/rpc/filter.h"
#include "storage/processor_rows.h"

enum hb_start { HB_START_EARLIEST, HB_START_NOW, HB_START_POSITION, HB_START_TIME };

struct hb_subscribe_request {
  char stream[HB_STREAM_NAME_MAX + 1];
  char processor[HB_PROCESSOR_NAME_MAX + 1]; /* "": events; else that processor's results */
  bool key_statuses;                         /* or its statuses */
  enum hb_start start;
  int64_t position;
  struct hb_time time;
  uint64_t progress_interval_ms;
  struct hb_filter filter;
};

/* HB_INVALID naming the field. */
HB_MUST_CHECK enum hb_code hb_subscribe_request_from_pb(const Holdback__V1__SubscribeRequest *from,
                                                        const struct hb_limits *limits,
                                                        struct hb_subscribe_request *out,
                                                        struct hb_err *err);
void hb_subscribe_request_done(struct hb_subscribe_request *request);

#endif
