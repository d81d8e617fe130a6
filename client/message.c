/* Decides what a SubscribeResponse says.
 *
 * One pass over the fields of a Batch finds its numbers, which may stand before or after the
 * frames, and checks that every frame lies inside; an event itself is read when it is asked for.
 * What is rare (Progress, Void) is unpacked by protobuf-c. */
#include "client/message.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/frame/wire.h"
#include "client/bytebuf.h"
#include "holdback/v1/delivery.pb-c.h"

enum {
  RESPONSE_BATCH = 1,
  RESPONSE_PROGRESS = 2,
  RESPONSE_VOID = 3,
  RESPONSE_END = 4,
  RESPONSE_RESULTS = 5,
  RESPONSE_STATUSES = 6
};
enum { RESULT_CAUSE = 9, RESULT_KIND = 10 };
/* Of a Batch; a ResultBatch is alike. */
enum { BATCH_EVENTS = 1, BATCH_FIRST_POSITION = 2, BATCH_POSITIONS = 3, BATCH_NEXT_POSITION = 4 };

struct holdback_message *hbc_message_create(grpc_byte_buffer *owned) {
  struct holdback_message *message = hb_calloc(1, sizeof *message);
  message->size = grpc_byte_buffer_length(owned);
  message->received = owned;
  message->bytes = grpc_empty_slice();
  return message;
}

void hbc_message_destroy(struct holdback_message *message) {
  if (!message) return;
  if (message->received) grpc_byte_buffer_destroy(message->received);
  grpc_slice_unref(message->bytes);
  free(message->positions);
  if (message->scratch) hbc_headers_done(&message->scratch->headers);
  free(message->scratch);
  free(message);
}

/* ---- decoding */

static void add_position(struct holdback_message *message, uint64_t value) {
  hb_reserve((void **)&message->positions, &message->positions_cap, message->positions_count + 1,
             sizeof *message->positions);
  message->positions[message->positions_count++] = (int64_t)value;
}

/* Packed: varints one after another. */
static bool take_positions(struct holdback_message *message, struct hb_slice packed) {
  uint64_t value = 0;
  unsigned shift = 0;
  for (size_t i = 0; i < packed.size; i++) {
    if (shift > 63) return false;
    value |= (uint64_t)(packed.data[i] & 0x7f) << shift;
    shift += 7;
    if (packed.data[i] & 0x80) continue;
    add_position(message, value);
    value = 0;
    shift = 0;
  }
  return shift == 0;
}

static bool decode_batch(struct holdback_message *message, struct hb_slice bytes) {
  struct hb_wire_reader reader = {bytes.data, hb_slice_end(bytes)};
  struct hb_wire_field field;
  enum hb_wire_result result;
  size_t events = 0;
  while ((result = hb_wire_next(&reader, &field)) == HB_WIRE_FIELD) {
    if (field.type == HB_WIRE_LEN) {
      if (field.number == BATCH_EVENTS) events++;
      if (field.number == BATCH_POSITIONS && !take_positions(message, field.bytes)) return false;
    } else if (field.type == HB_WIRE_VARINT) {
      if (field.number == BATCH_FIRST_POSITION)
        message->first_position = (int64_t)field.number_value;
      if (field.number == BATCH_POSITIONS) add_position(message, field.number_value);
      if (field.number == BATCH_NEXT_POSITION) message->next_position = (int64_t)field.number_value;
    }
  }
  message->kind = HOLDBACK_MESSAGE_EVENTS;
  message->batch = bytes;
  message->has_next_position = true;
  message->scratch = hb_calloc(1, sizeof *message->scratch);
  return result == HB_WIRE_END && (!message->positions || message->positions_count == events);
}

static void take_progress(struct holdback_message *message, const Holdback__V1__Progress *from) {
  message->progress = (struct holdback_progress){
      .has_frontier = from->frontier_presence_case != 0,
      .frontier = from->frontier,
      .complete_to = from->complete_to,
      .next_position = from->next_position,
      .earliest = from->earliest,
      .has_highest = from->highest_presence_case != 0,
      .highest = from->highest,
      .held_events = from->held_events,
      .blocked = from->blocked_by != NULL,
      .caught_up = from->caught_up != 0,
  };
  if (from->blocked_by)
    message->progress.blocked_by = (struct holdback_gap){.start = from->blocked_by->start,
                                                         .end = from->blocked_by->end,
                                                         .age_ms = from->blocked_by->age_ms};
  message->has_next_position = from->next_position_presence_case != 0;
  message->next_position = from->next_position;
  if (from->incarnation.len == 0 || from->incarnation.len > sizeof message->incarnation) return;
  memcpy(message->incarnation, from->incarnation.data, from->incarnation.len);
  message->incarnation_size = from->incarnation.len;
}

static bool decode_progress(struct holdback_message *message, struct hb_slice bytes) {
  Holdback__V1__Progress *progress = holdback__v1__progress__unpack(NULL, bytes.size, bytes.data);
  if (!progress) return false;
  message->kind = HOLDBACK_MESSAGE_PROGRESS;
  take_progress(message, progress);
  holdback__v1__progress__free_unpacked(progress, NULL);
  return true;
}

static bool decode_void(struct holdback_message *message, struct hb_slice bytes) {
  Holdback__V1__Void *nothing = holdback__v1__void__unpack(NULL, bytes.size, bytes.data);
  if (!nothing) return false;
  struct holdback_void *out = &message->nothing;
  message->kind = HOLDBACK_MESSAGE_VOID;
  message->has_next_position = true;
  message->next_position = nothing->next_position;
  out->start = nothing->start;
  out->end = nothing->end;
  (void)snprintf(out->reason, sizeof out->reason, "%s", nothing->reason);
  (void)snprintf(out->actor, sizeof out->actor, "%s", nothing->actor);
  holdback__v1__void__free_unpacked(nothing, NULL);
  return true;
}

static bool decode_kind(struct holdback_message *message, uint32_t number, struct hb_slice bytes) {
  switch (number) {
    case RESPONSE_BATCH:
      return decode_batch(message, bytes);
    case RESPONSE_PROGRESS:
      return decode_progress(message, bytes);
    case RESPONSE_VOID:
      return decode_void(message, bytes);
    case RESPONSE_RESULTS:
      if (!decode_batch(message, bytes)) return false;
      message->kind = HOLDBACK_MESSAGE_RESULTS;
      return true;
    case RESPONSE_STATUSES:
      if (!decode_batch(message, bytes)) return false;
      message->kind = HOLDBACK_MESSAGE_STATUSES;
      return true;
    default:
      message->kind = HOLDBACK_MESSAGE_END;
      return true;
  }
}

bool hbc_message_decode(struct holdback_message *message) {
  if (!message->received) return message->kind != 0;
  message->bytes = hbc_bytebuf_flatten(message->received);
  grpc_byte_buffer_destroy(message->received);
  message->received = NULL;
  struct hb_slice all = hbc_slice_view(&message->bytes);
  struct hb_wire_reader reader = {all.data, hb_slice_end(all)};
  struct hb_wire_field field;
  struct hb_wire_field last = {0};
  enum hb_wire_result result;
  while ((result = hb_wire_next(&reader, &field)) == HB_WIRE_FIELD)
    if (field.type == HB_WIRE_LEN && field.number >= RESPONSE_BATCH &&
        field.number <= RESPONSE_STATUSES)
      last = field; /* a oneof: the last one counts */
  bool good = result == HB_WIRE_END && last.number && decode_kind(message, last.number, last.bytes);
  if (!good) {
    message->kind = (enum holdback_message_kind)0;
    message->batch = (struct hb_slice){0}; /* its events may have no positions */
  }
  return good;
}

/* ---- reading */

enum holdback_message_kind holdback_message_kind(const struct holdback_message *m) {
  return m->kind;
}

/* The cursor: offset of the next field in the batch, and above it the index of the next event. */
enum { INDEX_SHIFT = 32 };
static_assert(sizeof(size_t) == 8, "a cursor holds two 32-bit numbers");

/* The next frame, and its index; the cursor moves past it. */
static bool next_frame(const struct holdback_message *message, enum holdback_message_kind kind,
                       size_t *cursor, struct hb_slice *out, size_t *out_index) {
  const struct hb_slice batch = message->batch;
  if (message->kind != kind || !batch.size || message->scratch->malformed) return false;
  size_t index = *cursor >> INDEX_SHIFT;
  struct hb_wire_reader reader = {batch.data + (uint32_t)*cursor, batch.data + batch.size};
  struct hb_wire_field field;
  do {
    if (hb_wire_next(&reader, &field) != HB_WIRE_FIELD) return false;
  } while (field.number != BATCH_EVENTS || field.type != HB_WIRE_LEN);
  *out = hb_slice_of(field.start, (size_t)(field.end - field.start));
  *out_index = index;
  *cursor = (index + 1) << INDEX_SHIFT | (size_t)(field.end - batch.data);
  return true;
}

bool holdback_message_event(const struct holdback_message *message, size_t *cursor,
                            struct holdback_event *out, int64_t *out_position) {
  struct hb_slice frame;
  size_t index;
  if (!next_frame(message, HOLDBACK_MESSAGE_EVENTS, cursor, &frame, &index)) return false;
  if (!hbc_event_decode(frame, &message->scratch->headers, out)) {
    message->scratch->malformed = true;
    return false;
  }
  if (out_position)
    *out_position = message->positions
                        ? message->positions[index]
                        : (int64_t)((uint64_t)message->first_position + (uint64_t)index);
  return true;
}

/* What an Event has not; the scanner has found the frame well-formed. */
static void take_cause(struct hb_slice frame, struct holdback_processor_result *out) {
  struct hb_wire_reader reader = {frame.data, frame.data + frame.size};
  struct hb_wire_field field;
  if (hb_wire_next(&reader, &field) != HB_WIRE_FIELD) return;
  reader = (struct hb_wire_reader){field.bytes.data, field.bytes.data + field.bytes.size};
  while (hb_wire_next(&reader, &field) == HB_WIRE_FIELD) {
    if (field.type != HB_WIRE_VARINT) continue;
    if (field.number == RESULT_CAUSE) out->cause_position = (int64_t)field.number_value;
    if (field.number == RESULT_KIND) out->kind = (int)field.number_value;
  }
}

bool holdback_message_result(const struct holdback_message *message, size_t *cursor,
                             struct holdback_processor_result *out) {
  struct hb_slice frame;
  size_t index;
  struct holdback_event event;
  if (!next_frame(message, HOLDBACK_MESSAGE_RESULTS, cursor, &frame, &index)) return false;
  if (!hbc_event_decode(frame, &message->scratch->headers, &event)) {
    message->scratch->malformed = true;
    return false;
  }
  *out = (struct holdback_processor_result){.position = event.sequence,
                                            .key = event.key,
                                            .payload = event.payload,
                                            .has_event_time = event.has_event_time,
                                            .event_time_seconds = event.event_time_seconds,
                                            .event_time_nanos = event.event_time_nanos};
  take_cause(frame, out);
  return true;
}

static void take_number(uint32_t field, uint64_t number, struct holdback_key_status *out) {
  switch (field) {
    case 1:
      out->position = (int64_t)number;
      break;
    case 9:
      out->has_last_processed = true;
      out->last_processed = (int64_t)number;
      break;
    case 10:
      out->processed = number;
      break;
    case 11:
      out->failed = number;
      break;
    case 12:
      out->results = number;
      break;
    case 13:
      out->duplicates = number;
      break;
    case 14:
      out->rejected = number;
      break;
    case 15:
      out->last_received = number != 0;
      break;
    case 20:
      out->told_at_ms = number;
      break;
    case 21:
      out->has_blocked_at = true;
      out->blocked_at = (int64_t)number;
      break;
    default:
      break; /* of a later version */
  }
}

bool holdback_message_status(const struct holdback_message *message, size_t *cursor,
                             struct holdback_key_status *out) {
  struct hb_slice frame;
  size_t index;
  if (!next_frame(message, HOLDBACK_MESSAGE_STATUSES, cursor, &frame, &index)) return false;
  *out = (struct holdback_key_status){.position = 0};
  struct hb_wire_reader reader = {frame.data, frame.data + frame.size};
  struct hb_wire_field field;
  enum hb_wire_result result = hb_wire_next(&reader, &field);
  if (result == HB_WIRE_FIELD) {
    reader = (struct hb_wire_reader){field.bytes.data, field.bytes.data + field.bytes.size};
    while ((result = hb_wire_next(&reader, &field)) == HB_WIRE_FIELD) {
      if (field.type == HB_WIRE_VARINT) take_number(field.number, field.number_value, out);
      if (field.type == HB_WIRE_LEN && field.number == 2)
        out->key = (struct holdback_bytes){field.bytes.data, field.bytes.size};
    }
  }
  if (result != HB_WIRE_END) message->scratch->malformed = true;
  return result == HB_WIRE_END;
}

int64_t holdback_message_next_position(const struct holdback_message *message) {
  return message->next_position;
}

bool holdback_message_progress(const struct holdback_message *message,
                               struct holdback_progress *out) {
  if (message->kind != HOLDBACK_MESSAGE_PROGRESS) return false;
  *out = message->progress;
  return true;
}

bool holdback_message_void(const struct holdback_message *message, struct holdback_void *out) {
  if (message->kind != HOLDBACK_MESSAGE_VOID) return false;
  *out = message->nothing;
  return true;
}
