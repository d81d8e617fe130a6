/* Decides how a configuration is read from a request (what its values may be: the engine's
 * config.h), and how absence is told: numbers of a stream are members of oneofs, unset until they
 * exist. */
#include "server/rpc/stream_pb.h"

#include "server/rpc/text.h"

static enum hb_code not_built(const char *field, struct hb_err *err) {
  return hb_err_set(err, HB_UNIMPLEMENTED, "FEATURE_NOT_BUILT", "%s is not implemented yet", field);
}

static void take_limits(const Holdback__V1__StreamLimits *from, struct hb_stream_limits *out) {
  if (!from) return;
  out->ahead_max = from->ahead_max;
  out->held_bytes_max = from->held_bytes_max;
  out->held_events_max = from->held_events_max;
  out->gaps_max = from->gaps_max;
  out->event_bytes_max = from->event_bytes_max;
}

static enum hb_code take_first(const Holdback__V1__StreamConfig *from, struct hb_stream_config *out,
                               struct hb_err *err) {
  if (from->first_case == HOLDBACK__V1__STREAM_CONFIG__FIRST_FIRST_SEQUENCE) {
    out->first_sequence = from->first_sequence;
    return HB_OK;
  }
  if (from->first_case == HOLDBACK__V1__STREAM_CONFIG__FIRST_FIRST_SEEN && from->first_seen) {
    out->first_seen = true;
    return HB_OK;
  }
  return hb_err_set(err, HB_INVALID, "FIRST_SEQUENCE_MISSING",
                    "config.first is not set: give first_sequence, or first_seen = true");
}

enum hb_code hb_stream_config_from_pb(const Holdback__V1__StreamConfig *from,
                                      struct hb_stream_config *out, struct hb_err *err) {
  struct hb_stream_config config = {.name = ""};
  if (!from) return hb_err_set(err, HB_INVALID, "CONFIG_MISSING", "config is not set");
  if (from->retention) return not_built("config.retention", err);
  enum hb_code code =
      hb_text_stream_name("config.name", hb_slice_text(from->name), config.name, err);
  if (!code) code = take_first(from, &config, err);
  if (code) return code;
  config.mode = (enum hb_mode)from->mode; /* any number; the engine looks */
  config.ack = (enum hb_ack)from->ack_mode;
  take_limits(from->limits, &config.limits);
  *out = config;
  return HB_OK;
}

enum hb_code hb_stream_changes_from_pb(const Holdback__V1__UpdateStreamRequest *from,
                                       struct hb_stream_config *out, struct hb_err *err) {
  struct hb_stream_config config = {.name = ""};
  if (from->retention) return not_built("retention", err);
  enum hb_code code = hb_text_stream_name("stream", hb_slice_text(from->stream), config.name, err);
  if (code) return code;
  config.ack = (enum hb_ack)from->ack_mode;
  take_limits(from->limits, &config.limits);
  *out = config;
  return HB_OK;
}

void hb_stream_config_to_pb(const struct hb_stream_config *config, struct hb_stream_config_pb *pb) {
  holdback__v1__stream_config__init(&pb->config);
  holdback__v1__stream_limits__init(&pb->limits);
  pb->limits.ahead_max = config->limits.ahead_max;
  pb->limits.held_bytes_max = config->limits.held_bytes_max;
  pb->limits.held_events_max = config->limits.held_events_max;
  pb->limits.gaps_max = config->limits.gaps_max;
  pb->limits.event_bytes_max = (uint32_t)config->limits.event_bytes_max;
  pb->config.name = (char *)(uintptr_t)config->name;
  pb->config.mode = (Holdback__V1__StreamMode)config->mode;
  pb->config.ack_mode = (Holdback__V1__AckMode)config->ack;
  pb->config.limits = &pb->limits;
  if (config->first_seen) {
    pb->config.first_case = HOLDBACK__V1__STREAM_CONFIG__FIRST_FIRST_SEEN;
    pb->config.first_seen = true;
  } else {
    pb->config.first_case = HOLDBACK__V1__STREAM_CONFIG__FIRST_FIRST_SEQUENCE;
    pb->config.first_sequence = config->first_sequence;
  }
}

void hb_gap_to_pb(const struct hb_gap *gap, uint64_t served_ms, struct hb_gap_pb *pb) {
  holdback__v1__gap__init(&pb->gap);
  google__protobuf__timestamp__init(&pb->first_seen);
  pb->gap.start = gap->start;
  pb->gap.end = gap->end;
  bool known = gap->first_seen_wall_ms > 0; /* of a key's gaps it is not kept */
  bool aged = known && served_ms > gap->first_seen_served_ms;
  pb->gap.age_ms = aged ? served_ms - gap->first_seen_served_ms : 0;
  pb->first_seen.seconds = (int64_t)(gap->first_seen_wall_ms / 1000);
  pb->first_seen.nanos = (int32_t)(gap->first_seen_wall_ms % 1000) * 1000000;
  pb->gap.first_seen = known ? &pb->first_seen : NULL;
}

static void numbers_to_pb(const struct hb_stream_status *from, Holdback__V1__StreamStatus *to) {
  const struct hb_frontier *record = &from->record;
  if (record->frozen) {
    to->first_sequence_presence_case =
        HOLDBACK__V1__STREAM_STATUS__FIRST_SEQUENCE_PRESENCE_FIRST_SEQUENCE;
    to->first_sequence = record->first_sequence;
    to->frontier_presence_case = HOLDBACK__V1__STREAM_STATUS__FRONTIER_PRESENCE_FRONTIER;
    to->frontier = record->frontier;
    to->complete_to_presence_case = HOLDBACK__V1__STREAM_STATUS__COMPLETE_TO_PRESENCE_COMPLETE_TO;
    to->complete_to = record->complete_to;
    to->earliest_presence_case = HOLDBACK__V1__STREAM_STATUS__EARLIEST_PRESENCE_EARLIEST;
    to->earliest = record->earliest;
    to->indexed_to_presence_case = HOLDBACK__V1__STREAM_STATUS__INDEXED_TO_PRESENCE_INDEXED_TO;
    to->indexed_to = from->indexed_to;
  }
  if (record->sealed) {
    to->seal_end_presence_case = HOLDBACK__V1__STREAM_STATUS__SEAL_END_PRESENCE_SEAL_END;
    to->seal_end = record->seal_end;
  }
  if (record->any) {
    to->highest_presence_case = HOLDBACK__V1__STREAM_STATUS__HIGHEST_PRESENCE_HIGHEST;
    to->highest = record->highest;
  }
}

void hb_stream_status_to_pb(const struct hb_stream_status *status, uint64_t served_ms,
                            struct hb_stream_status_pb *pb) {
  Holdback__V1__StreamStatus *to = &pb->status;
  const struct hb_frontier *record = &status->record;
  holdback__v1__stream_status__init(to);
  numbers_to_pb(status, to);
  to->held_events = status->held_events;
  to->held_bytes = status->held_bytes;
  to->gaps_total = status->gaps_total;
  to->n_gaps = status->gaps_count;
  to->gaps = pb->gap_list;
  for (uint32_t i = 0; i < status->gaps_count; i++) {
    hb_gap_to_pb(&status->gaps[i], served_ms, &pb->gaps[i]);
    pb->gap_list[i] = &pb->gaps[i].gap;
  }
  if (record->max_event_time.present) {
    google__protobuf__timestamp__init(&pb->max_event_time);
    pb->max_event_time.seconds = record->max_event_time.seconds;
    pb->max_event_time.nanos = record->max_event_time.nanos;
    to->max_event_time = &pb->max_event_time;
  }
  to->stored_total = record->counters.stored;
  to->duplicate_total = record->counters.duplicate;
  to->conflict_total = record->counters.conflict;
  to->late_total = record->counters.late;
  to->before_first_total = record->counters.before_first;
  to->held_total = record->counters.held;
}
