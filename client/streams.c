/* Decides how a stream's configuration and status look in the contract, and back. */
#include <string.h>

#include "client/error.h"
#include "client/unary.h"
#include "holdback/v1/stream.pb-c.h"

#define METHOD(name) "/holdback.v1.StreamService/" name

static char *text_of(const char *text) { return (char *)(uintptr_t)text; } /* only read */

static int require_name(const char *name, struct holdback_error *error) {
  if (name && name[0]) return HOLDBACK_OK;
  return hbc_error_set(error, HOLDBACK_INVALID_ARGUMENT, "STREAM_NAME_INVALID",
                       "stream: the name is empty");
}

static void put_limits(const struct holdback_stream_config *config,
                       Holdback__V1__StreamLimits *out) {
  holdback__v1__stream_limits__init(out);
  out->ahead_max = config->ahead_max;
  out->held_bytes_max = config->held_bytes_max;
  out->held_events_max = config->held_events_max;
  out->gaps_max = config->gaps_max;
  out->event_bytes_max = config->event_bytes_max;
}

static void take_config(const Holdback__V1__StreamConfig *from, const char *name,
                        struct holdback_stream_config *out) {
  *out = (struct holdback_stream_config){
      .name = name,
      .mode = (int)from->mode,
      .first_seen = from->first_case == HOLDBACK__V1__STREAM_CONFIG__FIRST_FIRST_SEEN,
      .async_ack = from->ack_mode == HOLDBACK__V1__ACK_MODE__ACK_MODE_ASYNC,
  };
  if (from->first_case == HOLDBACK__V1__STREAM_CONFIG__FIRST_FIRST_SEQUENCE)
    out->first_sequence = from->first_sequence;
  if (!from->limits) return;
  out->ahead_max = from->limits->ahead_max;
  out->held_bytes_max = from->limits->held_bytes_max;
  out->held_events_max = from->limits->held_events_max;
  out->gaps_max = from->limits->gaps_max;
  out->event_bytes_max = from->limits->event_bytes_max;
}

static void take_gaps(const Holdback__V1__StreamStatus *from, struct holdback_stream_status *out) {
  size_t max = sizeof out->gaps / sizeof *out->gaps;
  out->gaps_count = from->n_gaps < max ? from->n_gaps : max;
  for (size_t i = 0; i < out->gaps_count; i++)
    out->gaps[i] = (struct holdback_gap){
        .start = from->gaps[i]->start, .end = from->gaps[i]->end, .age_ms = from->gaps[i]->age_ms};
}

static void take_status(const Holdback__V1__StreamStatus *from,
                        struct holdback_stream_status *out) {
  *out = (struct holdback_stream_status){
      .has_first = from->first_sequence_presence_case != 0,
      .first_sequence = from->first_sequence,
      .frontier = from->frontier,
      .complete_to = from->complete_to,
      .earliest = from->earliest,
      .indexed_to = from->indexed_to,
      .has_highest = from->highest_presence_case != 0,
      .highest = from->highest,
      .held_events = from->held_events,
      .held_bytes = from->held_bytes,
      .gaps_total = from->gaps_total,
      .stored_total = from->stored_total,
      .duplicate_total = from->duplicate_total,
      .conflict_total = from->conflict_total,
      .late_total = from->late_total,
      .before_first_total = from->before_first_total,
      .held_total = from->held_total,
  };
  take_gaps(from, out);
  out->sealed = from->seal_end_presence_case != 0;
  out->seal_end = from->seal_end;
  if (!from->max_event_time) return;
  out->has_max_event_time = true;
  out->max_event_time_seconds = from->max_event_time->seconds;
  out->max_event_time_nanos = from->max_event_time->nanos;
}

int holdback_stream_create(struct holdback_client *client,
                           const struct holdback_stream_config *config,
                           struct holdback_error *error) {
  int status = require_name(config->name, error);
  if (status) return status;
  Holdback__V1__StreamLimits limits;
  put_limits(config, &limits);
  Holdback__V1__StreamConfig wanted = HOLDBACK__V1__STREAM_CONFIG__INIT;
  wanted.name = text_of(config->name);
  wanted.mode = (Holdback__V1__StreamMode)(config->mode ? config->mode : HOLDBACK_MODE_GLOBAL);
  wanted.ack_mode = config->async_ack ? HOLDBACK__V1__ACK_MODE__ACK_MODE_ASYNC
                                      : HOLDBACK__V1__ACK_MODE__ACK_MODE_DURABLE;
  wanted.limits = &limits;
  if (config->first_seen) {
    wanted.first_case = HOLDBACK__V1__STREAM_CONFIG__FIRST_FIRST_SEEN;
    wanted.first_seen = true;
  } else {
    wanted.first_case = HOLDBACK__V1__STREAM_CONFIG__FIRST_FIRST_SEQUENCE;
    wanted.first_sequence = config->first_sequence;
  }
  Holdback__V1__CreateStreamRequest request = HOLDBACK__V1__CREATE_STREAM_REQUEST__INIT;
  request.config = &wanted;
  ProtobufCMessage *answer;
  status = hbc_unary_call(client, METHOD("CreateStream"), &request.base,
                          &holdback__v1__create_stream_response__descriptor, &answer, error);
  if (!status) protobuf_c_message_free_unpacked(answer, NULL);
  return status;
}

int holdback_stream_update(struct holdback_client *client,
                           const struct holdback_stream_config *config, int ack,
                           struct holdback_error *error) {
  int status = require_name(config->name, error);
  if (status) return status;
  Holdback__V1__StreamLimits limits;
  put_limits(config, &limits);
  Holdback__V1__UpdateStreamRequest request = HOLDBACK__V1__UPDATE_STREAM_REQUEST__INIT;
  request.stream = text_of(config->name);
  request.ack_mode = (Holdback__V1__AckMode)ack;
  request.limits = &limits;
  ProtobufCMessage *answer;
  status = hbc_unary_call(client, METHOD("UpdateStream"), &request.base,
                          &holdback__v1__update_stream_response__descriptor, &answer, error);
  if (!status) protobuf_c_message_free_unpacked(answer, NULL);
  return status;
}

int holdback_stream_delete(struct holdback_client *client, const char *name,
                           struct holdback_error *error) {
  int status = require_name(name, error);
  if (status) return status;
  Holdback__V1__DeleteStreamRequest request = HOLDBACK__V1__DELETE_STREAM_REQUEST__INIT;
  request.stream = text_of(name);
  ProtobufCMessage *answer;
  status = hbc_unary_call(client, METHOD("DeleteStream"), &request.base,
                          &holdback__v1__delete_stream_response__descriptor, &answer, error);
  if (!status) protobuf_c_message_free_unpacked(answer, NULL);
  return status;
}

int holdback_stream_seal(struct holdback_client *client, const char *name, int64_t end,
                         struct holdback_error *error) {
  int status = require_name(name, error);
  if (status) return status;
  Holdback__V1__SealStreamRequest request = HOLDBACK__V1__SEAL_STREAM_REQUEST__INIT;
  request.stream = text_of(name);
  request.end_presence_case = HOLDBACK__V1__SEAL_STREAM_REQUEST__END_PRESENCE_END;
  request.end = end;
  ProtobufCMessage *answer;
  status = hbc_unary_call(client, METHOD("SealStream"), &request.base,
                          &holdback__v1__seal_stream_response__descriptor, &answer, error);
  if (!status) protobuf_c_message_free_unpacked(answer, NULL);
  return status;
}

int holdback_stream_get(struct holdback_client *client, const char *name,
                        struct holdback_stream_config *out_config,
                        struct holdback_stream_status *out_status, struct holdback_error *error) {
  int status = require_name(name, error);
  if (status) return status;
  Holdback__V1__GetStreamRequest request = HOLDBACK__V1__GET_STREAM_REQUEST__INIT;
  request.stream = text_of(name);
  ProtobufCMessage *answer;
  status = hbc_unary_call(client, METHOD("GetStream"), &request.base,
                          &holdback__v1__get_stream_response__descriptor, &answer, error);
  if (status) return status;
  const Holdback__V1__GetStreamResponse *got = (Holdback__V1__GetStreamResponse *)answer;
  if (!got->config || !got->status) {
    status = hbc_error_set(error, HOLDBACK_INTERNAL, NULL,
                           "%s: GetStream: the answer has no config or no status", client->server);
  } else {
    if (out_config) take_config(got->config, name, out_config);
    if (out_status) take_status(got->status, out_status);
  }
  protobuf_c_message_free_unpacked(answer, NULL);
  return status;
}

/* Whether there is another page and the caller wants it. */
static bool tell_page(const Holdback__V1__ListStreamsResponse *page, holdback_stream_each *each,
                      void *context) {
  for (size_t i = 0; i < page->n_streams; i++) {
    struct holdback_stream_config config;
    take_config(page->streams[i], page->streams[i]->name, &config);
    if (!each(context, &config)) return false;
  }
  return page->next_page_token[0] != '\0';
}

int holdback_stream_list(struct holdback_client *client, const char *name_prefix,
                         holdback_stream_each *each, void *context, struct holdback_error *error) {
  ProtobufCMessage *page = NULL;
  bool more = true;
  while (more) {
    Holdback__V1__ListStreamsRequest request = HOLDBACK__V1__LIST_STREAMS_REQUEST__INIT;
    if (name_prefix) request.name_prefix = text_of(name_prefix);
    if (page) request.page_token = ((Holdback__V1__ListStreamsResponse *)page)->next_page_token;
    ProtobufCMessage *next = NULL;
    int status = hbc_unary_call(client, METHOD("ListStreams"), &request.base,
                                &holdback__v1__list_streams_response__descriptor, &next, error);
    if (page) protobuf_c_message_free_unpacked(page, NULL);
    if (status) return status;
    page = next;
    more = tell_page((Holdback__V1__ListStreamsResponse *)page, each, context);
  }
  protobuf_c_message_free_unpacked(page, NULL);
  return HOLDBACK_OK;
}
