/* Decides which refusals are counted by key: those of streams with a processor that keeps statuses.
 *
 * An event that is not stored leaves no trace that could be counted later, so it is noted when it
 * is answered. Notes are kept in memory until the processor's next bundle, within a bound; a crash
 * costs them, and so does whoever sends refused events faster than they can be counted. A full
 * window is no refusal: the event comes again. What was held below where its key turned out to
 * begin is noted with the commit that keeps it aside. */
#include "base/endian.h"
#include "server/engine/engine_internal.h"

enum { NOTES_BYTES = 4 << 20 };

static bool is_refused(enum hb_outcome outcome) {
  switch (outcome) {
    case HB_OUTCOME_DUPLICATE:
    case HB_OUTCOME_CONFLICT:
    case HB_OUTCOME_LATE:
    case HB_OUTCOME_BEFORE_FIRST:
    case HB_OUTCOME_OUT_OF_RANGE:
      return true;
    case HB_OUTCOME_NONE:
    case HB_OUTCOME_STORED:
    case HB_OUTCOME_WINDOW_FULL:
      break;
  }
  return false;
}

/* With the processor's mutex. */
static void append(struct hb_processor *processor, const struct hb_event *event, bool duplicate) {
  struct hb_buf *out = &processor->refused;
  if (out->size >= NOTES_BYTES) return;
  struct hb_slice key = hb_event_key(event);
  uint8_t head[5] = {duplicate};
  hb_put_u32_le(head + 1, (uint32_t)key.size);
  hb_buf_append(out, head, sizeof head);
  hb_buf_append(out, key.data, key.size);
  processor->news = true;
}

static void note(struct hb_processor *processor, const struct hb_batch *batch) {
  pthread_mutex_lock(&processor->mutex);
  for (uint32_t i = 0; i < batch->count; i++) {
    enum hb_outcome outcome = batch->decisions[i].outcome;
    if (is_refused(outcome)) {
      append(processor, &batch->events[i], outcome == HB_OUTCOME_DUPLICATE);
    }
  }
  if (processor->news) pthread_cond_broadcast(&processor->changed);
  pthread_mutex_unlock(&processor->mutex);
}

static bool counts(const struct hb_processor *processor, uint64_t stream) {
  return processor->id.stream == stream && !processor->gone &&
         processor->config.key_status != HB_KEY_STATUS_OFF;
}

void hb_processors_note_refusals(struct hb_engine *engine, const struct hb_stream *stream,
                                 const struct hb_batch *batch) {
  const struct hb_processors *all = &engine->processors;
  if (all->count == 0 || batch->error.code != HB_OK) return;
  for (size_t i = 0; i < all->count; i++) { /* the sequencer alone changes the list */
    struct hb_processor *processor = all->items[i];
    if (counts(processor, stream->id)) note(processor, batch);
  }
}

static void note_moved(struct hb_processor *processor, const struct hb_commit *commit) {
  pthread_mutex_lock(&processor->mutex);
  for (size_t i = 0; i < commit->unprocessed_count; i++) {
    const struct hb_put_unprocessed *put = &commit->unprocessed[i];
    bool moved = put->was_stored && counts(processor, put->stream);
    if (moved) append(processor, put->event, false);
  }
  if (processor->news) pthread_cond_broadcast(&processor->changed);
  pthread_mutex_unlock(&processor->mutex);
}

void hb_processors_note_moved(struct hb_engine *engine, const struct hb_commit *commit) {
  const struct hb_processors *all = &engine->processors;
  if (commit->unprocessed_count == 0) return;
  for (size_t i = 0; i < all->count; i++) note_moved(all->items[i], commit);
}
