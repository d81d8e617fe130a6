/* Decides how decisions become runs: neighbours with the same outcome and reason are one run.
 *
 * The worst case is a run for each event: 65,536 times at most 25 bytes without texts, and texts
 * stand in the first sixteen unusual runs only, so the answer stays under 2 MiB. */
#include "server/rpc/answer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/frame/wire.h"

enum { TEXTS_MAX = 16, TEXT_SIZE = 160 };

/* Fields of OutcomeRun and AppendResult. */
enum { RUN_INDEX = 1, RUN_COUNT, RUN_SEQUENCE, RUN_OUTCOME, RUN_REASON, RUN_TEXT };
enum {
  RESULT_STORED = 1,
  RESULT_RUNS,
  RESULT_COMPLETE_TO,
  RESULT_FRONTIER,
  RESULT_HIGHEST,
  RESULT_WINDOW_END,
  RESULT_GAPS,
  RESULT_INCARNATION
};

struct run {
  uint32_t first_index;
  uint32_t count;
  int64_t first_sequence;
  enum hb_outcome outcome;
  enum hb_reason reason;
};

/* What the texts name. */
struct view {
  const struct hb_append *append;
  const struct hb_answer_stream *stream;
};

static const char FILL[] = "fill the lowest gap, then send again";

static int write_window(const struct view *view, enum hb_reason reason, char *out, size_t size) {
  const struct hb_stream_limits *limits = &view->stream->limits;
  bool per_key = view->stream->per_key;
  switch (reason) {
    case HB_REASON_AHEAD:
      if (per_key) {
        return snprintf(out, size, "is ahead_max %" PRIu64 " or more above its key's next: %s",
                        limits->ahead_max, FILL);
      }
      return snprintf(out, size, "is at or above window_end %" PRId64 ": %s",
                      view->append->status.window_end, FILL);
    case HB_REASON_HELD_BYTES:
      return snprintf(out, size, "would pass held_bytes_max %" PRIu64 ": %s",
                      limits->held_bytes_max, FILL);
    case HB_REASON_HELD_EVENTS:
      return snprintf(out, size, "would pass held_events_max %" PRIu64 ": %s",
                      limits->held_events_max, FILL);
    case HB_REASON_GAPS:
      return snprintf(out, size, "would pass gaps_max %" PRIu64 ": %s", limits->gaps_max, FILL);
    case HB_REASON_SERVER_MEMORY:
      return snprintf(out, size,
                      "would pass the server's held_index_max %" PRIu64 ": send again later",
                      view->stream->held_index_max);
    case HB_REASON_DISK_RESERVE:
      return snprintf(out, size, "can't be held, the disk is nearly full: send again later");
    case HB_REASON_NONE:
    case HB_REASON_UNVERIFIED:
    case HB_REASON_CHAIN_CONFLICT:
    case HB_REASON_QUOTA:
    case HB_REASON_SEALED:
      break;
  }
  return snprintf(out, size, "does not fit into the window: send again later");
}

/* What is to be said after the sequence; 0: nothing. */
static int write_outcome(const struct view *view, const struct run *run, char *out, size_t size) {
  const char *not_kept = run->reason == HB_REASON_QUOTA ? "; this copy was not kept" : "";
  switch (run->outcome) {
    case HB_OUTCOME_CONFLICT:
      if (run->reason == HB_REASON_CHAIN_CONFLICT) {
        return snprintf(out, size, "is accounted for by another event's previous");
      }
      return snprintf(out, size, "is stored with other content%s", not_kept);
    case HB_OUTCOME_LATE:
      return snprintf(out, size, "was voided before it came");
    case HB_OUTCOME_BEFORE_FIRST:
      if (view->stream->per_key) {
        return snprintf(out, size, "is below where its key begins%s", not_kept);
      }
      return snprintf(out, size, "is below first_sequence %" PRId64 "%s",
                      view->append->status.record.first_sequence, not_kept);
    case HB_OUTCOME_OUT_OF_RANGE:
      if (run->reason == HB_REASON_SEALED) {
        return snprintf(out, size, "is at or above the end of a sealed stream");
      }
      return snprintf(out, size, "is no sequence: the highest is %" PRId64, INT64_MAX - 1);
    case HB_OUTCOME_WINDOW_FULL:
      return write_window(view, run->reason, out, size);
    case HB_OUTCOME_NONE:
    case HB_OUTCOME_STORED:
    case HB_OUTCOME_DUPLICATE:
      break;
  }
  return 0;
}

/* Bytes written to `out`, cut at `size`. */
static size_t write_text(const struct view *view, const struct run *run, char *out, size_t size) {
  int head = snprintf(out, size, "sequence %" PRId64 " ", run->first_sequence);
  int tail = write_outcome(view, run, out + head, size - (size_t)head);
  if (tail <= 0) return 0;
  size_t used = (size_t)head + (size_t)tail;
  return used < size ? used : size - 1;
}

static uint8_t *put_number(uint8_t *at, uint32_t field, uint64_t value) {
  if (value == 0) return at; /* proto3 leaves zero out */
  *at++ = (uint8_t)(field << 3 | HB_WIRE_VARINT);
  return at + hb_wire_put_varint(at, value);
}

static void put_run(const struct view *view, const struct run *run, uint32_t *texts_left,
                    struct hb_buf *out) {
  uint8_t bytes[6 * (1 + HB_VARINT_MAX) + TEXT_SIZE];
  uint8_t *at = put_number(bytes, RUN_INDEX, run->first_index);
  at = put_number(at, RUN_COUNT, run->count);
  at = put_number(at, RUN_SEQUENCE, (uint64_t)run->first_sequence);
  at = put_number(at, RUN_OUTCOME, (uint64_t)run->outcome);
  at = put_number(at, RUN_REASON, (uint64_t)run->reason);
  char text[TEXT_SIZE - 4];
  size_t used = *texts_left > 0 ? write_text(view, run, text, sizeof text) : 0;
  if (used > 0) {
    (*texts_left)--;
    *at++ = (uint8_t)(RUN_TEXT << 3 | HB_WIRE_LEN);
    at += hb_wire_put_varint(at, used);
    memcpy(at, text, used);
    at += used;
  }
  hb_wire_append_bytes(out, RESULT_RUNS, hb_slice_of(bytes, (size_t)(at - bytes)));
}

static void put_runs(const struct view *view, struct hb_buf *out) {
  const struct hb_batch *batch = &view->append->batch;
  uint32_t texts_left = TEXTS_MAX;
  for (uint32_t i = 0; i < batch->count;) {
    const struct hb_decision *first = &batch->decisions[i];
    uint32_t end = i + 1;
    while (end < batch->count && batch->decisions[end].outcome == first->outcome &&
           batch->decisions[end].reason == first->reason) {
      end++;
    }
    struct run run = {.first_index = i,
                      .count = end - i,
                      .first_sequence = batch->events[i].sequence,
                      .outcome = (enum hb_outcome)first->outcome,
                      .reason = (enum hb_reason)first->reason};
    put_run(view, &run, &texts_left, out);
    i = end;
  }
}

static void put_gaps(const struct hb_stream_status *status, struct hb_buf *out) {
  for (uint32_t i = 0; i < status->gaps_count; i++) {
    uint8_t bytes[2 * (1 + HB_VARINT_MAX)];
    uint8_t *at = put_number(bytes, 1, (uint64_t)status->gaps[i].start);
    at = put_number(at, 2, (uint64_t)status->gaps[i].end);
    hb_wire_append_bytes(out, RESULT_GAPS, hb_slice_of(bytes, (size_t)(at - bytes)));
  }
}

static uint32_t count_stored(const struct hb_batch *batch) {
  uint32_t stored = 0;
  for (uint32_t i = 0; i < batch->count; i++) {
    stored += batch->decisions[i].outcome == HB_OUTCOME_STORED;
  }
  return stored;
}

void hb_answer_encode(const struct hb_append *append, const struct hb_answer_stream *stream,
                      struct hb_buf *out) {
  const struct hb_stream_status *status = &append->status;
  const struct hb_frontier *record = &status->record;
  uint32_t stored = count_stored(&append->batch);
  if (stored) hb_wire_append_varint(out, RESULT_STORED, stored);
  put_runs(&(struct view){append, stream}, out);
  if (record->frozen) { /* members of oneofs: zero is written too */
    hb_wire_append_varint(out, RESULT_COMPLETE_TO, (uint64_t)record->complete_to);
    hb_wire_append_varint(out, RESULT_FRONTIER, (uint64_t)record->frontier);
    if (record->any) hb_wire_append_varint(out, RESULT_HIGHEST, (uint64_t)record->highest);
    if (!stream->per_key) { /* else each key has its own */
      hb_wire_append_varint(out, RESULT_WINDOW_END, (uint64_t)status->window_end);
    }
  }
  put_gaps(status, out);
  hb_wire_append_bytes(out, RESULT_INCARNATION,
                       hb_slice_of(stream->incarnation, HB_INCARNATION_SIZE));
}
