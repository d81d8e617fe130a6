/* Decides what stored content says about events that a producer sent again (NEED), and brings
 * spilled bundles (FETCH).
 *
 * Items of one bundle are compared with one read of it, whatever their order; then those in the
 * log, ascending, so each block is read once. A bundle that is gone was released or rewritten: its
 * items are looked for in the log, for release and delete are one write, and if they aren't there
 * either they have MOVED: the core names the place again. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/frame/block.h"
#include "base/log.h"
#include "server/engine/cursor_internal.h"
#include "server/engine/engine_internal.h"
#include "server/engine/need_key_internal.h"
#include "storage/read.h"

static struct hb_bundle_id bundle_of(const struct hb_need *need, const struct hb_need_item *item) {
  return (struct hb_bundle_id){
      .stream = need->batch->stream, .commit = item->commit, .part = item->part};
}

static int by_bundle(const void *a, const void *b) {
  const struct hb_need_item *left = *(struct hb_need_item *const *)a;
  const struct hb_need_item *right = *(struct hb_need_item *const *)b;
  if (left->commit != right->commit) return left->commit < right->commit ? -1 : 1;
  if (left->part != right->part) return left->part < right->part ? -1 : 1;
  return (left->sequence > right->sequence) - (left->sequence < right->sequence);
}

/* Compare with the event of that sequence in the block; *out unchanged where it has none. */
static enum hb_code compare(const struct hb_need *need, struct hb_need_item *item,
                            const struct hb_block *block, struct hb_err *err) {
  uint32_t index = hb_block_find(block, item->sequence);
  if (index == block->count || hb_block_sequence(block, index) != item->sequence) return HB_OK;
  struct hb_event stored;
  enum hb_code code = hb_scan_frame(hb_block_frame(block, index), &stored, err);
  if (code != HB_OK) return code;
  bool same = hb_event_same(&need->batch->events[item->index], &stored);
  item->verdict = same ? HB_VERDICT_EQUAL : HB_VERDICT_DIFFERENT;
  return HB_OK;
}

/* ---- bundles */

static enum hb_code compare_bundle(struct hb_engine *engine, struct hb_need *need,
                                   struct hb_need_item **items, size_t count, struct hb_err *err) {
  struct hb_bytes *bytes = NULL;
  struct hb_block block;
  enum hb_code code = hb_bundle_read(engine->store, bundle_of(need, items[0]), &bytes, err);
  if (code != HB_OK || !bytes) return code;
  code = hb_block_decode(hb_bytes_view(bytes), &block, err);
  for (size_t i = 0; code == HB_OK && i < count; i++) code = compare(need, items[i], &block, err);
  hb_bytes_unref(bytes);
  return code;
}

static enum hb_code compare_bundles(struct hb_engine *engine, struct hb_need *need,
                                    struct hb_err *err) {
  struct hb_need_item **items = hb_calloc(need->count, sizeof(struct hb_need_item *));
  size_t count = 0;
  for (size_t i = 0; i < need->count; i++) {
    if (need->items[i].place == HB_PLACE_BUNDLE) items[count++] = &need->items[i];
  }
  qsort(items, count, sizeof *items, by_bundle);
  enum hb_code code = HB_OK;
  size_t end;
  for (size_t start = 0; code == HB_OK && start < count; start = end) {
    end = start + 1;
    while (end < count && items[end]->commit == items[start]->commit &&
           items[end]->part == items[start]->part) {
      end++;
    }
    code = compare_bundle(engine, need, items + start, end - start, err);
  }
  free((void *)items);
  return code;
}

/* ---- the log */

/* No event of that sequence is in the block that accounts for it. */
static enum hb_verdict verdict_of_empty(const struct hb_block *block) {
  return block->kind == HB_BLOCK_VOID ? HB_VERDICT_VOID : HB_VERDICT_CHAIN;
}

static enum hb_code compare_log(struct hb_need *need, struct hb_need_item *item,
                                struct hb_cursor *cursor, struct hb_err *err) {
  bool found;
  enum hb_code code = hb_cursor_find(cursor, item->sequence, &found, err);
  if (code != HB_OK) return code;
  if (found) {
    code = compare(need, item, &cursor->block, err);
    if (item->verdict == HB_VERDICT_NONE) item->verdict = verdict_of_empty(&cursor->block);
    return code;
  }
  struct hb_stream_status status;
  hb_stream_get_status(cursor->stream, &status);
  if (status.record.frozen && item->sequence < status.record.earliest) {
    item->verdict = HB_VERDICT_TRUNCATED;
  } else if (item->place == HB_PLACE_BUNDLE) {
    item->verdict = HB_VERDICT_MOVED;
  } else {
    code = hb_cursor_hole(cursor->stream, item->sequence, err);
  }
  return code;
}

enum hb_code hb_need_compare(struct hb_engine *engine, struct hb_need *need,
                             struct hb_stream *stream, struct hb_err *err) {
  for (size_t i = 0; i < need->count; i++) need->items[i].verdict = HB_VERDICT_NONE;
  enum hb_code code = compare_bundles(engine, need, err);
  struct hb_cursor cursor;
  hb_cursor_init(&cursor, engine->store, stream, 0);
  for (size_t i = 0; code == HB_OK && i < need->count; i++) {
    if (need->items[i].verdict != HB_VERDICT_NONE) continue;
    code = compare_log(need, &need->items[i], &cursor, err);
  }
  hb_cursor_done(&cursor);
  return code;
}

void hb_need_run(struct hb_engine *engine, struct hb_node *node) {
  struct hb_need *need = (struct hb_need *)node;
  struct hb_stream *stream = ((struct hb_append *)need->batch)->target;
  struct hb_err err = {0};
  enum hb_code code = need->keys_count ? hb_need_keys(engine, need, stream, &err)
                                       : hb_need_compare(engine, need, stream, &err);
  if (code != HB_OK && hb_stream_is_deleted(stream)) {
    code = hb_err_no_stream(&err, stream->name); /* its data was being dropped meanwhile */
  } else if (code != HB_OK) {
    char quoted[HB_ERR_MESSAGE_SIZE];
    hb_log(HB_LOG_ERROR, "compare_failed", "stream=%s cause=%s", stream->name,
           hb_log_quote(err.message, quoted, sizeof quoted));
  }
  if (code != HB_OK) need->error = err;
  hb_mailbox_post(engine->sequencer.needs, node);
}

void hb_need_refuse(struct hb_engine *engine, struct hb_node *node) {
  struct hb_need *need = (struct hb_need *)node;
  (void)hb_err_no_store(&need->error);
  hb_mailbox_post(engine->sequencer.needs, node);
}

/* ---- FETCH */

void hb_fetch_run(struct hb_engine *engine, struct hb_node *node) {
  struct hb_fetch *fetch = (struct hb_fetch *)node;
  if (hb_bundle_read(engine->store, fetch->id, &fetch->block, &fetch->error) != HB_OK) {
    char quoted[HB_ERR_MESSAGE_SIZE];
    hb_log(HB_LOG_ERROR, "bundle_unreadable", "stream_id=%" PRIu64 " commit=%" PRIu64 " cause=%s",
           fetch->id.stream, fetch->id.commit,
           hb_log_quote(fetch->error.message, quoted, sizeof quoted));
  }
  hb_mailbox_post(engine->sequencer.fetched, node);
}

/* The bundle is asked for again. */
void hb_fetch_refuse(struct hb_engine *engine, struct hb_node *node) {
  hb_mailbox_post(engine->sequencer.fetched, node);
}
