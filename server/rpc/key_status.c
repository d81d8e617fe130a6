/* Decides whose statuses can be asked for, and how one looks in the contract. */
#include "server/rpc/key_status.h"

#include "server/engine/processors.h"
#include "server/rpc/lane.h"

enum hb_code hb_err_key_status_off(const char *processor, struct hb_err *err) {
  return hb_err_set(err, HB_PRECONDITION, "KEY_STATUS_OFF",
                    "processor '%.64s' was attached without what is asked for: see key_status",
                    processor);
}

uint64_t hb_processor_id_for_statuses(struct hb_call *call, struct hb_stream *stream,
                                      const char *name) {
  struct hb_processor_info info;
  struct hb_err err;
  uint64_t id = 0;
  if (!hb_engine_get_processor(call->rpc->engine, stream, name, &info)) {
    hb_err_set(&err, HB_NOT_FOUND, "PROCESSOR_NOT_FOUND", "the stream has no processor '%.64s'",
               name);
  } else {
    if (info.key_status == HB_KEY_STATUS_OFF) {
      (void)hb_err_key_status_off(name, &err);
    } else {
      id = info.id;
    }
    hb_processor_info_done(&info);
  }
  if (!id) hb_call_end(call, &err);
  return id;
}

void hb_key_standing_to_pb(const struct hb_key_standing *standing, struct hb_slice key,
                           Holdback__V1__KeyStatus *pb) {
  const struct hb_key_status *status = &standing->status;
  holdback__v1__key_status__init(pb);
  pb->key = (ProtobufCBinaryData){.len = key.size, .data = (uint8_t *)(uintptr_t)key.data};
  if (status->any) {
    pb->last_processed_presence_case =
        HOLDBACK__V1__KEY_STATUS__LAST_PROCESSED_PRESENCE_LAST_PROCESSED;
    pb->last_processed = status->last_processed;
  }
  pb->processed = status->processed;
  pb->failed = status->failed;
  pb->results = status->results;
  pb->duplicates = status->duplicates;
  pb->rejected = status->rejected;
  pb->last_received = status->last_received;
  pb->waiting_presence_case = HOLDBACK__V1__KEY_STATUS__WAITING_PRESENCE_WAITING;
  pb->waiting = standing->waiting;
  pb->received = status->processed + status->failed + status->duplicates + status->rejected +
                 standing->waiting;
  if (standing->blocked) {
    pb->blocked_at_presence_case = HOLDBACK__V1__KEY_STATUS__BLOCKED_AT_PRESENCE_BLOCKED_AT;
    pb->blocked_at = standing->blocked_at;
  }
  if (!standing->waiting) return;
  pb->earliest_waiting_presence_case =
      HOLDBACK__V1__KEY_STATUS__EARLIEST_WAITING_PRESENCE_EARLIEST_WAITING;
  pb->earliest_waiting = standing->earliest;
  pb->latest_waiting_presence_case =
      HOLDBACK__V1__KEY_STATUS__LATEST_WAITING_PRESENCE_LATEST_WAITING;
  pb->latest_waiting = standing->latest;
}
