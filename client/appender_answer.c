/* Decides what an answer means for each event of its batch.
 *
 * Runs of the answer are cut where the caller's indices are not consecutive, so that every result
 * speaks of indices index .. index + count. WINDOW_FULL is no result yet: such events go to the
 * window and are sent again. */
#include "base/assert.h"
#include "base/clock.h"
#include "base/frame/scan.h"
#include "client/appender.h"

/* Runs must cover the batch, in order, each event once: else nothing of the answer counts. */
static bool runs_cover(const Holdback__V1__AppendResult *result, uint32_t count) {
  uint64_t at = 0;
  for (size_t i = 0; i < result->n_runs; i++) {
    const Holdback__V1__OutcomeRun *run = result->runs[i];
    if (run->first_index != at || run->count == 0) return false;
    if ((int)run->outcome < HOLDBACK_STORED || (int)run->outcome > HOLDBACK_WINDOW_FULL)
      return false;
    at += run->count;
  }
  return at == count;
}

static int64_t sequence_of(struct hb_slice frame) {
  struct hb_event event = {0};
  enum hb_code code = hb_scan_frame(frame, &event, NULL);
  HB_ASSERT(code == HB_OK); /* the library encoded it */
  return event.sequence;
}

static uint64_t *counter_of(struct holdback_append_progress *progress, int outcome) {
  switch (outcome) {
    case HOLDBACK_STORED:
      return &progress->stored;
    case HOLDBACK_DUPLICATE:
      return &progress->duplicate;
    case HOLDBACK_CONFLICT:
      return &progress->conflict;
    case HOLDBACK_LATE:
      return &progress->late;
    case HOLDBACK_BEFORE_FIRST:
      return &progress->before_first;
    case HOLDBACK_OUT_OF_RANGE_EVENT:
      return &progress->out_of_range;
    default:
      return &progress->window_full;
  }
}

/* One answer while it is taken. */
struct taking {
  struct holdback_appender *appender;
  struct hbc_batch_cursor cursor;
  bool walk; /* frames are looked at: something is refused, or indices are not consecutive */
  struct holdback_append_progress counts;
  uint64_t now_ms;
};

static void tell_run(struct taking *taking, const Holdback__V1__OutcomeRun *run) {
  struct holdback_appender *appender = taking->appender;
  *counter_of(&taking->counts, (int)run->outcome) += run->count;
  uint32_t left = run->count;
  int64_t sequence = run->first_sequence;
  const char *text = run->text;
  while (left > 0) {
    struct holdback_result result = {.first_sequence = sequence,
                                     .outcome = (int)run->outcome,
                                     .reason = (int)run->reason,
                                     .text = text};
    result.count = hbc_batch_next_run(&taking->cursor, left, &result.index);
    left -= result.count;
    for (uint32_t i = 0; taking->walk && i < result.count; i++) {
      struct hb_slice frame = hbc_batch_next_frame(&taking->cursor);
      if (i == 0) result.first_sequence = sequence_of(frame);
    }
    if (appender->on_result) appender->on_result(appender->context, &result);
    text = ""; /* it names the run's first sequence */
  }
}

static void keep_run(struct taking *taking, const Holdback__V1__OutcomeRun *run) {
  for (uint32_t i = 0; i < run->count; i++) {
    struct hbc_refused refused = {.reason = (int)run->reason};
    (void)hbc_batch_next_run(&taking->cursor, 1, &refused.index);
    struct hb_slice frame = hbc_batch_next_frame(&taking->cursor);
    refused.sequence = sequence_of(frame);
    refused.frame = (uint8_t *)(uintptr_t)frame.data; /* copied, not kept */
    refused.size = (uint32_t)frame.size;
    uint64_t since_ms = taking->cursor.batch->again ? 0 : taking->now_ms;
    hbc_window_add(&taking->appender->window, &refused, since_ms);
  }
}

static bool any_refused(const Holdback__V1__AppendResult *result) {
  for (size_t i = 0; i < result->n_runs; i++)
    if ((int)result->runs[i]->outcome == HOLDBACK_WINDOW_FULL) return true;
  return false;
}

static void count(struct taking *taking, const struct hbc_batch *batch,
                  const Holdback__V1__AppendResult *result) {
  struct holdback_appender *appender = taking->appender;
  struct holdback_append_progress *progress = &appender->progress;
  pthread_mutex_lock(&appender->mutex);
  for (int outcome = HOLDBACK_STORED; outcome < HOLDBACK_WINDOW_FULL; outcome++)
    *counter_of(progress, outcome) += *counter_of(&taking->counts, outcome);
  if (result->frontier_presence_case && result->complete_to_presence_case) {
    progress->has_frontier = true;
    progress->frontier = result->frontier;
    progress->complete_to = result->complete_to;
  }
  appender->unanswered--;
  appender->unanswered_bytes -= batch->frames.size;
  appender->refused = appender->window.count;
  appender->refused_bytes = appender->window.bytes;
  pthread_cond_broadcast(&appender->changed);
  pthread_mutex_unlock(&appender->mutex);
}

static void learn(struct taking *taking, const struct hbc_batch *batch,
                  const Holdback__V1__AppendResult *result) {
  struct holdback_appender *appender = taking->appender;
  if (result->complete_to_presence_case)
    hbc_window_saw_complete_to(&appender->window, result->complete_to, taking->now_ms);
  if (result->window_end_presence_case) hbc_window_saw_end(&appender->window, result->window_end);
  appender->missing = (struct holdback_gap){0};
  if (result->n_lowest_gaps)
    appender->missing = (struct holdback_gap){.start = result->lowest_gaps[0]->start,
                                              .end = result->lowest_gaps[0]->end};
  if (!batch->again) return;
  appender->retrying = false;
  uint64_t accepted = taking->counts.stored + taking->counts.duplicate;
  if (accepted) hbc_window_taken(&appender->window, taking->now_ms);
}

bool hbc_appender_take_answer(struct holdback_appender *appender, const struct hbc_batch *batch,
                              const Holdback__V1__AppendResult *result) {
  if (!runs_cover(result, batch->count)) return false;
  struct taking taking = {.appender = appender,
                          .cursor = {.batch = batch},
                          .walk = batch->runs_count > 1 || any_refused(result),
                          .now_ms = hb_clock_mono_ms()};
  for (size_t i = 0; i < result->n_runs; i++) {
    if ((int)result->runs[i]->outcome == HOLDBACK_WINDOW_FULL) {
      keep_run(&taking, result->runs[i]);
    } else {
      tell_run(&taking, result->runs[i]);
    }
  }
  learn(&taking, batch, result);
  count(&taking, batch, result);
  return true;
}
