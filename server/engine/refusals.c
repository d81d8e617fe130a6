/* Decides which refusals are counted by key: those of streams with a processor that keeps statuses.
 *
 * An event that is not stored leaves no trace that could be counted later, so it is noted when it
 * is answered. Notes are kept in memory until the processor's next bundle, within a bound; a crash
 * costs them, and so does whoever sends refused events faster than they can be counted. A full
 * window is no refusal: the event comes again. */
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

static void append(struct hb_buf *out, const struct hb_event *event, bool duplicate) {
  struct hb_slice key = hb_event_key(event);
  uint8_t head[5] = {duplicate};
  hb_put_u32_le(head + 1, (uint32_t)key.size);
  hb_buf_append(out, head, sizeof head);
  hb_buf_append(out, key.data, key.size);
}

static void note(struct hb_processor *processor, const struct hb_batch *batch) {
  pthread_mutex_lock(&processor->mutex);
  for (uint32_t i = 0; i < batch->count && processor->refused.size < NOTES_BYTES; i++) {
    enum hb_outcome outcome = batch->decisions[i].outcome;
    if (!is_refused(outcome)) continue;
    append(&processor->refused, &batch->events[i], outcome == HB_OUTCOME_DUPLICATE);
    processor->news = true;
  }
  if (processor->news) pthread_cond_broadcast(&processor->changed);
  pthread_mutex_unlock(&processor->mutex);
}

void hb_processors_note_refusals(struct hb_engine *engine, const struct hb_stream *stream,
                                 const struct hb_batch *batch) {
  const struct hb_processors *all = &engine->processors;
  if (all->count == 0 || batch->error.code != HB_OK) return;
  for (size_t i = 0; i < all->count; i++) { /* the sequencer alone changes the list */
    struct hb_processor *processor = all->items[i];
    bool counts = processor->id.stream == stream->id && !processor->gone &&
                  processor->config.key_status != HB_KEY_STATUS_OFF;
    if (counts) note(processor, batch);
  }
}
