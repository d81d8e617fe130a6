/* What a stream looks like from outside. Only called between commits, so the state is the last
 * committed one. */
#include "ordering/core_internal.h"

/* complete_to + ahead_max, where the numbers end if it is beyond, at most the seal. */
static int64_t ahead_end(const struct hb_core_stream *stream) {
  int64_t complete_to = stream->record.complete_to;
  uint64_t room = (uint64_t)INT64_MAX - (uint64_t)complete_to;
  uint64_t ahead = stream->config.limits.ahead_max;
  return ahead >= room ? INT64_MAX : (int64_t)((uint64_t)complete_to + ahead);
}

static int64_t window_end(const struct hb_core_stream *stream) {
  int64_t end = ahead_end(stream);
  const struct hb_frontier *record = &stream->record;
  return record->sealed && record->seal_end < end ? record->seal_end : end;
}

static void fill_gaps(const struct hb_ordering *core, const struct hb_core_stream *stream,
                      struct hb_stream_status *out) {
  struct hb_gap_walk walk = hb_gap_walk_start(&stream->covered);
  struct hb_range gap;
  uint64_t *moment;
  while (out->gaps_count < HB_STATUS_GAPS_MAX && hb_gap_walk_next(&walk, &gap, &moment)) {
    out->gaps[out->gaps_count++] =
        (struct hb_gap){.start = gap.start,
                        .end = gap.end,
                        .first_seen_served_ms = hb_moment_served_ms(*moment),
                        .first_seen_wall_ms = hb_moment_wall_ms(&core->moments, *moment)};
  }
}

bool hb_ordering_status(const struct hb_ordering *core, uint64_t id, struct hb_now now,
                        struct hb_stream_status *out) {
  const struct hb_core_stream *stream = hb_core_find_stream(core, id);
  if (!stream || core->in_flight) return false;
  (void)now; /* ages are the caller's to compute: first seen is told */
  *out = (struct hb_stream_status){.record = stream->record,
                                   .held_events = stream->held.events,
                                   .held_bytes = stream->held_bytes,
                                   .gaps_total = hb_intervals_gaps(&stream->covered)};
  if (stream->per_key) {
    hb_per_key_status(stream, out);
    return true;
  }
  if (stream->record.frozen) out->window_end = window_end(stream);
  fill_gaps(core, stream, out);
  return true;
}
