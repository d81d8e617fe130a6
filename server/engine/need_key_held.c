/* Decides whether events that a producer sent again are what is held of their keys and on disk only
 * (NEED of a PER_KEY stream): each bundle is read once for all questions about it. One that is gone
 * was released or rewritten, and the core names the place again. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/frame/block.h"
#include "server/engine/need_key_internal.h"
#include "storage/read.h"

static int by_bundle(const void *a, const void *b) {
  const struct hb_need_key *left = *(struct hb_need_key *const *)a;
  const struct hb_need_key *right = *(struct hb_need_key *const *)b;
  if (left->bundle.commit != right->bundle.commit) {
    return left->bundle.commit < right->bundle.commit ? -1 : 1;
  }
  return (left->bundle.part > right->bundle.part) - (left->bundle.part < right->bundle.part);
}

static enum hb_code compare(const struct hb_need *need, struct hb_need_key *ask,
                            const struct hb_block *block, struct hb_err *err) {
  const struct hb_event *event = &need->batch->events[ask->index];
  struct hb_event held;
  if (ask->at < block->count) {
    enum hb_code code = hb_scan_frame(hb_block_frame(block, ask->at), &held, err);
    if (code != HB_OK) return code;
    if (held.sequence == event->sequence &&
        hb_slice_equal(hb_event_key(&held), hb_event_key(event))) {
      bool same = hb_event_same(event, &held);
      ask->verdict = same ? HB_VERDICT_EQUAL : HB_VERDICT_DIFFERENT;
      return HB_OK;
    }
  }
  return hb_err_set(err, HB_CORRUPT, NULL,
                    "bundle %" PRIu64 "/%" PRIu32 ", event %" PRIu32 ": it is not sequence %" PRId64
                    " of its key",
                    ask->bundle.commit, ask->bundle.part, ask->at, event->sequence);
}

static enum hb_code compare_bundle(struct hb_engine *engine, const struct hb_need *need,
                                   struct hb_need_key **asks, size_t count, struct hb_err *err) {
  struct hb_bytes *bytes = NULL;
  struct hb_block block;
  enum hb_code code = hb_bundle_read(engine->store, asks[0]->bundle, &bytes, err);
  for (size_t i = 0; i < count; i++) asks[i]->verdict = HB_VERDICT_MOVED;
  if (code != HB_OK || !bytes) return code;
  code = hb_block_decode(hb_bytes_view(bytes), &block, err);
  for (size_t i = 0; code == HB_OK && i < count; i++) code = compare(need, asks[i], &block, err);
  hb_bytes_unref(bytes);
  return code;
}

enum hb_code hb_need_keys_held(struct hb_engine *engine, struct hb_need *need, struct hb_err *err) {
  struct hb_need_key **asks = hb_calloc(need->keys_count, sizeof(struct hb_need_key *));
  size_t count = 0;
  for (size_t i = 0; i < need->keys_count; i++) {
    if (need->keys[i].place == HB_PLACE_KEY_HELD) asks[count++] = &need->keys[i];
  }
  if (count > 1) qsort(asks, count, sizeof *asks, by_bundle);
  enum hb_code code = HB_OK;
  size_t end;
  for (size_t start = 0; code == HB_OK && start < count; start = end) {
    end = start + 1;
    while (end < count && by_bundle(&asks[start], &asks[end]) == 0) end++;
    code = compare_bundle(engine, need, asks + start, end - start, err);
  }
  free((void *)asks);
  return code;
}
