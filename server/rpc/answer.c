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

static const char *window_text(enum hb_reason reason) {
  switch (reason) {
    case HB_REASON_AHEAD:
      return "is at or above window_end: too far ahead of complete_to";
    case HB_REASON_HELD_BYTES:
      return "would pass held_bytes_max: fill the lowest gap, then send again";
    case HB_REASON_HELD_EVENTS:
      return "would pass held_events_max: fill the lowest gap, then send again";
    case HB_REASON_GAPS:
      return "would pass gaps_max: fill the lowest gap, then send again";
    case HB_REASON_SERVER_MEMORY:
      return "would pass the server's held_index_max: send again later";
    case HB_REASON_DISK_RESERVE:
      return "can't be held, the disk is nearly full: send again later";
    case HB_REASON_NONE:
    case HB_REASON_UNVERIFIED:
    case HB_REASON_CHAIN_CONFLICT:
    case HB_REASON_QUOTA:
    case HB_REASON_SEALED:
      break;
  }
  return "does not fit into the window: send again later";
}

static const char *outcome_text(enum hb_outcome outcome, enum hb_reason reason) {
  switch (outcome) {
    case HB_OUTCOME_CONFLICT:
      return reason == HB_REASON_CHAIN_CONFLICT ? "is accounted for by another event's previous"
             : reason == HB_REASON_QUOTA ? "is stored with other content; this copy was not kept"
                                         : "is stored with other content";
    case HB_OUTCOME_LATE:
      return "was voided before it came";
    case HB_OUTCOME_BEFORE_FIRST:
      return reason == HB_REASON_QUOTA ? "is below first_sequence; this copy was not kept"
                                       : "is below first_sequence";
    case HB_OUTCOME_OUT_OF_RANGE:
      return reason == HB_REASON_SEALED ? "is at or above the end of a sealed stream"
                                        : "is not a valid sequence";
    case HB_OUTCOME_WINDOW_FULL:
      return window_text(reason);
    case HB_OUTCOME_NONE:
    case HB_OUTCOME_STORED:
    case HB_OUTCOME_DUPLICATE:
      break;
  }
  return NULL;
}

struct run {
  uint32_t first_index;
  uint32_t count;
  int64_t first_sequence;
  enum hb_outcome outcome;
  enum hb_reason reason;
};

static uint8_t *put_number(uint8_t *at, uint32_t field, uint64_t value) {
  if (value == 0) return at; /* proto3 leaves zero out */
  *at++ = (uint8_t)(field << 3 | HB_WIRE_VARINT);
  return at + hb_wire_put_varint(at, value);
}

static void put_run(const struct run *run, uint32_t *texts_left, struct hb_buf *out) {
  uint8_t bytes[6 * (1 + HB_VARINT_MAX) + TEXT_SIZE];
  uint8_t *at = put_number(bytes, RUN_INDEX, run->first_index);
  at = put_number(at, RUN_COUNT, run->count);
  at = put_number(at, RUN_SEQUENCE, (uint64_t)run->first_sequence);
  at = put_number(at, RUN_OUTCOME, (uint64_t)run->outcome);
  at = put_number(at, RUN_REASON, (uint64_t)run->reason);
  const char *text = outcome_text(run->outcome, run->reason);
  if (text && *texts_left > 0) {
    (*texts_left)--;
    char line[TEXT_SIZE - 4];
    int size = snprintf(line, sizeof line, "sequence %" PRId64 " %s", run->first_sequence, text);
    size_t used = size < 0 ? 0 : (size_t)size < sizeof line ? (size_t)size : sizeof line - 1;
    *at++ = (uint8_t)(RUN_TEXT << 3 | HB_WIRE_LEN);
    at += hb_wire_put_varint(at, used);
    memcpy(at, line, used);
    at += used;
  }
  hb_wire_append_bytes(out, RESULT_RUNS, hb_slice_of(bytes, (size_t)(at - bytes)));
}

static void put_runs(const struct hb_batch *batch, struct hb_buf *out) {
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
    put_run(&run, &texts_left, out);
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

void hb_answer_encode(const struct hb_append *append, const uint8_t *incarnation,
                      struct hb_buf *out) {
  const struct hb_stream_status *status = &append->status;
  const struct hb_frontier *record = &status->record;
  uint32_t stored = count_stored(&append->batch);
  if (stored) hb_wire_append_varint(out, RESULT_STORED, stored);
  put_runs(&append->batch, out);
  if (record->frozen) { /* members of oneofs: zero is written too */
    hb_wire_append_varint(out, RESULT_COMPLETE_TO, (uint64_t)record->complete_to);
    hb_wire_append_varint(out, RESULT_FRONTIER, (uint64_t)record->frontier);
    if (record->any) hb_wire_append_varint(out, RESULT_HIGHEST, (uint64_t)record->highest);
    hb_wire_append_varint(out, RESULT_WINDOW_END, (uint64_t)status->window_end);
  }
  put_gaps(status, out);
  hb_wire_append_bytes(out, RESULT_INCARNATION, hb_slice_of(incarnation, HB_INCARNATION_SIZE));
}
