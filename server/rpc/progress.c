/* Decides when a subscriber is caught up: nothing is released at or above its position. On a
 * stream that has no first event yet there is nothing, so it is caught up too. */
#include "server/rpc/progress.h"

#include "holdback/v1/delivery.pb-c.h"
#include "server/rpc/pb.h"
#include "server/rpc/stream_pb.h"

#define CASE(name, NAME) pb->name##_presence_case = HOLDBACK__V1__PROGRESS__##NAME##_PRESENCE_##NAME

static void put_numbers(const struct hb_progress *progress, Holdback__V1__Progress *pb) {
  const struct hb_frontier *record = &progress->status->record;
  if (record->frozen) {
    CASE(frontier, FRONTIER);
    pb->frontier = record->frontier;
    CASE(complete_to, COMPLETE_TO);
    pb->complete_to = record->complete_to;
    CASE(earliest, EARLIEST);
    pb->earliest = record->earliest;
  }
  if (record->any) {
    CASE(highest, HIGHEST);
    pb->highest = record->highest;
  }
  if (progress->has_position) {
    CASE(next_position, NEXT_POSITION);
    pb->next_position = progress->position;
  }
  pb->held_events = progress->status->held_events;
  pb->caught_up =
      !record->frozen || (progress->has_position && progress->position >= record->frontier);
}

grpc_byte_buffer *hb_progress_encode(const struct hb_progress *progress) {
  const struct hb_stream_status *status = progress->status;
  Holdback__V1__Progress pb = HOLDBACK__V1__PROGRESS__INIT;
  put_numbers(progress, &pb);
  struct hb_gap_pb gap;
  if (status->gaps_count > 0) {
    hb_gap_to_pb(&status->gaps[0], progress->served_ms, &gap);
    pb.blocked_by = &gap.gap;
  }
  Google__Protobuf__Timestamp time = GOOGLE__PROTOBUF__TIMESTAMP__INIT;
  if (status->record.max_event_time.present) {
    time.seconds = status->record.max_event_time.seconds;
    time.nanos = status->record.max_event_time.nanos;
    pb.max_event_time = &time;
  }
  pb.incarnation = (ProtobufCBinaryData){.len = HB_INCARNATION_SIZE,
                                         .data = (uint8_t *)(uintptr_t)progress->incarnation};
  Holdback__V1__SubscribeResponse response = HOLDBACK__V1__SUBSCRIBE_RESPONSE__INIT;
  response.message_case = HOLDBACK__V1__SUBSCRIBE_RESPONSE__MESSAGE_PROGRESS;
  response.progress = &pb;
  return hb_pb_pack(&response.base);
}
