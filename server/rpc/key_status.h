/* What the methods that tell statuses by key share. */
#ifndef HB_SERVER_RPC_KEY_STATUS_H
#define HB_SERVER_RPC_KEY_STATUS_H

#include <stdint.h>

#include "base/err.h"
#include "base/slice.h"
#include "holdback/v1/delivery.pb-c.h"
#include "server/engine/reads.h"
#include "server/rpc/call.h"

/* The number of the stream's processor of that name, which keeps statuses; 0: the call was ended.
 */
uint64_t hb_processor_id_for_statuses(struct hb_call *call, struct hb_stream *stream,
                                      const char *name);
enum hb_code hb_err_key_status_off(const char *processor, struct hb_err *err);
/* `pb` is valid as long as `key`. */
void hb_key_standing_to_pb(const struct hb_key_standing *standing, struct hb_slice key,
                           Holdback__V1__KeyStatus *pb);

#endif
