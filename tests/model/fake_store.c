/* Decides what a store remembers: the commits of the core, and nothing that was not committed. */
#include "tests/model/fake_store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/frame/block.h"
#include "tests/model/test_batch.h"

#define FAKE_RESERVE(owner, name)                                                      \
  hb_reserve((void **)&(owner)->name, &(owner)->name##_cap, (owner)->name##_count + 1, \
             sizeof *(owner)->name)

static void stream_done(struct hb_fake_stream *stream) {
  for (size_t i = 0; i < stream->blocks_count; i++) hb_bytes_unref(stream->blocks[i].block);
  for (size_t i = 0; i < stream->bundles_count; i++) hb_bytes_unref(stream->bundles[i].block);
  free(stream->blocks);
  free(stream->bundles);
  free(stream->gaps);
  free(stream->refusals);
  memset(stream, 0, sizeof *stream);
}

void hb_fake_store_done(struct hb_fake_store *store) {
  for (size_t i = 0; i < HB_FAKE_STREAMS; i++) stream_done(&store->streams[i]);
}

static void *copy_rows(const void *rows, size_t size) {
  return size ? hb_memdup(rows, size) : NULL;
}

static void copy_stream(struct hb_fake_stream *to, const struct hb_fake_stream *from) {
  stream_done(to);
  *to = *from;
  to->blocks_cap = from->blocks_count;
  to->bundles_cap = from->bundles_count;
  to->gaps_cap = from->gaps_count;
  to->refusals_cap = from->refusals_count;
  to->blocks = copy_rows(from->blocks, from->blocks_count * sizeof *from->blocks);
  to->bundles = copy_rows(from->bundles, from->bundles_count * sizeof *from->bundles);
  to->gaps = copy_rows(from->gaps, from->gaps_count * sizeof *from->gaps);
  to->refusals = copy_rows(from->refusals, from->refusals_count * sizeof *from->refusals);
  for (size_t i = 0; i < to->blocks_count; i++) hb_bytes_ref(to->blocks[i].block);
  for (size_t i = 0; i < to->bundles_count; i++) hb_bytes_ref(to->bundles[i].block);
}

void hb_fake_store_copy(struct hb_fake_store *to, const struct hb_fake_store *from) {
  for (size_t i = 0; i < HB_FAKE_STREAMS; i++) {
    if (to->streams[i].id || from->streams[i].id) copy_stream(&to->streams[i], &from->streams[i]);
  }
  to->last_commit = from->last_commit;
}

struct hb_fake_stream *hb_fake_find(struct hb_fake_store *store, uint64_t id) {
  for (size_t i = 0; i < HB_FAKE_STREAMS; i++) {
    if (store->streams[i].id == id) return &store->streams[i];
  }
  return NULL;
}

static struct hb_fake_stream *must_find(struct hb_fake_store *store, uint64_t id) {
  struct hb_fake_stream *stream = hb_fake_find(store, id);
  HB_ASSERT(stream);
  return stream;
}

struct hb_fake_stream *hb_fake_add_stream(struct hb_fake_store *store, uint64_t id,
                                          const struct hb_stream_config *config) {
  struct hb_fake_stream *stream = must_find(store, 0);
  stream->id = id;
  stream->config = *config;
  stream->record = hb_ordering_new_record(config);
  return stream;
}

void hb_fake_remove_stream(struct hb_fake_store *store, uint64_t id) {
  stream_done(must_find(store, id));
}

/* ---- reading */

static struct hb_block decode(const struct hb_bytes *bytes) {
  struct hb_block block;
  struct hb_err err;
  assert_int_equal(hb_block_decode(hb_bytes_view(bytes), &block, &err), HB_OK);
  return block;
}

static bool same_id(struct hb_bundle_id a, struct hb_bundle_id b) {
  return a.stream == b.stream && a.commit == b.commit && a.part == b.part;
}

static struct hb_put_bundle *find_bundle(struct hb_fake_stream *stream, struct hb_bundle_id id) {
  for (size_t i = 0; stream && i < stream->bundles_count; i++) {
    if (same_id(stream->bundles[i].id, id)) return &stream->bundles[i];
  }
  return NULL;
}

struct hb_bytes *hb_fake_fetch(struct hb_fake_store *store, struct hb_bundle_id id) {
  struct hb_put_bundle *bundle = find_bundle(hb_fake_find(store, id.stream), id);
  return bundle ? bundle->block : NULL;
}

static bool find_in(const struct hb_bytes *bytes, int64_t sequence, struct hb_slice *out) {
  struct hb_block block = decode(bytes);
  uint32_t at = hb_block_find(&block, sequence);
  if (at == block.count || hb_block_sequence(&block, at) != sequence) return false;
  *out = hb_block_frame(&block, at);
  return true;
}

static bool find_in_log(const struct hb_fake_stream *stream, int64_t sequence,
                        struct hb_slice *out) {
  size_t low = 0;
  size_t high = stream->blocks_count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (stream->blocks[middle].to <= sequence) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < stream->blocks_count && find_in(stream->blocks[low].block, sequence, out);
}

static enum hb_verdict compare(struct hb_fake_stream *stream, const struct hb_need_item *item,
                               const struct hb_event *event) {
  struct hb_slice frame;
  bool found = false;
  if (item->place == HB_PLACE_BUNDLE) {
    struct hb_bundle_id id = {stream->id, item->commit, item->part};
    struct hb_put_bundle *bundle = find_bundle(stream, id);
    found = bundle && find_in(bundle->block, item->sequence, &frame);
    if (bundle) assert_true(found);
  }
  if (!found) found = find_in_log(stream, item->sequence, &frame);
  if (!found) return HB_VERDICT_MOVED;
  struct hb_event stored;
  assert_int_equal(hb_scan_frame(frame, &stored, NULL), HB_OK);
  return hb_event_same(&stored, event) ? HB_VERDICT_EQUAL : HB_VERDICT_DIFFERENT;
}

void hb_fake_answer(struct hb_fake_store *store, struct hb_need *need) {
  struct hb_fake_stream *stream = hb_fake_find(store, need->batch->stream);
  if (!stream) {
    (void)hb_err_set(&need->error, HB_NOT_FOUND, NULL, "stream: it does not exist");
    return;
  }
  for (size_t i = 0; i < need->count; i++) {
    struct hb_need_item *item = &need->items[i];
    if (i > 0) assert_true(need->items[i - 1].sequence <= item->sequence);
    assert_int_equal(item->verdict, HB_VERDICT_NONE);
    const struct hb_event *event = &need->batch->events[item->index];
    assert_int_equal(event->sequence, item->sequence);
    item->verdict = compare(stream, item, event);
  }
}

void hb_fake_each(const struct hb_fake_stream *stream,
                  void (*visit)(void *context, int64_t sequence, struct hb_slice frame),
                  void *context) {
  for (size_t i = 0; i < stream->blocks_count; i++) {
    struct hb_block block = decode(stream->blocks[i].block);
    for (uint32_t k = 0; k < block.count; k++) {
      visit(context, hb_block_sequence(&block, k), hb_block_frame(&block, k));
    }
  }
  for (size_t i = 0; i < stream->bundles_count; i++) {
    struct hb_block block = decode(stream->bundles[i].block);
    for (uint32_t k = hb_block_find(&block, stream->record.frontier); k < block.count; k++) {
      visit(context, hb_block_sequence(&block, k), hb_block_frame(&block, k));
    }
  }
}

bool hb_fake_content(const struct hb_fake_stream *stream, int64_t sequence, uint32_t *out) {
  struct hb_slice frame;
  bool found = find_in_log(stream, sequence, &frame);
  for (size_t i = 0; i < stream->bundles_count && !found; i++) {
    found = find_in(stream->bundles[i].block, sequence, &frame);
  }
  if (found) *out = hb_test_frame_content(frame);
  return found;
}

uint64_t hb_fake_held_bytes(const struct hb_fake_stream *stream) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < stream->bundles_count; i++) bytes += stream->bundles[i].block->size;
  return bytes;
}

/* ---- writing */

static void apply_block(struct hb_fake_stream *stream, const struct hb_put_block *put) {
  struct hb_block block = decode(put->block);
  const struct hb_put_block *last =
      stream->blocks_count ? &stream->blocks[stream->blocks_count - 1] : NULL;
  if (last) assert_int_equal(put->from, last->to); /* I4: no holes, no overlap */
  assert_true(put->from < put->to);
  assert_int_equal(block.from, put->from);
  assert_int_equal(block.to, put->to);
  assert_int_equal((uint64_t)put->to - (uint64_t)put->from, block.count);
  FAKE_RESERVE(stream, blocks);
  stream->blocks[stream->blocks_count++] = *put;
  hb_bytes_ref(put->block);
}

static void apply_frontier(struct hb_fake_stream *stream, const struct hb_frontier *record) {
  if (stream->record.frozen) {
    assert_true(record->frozen);
    assert_int_equal(record->first_sequence, stream->record.first_sequence);
    assert_true(record->complete_to >= stream->record.complete_to); /* I5 */
    assert_true(record->frontier >= stream->record.frontier);
  }
  assert_true(record->frontier <= record->complete_to);
  int64_t log_end =
      stream->blocks_count ? stream->blocks[stream->blocks_count - 1].to : record->first_sequence;
  assert_int_equal(log_end, record->frontier);
  stream->record = *record;
}

static void apply_refusal(struct hb_fake_stream *stream, const struct hb_put_unprocessed *put) {
  for (size_t i = 0; i < stream->refusals_count; i++) {
    struct hb_fake_refusal *there = &stream->refusals[i];
    if (there->outcome == put->outcome && there->sequence == put->event->sequence &&
        there->content_hash == put->content_hash) {
      there->count++;
      return;
    }
  }
  FAKE_RESERVE(stream, refusals);
  stream->refusals[stream->refusals_count++] =
      (struct hb_fake_refusal){put->outcome, put->event->sequence, put->content_hash, 1};
}

static void apply_bundles(struct hb_fake_store *store, const struct hb_commit *commit) {
  for (size_t i = 0; i < commit->bundles_count; i++) {
    const struct hb_put_bundle *put = &commit->bundles[i];
    struct hb_fake_stream *stream = must_find(store, put->id.stream);
    assert_int_equal(put->id.commit, commit->number);
    assert_null(find_bundle(stream, put->id));
    FAKE_RESERVE(stream, bundles);
    stream->bundles[stream->bundles_count++] = *put;
    hb_bytes_ref(put->block);
  }
  for (size_t i = 0; i < commit->drained_count; i++) {
    struct hb_fake_stream *stream = must_find(store, commit->drained[i].stream);
    struct hb_put_bundle *gone = find_bundle(stream, commit->drained[i]);
    HB_ASSERT(gone);
    assert_true(gone->id.commit != commit->number); /* never put and deleted at once */
    hb_bytes_unref(gone->block);
    *gone = stream->bundles[--stream->bundles_count];
  }
}

static void apply_gaps(struct hb_fake_store *store, const struct hb_commit *commit) {
  assert_true(commit->gaps_count <= 1000 && commit->gone_gaps_count <= 1000);
  for (size_t i = 0; i < commit->gaps_count; i++) {
    struct hb_fake_stream *stream = must_find(store, commit->gaps[i].stream);
    for (size_t k = 0; k < stream->gaps_count; k++) {
      assert_true(stream->gaps[k].start != commit->gaps[i].gap.start);
    }
    FAKE_RESERVE(stream, gaps);
    stream->gaps[stream->gaps_count++] = commit->gaps[i].gap;
  }
  for (size_t i = 0; i < commit->gone_gaps_count; i++) {
    struct hb_fake_stream *stream = must_find(store, commit->gone_gaps[i].stream);
    size_t at = 0;
    while (at < stream->gaps_count && stream->gaps[at].start != commit->gone_gaps[i].start) at++;
    assert_true(at < stream->gaps_count);
    stream->gaps[at] = stream->gaps[--stream->gaps_count];
  }
}

void hb_fake_apply(struct hb_fake_store *store, const struct hb_commit *commit) {
  if (hb_commit_is_empty(commit)) return;
  assert_int_equal(commit->number, store->last_commit + 1);
  store->last_commit = commit->number;
  for (size_t i = 0; i < commit->blocks_count; i++) {
    apply_block(must_find(store, commit->blocks[i].stream), &commit->blocks[i]);
  }
  apply_bundles(store, commit);
  for (size_t i = 0; i < commit->frontiers_count; i++) {
    assert_int_equal(commit->frontiers[i].record.commit, commit->number);
    apply_frontier(must_find(store, commit->frontiers[i].stream), &commit->frontiers[i].record);
  }
  for (size_t i = 0; i < commit->unprocessed_count; i++) {
    const struct hb_put_unprocessed *put = &commit->unprocessed[i];
    apply_refusal(must_find(store, put->stream), put);
  }
  apply_gaps(store, commit);
}

enum hb_code hb_fake_recover(struct hb_fake_store *store, struct hb_ordering *core,
                             struct hb_now now, struct hb_err *err) {
  for (size_t i = 0; i < HB_FAKE_STREAMS; i++) {
    struct hb_fake_stream *stream = &store->streams[i];
    if (!stream->id) continue;
    enum hb_code code =
        hb_ordering_add_stream(core, stream->id, &stream->config, &stream->record, err);
    for (size_t k = stream->bundles_count; k > 0 && !code; k--) {
      const struct hb_put_bundle *bundle = &stream->bundles[k - 1];
      code = hb_ordering_recover_bundle(core, bundle->id, bundle->block, err);
    }
    for (size_t k = 0; k < stream->gaps_count; k++) {
      hb_ordering_recover_gap(core, stream->id, stream->gaps[k]);
    }
    for (size_t k = 0; k < stream->refusals_count; k++) {
      const struct hb_fake_refusal *row = &stream->refusals[k];
      hb_ordering_recover_unprocessed(core, stream->id, row->outcome, row->sequence,
                                      row->content_hash);
    }
    if (!code) code = hb_ordering_recover_end(core, stream->id, now, err);
    if (code) return code;
  }
  return HB_OK;
}

/* ---- checking */

struct sequences {
  int64_t *items;
  size_t items_count, items_cap;
};

static void add_sequence(void *context, int64_t sequence, struct hb_slice frame) {
  struct sequences *all = context;
  (void)frame;
  FAKE_RESERVE(all, items);
  all->items[all->items_count++] = sequence;
}

static int compare_sequences(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a;
  int64_t y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

void hb_fake_check(const struct hb_fake_stream *stream) {
  struct sequences all = {0};
  hb_fake_each(stream, add_sequence, &all);
  if (all.items_count) qsort(all.items, all.items_count, sizeof *all.items, compare_sequences);
  for (size_t i = 1; i < all.items_count; i++)
    assert_true(all.items[i - 1] < all.items[i]); /* I10 */
  if (stream->record.frozen) {
    int64_t at = stream->record.first_sequence;
    for (size_t i = 0; i < all.items_count && all.items[i] == at; i++) at++;
    assert_int_equal(at, stream->record.complete_to); /* I4 */
  }
  free(all.items);
}
