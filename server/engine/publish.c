/* Decides what is shown after an fsync: status, blocks, index of every stream that a write since
 * the last one touched (I2), and keeps all shared tails together under shared_blocks_max (I8) by
 * dropping the oldest block of all. Sequencer's thread. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "server/engine/engine_internal.h"

void hb_publish_touch(struct hb_engine *engine, uint64_t id, uint64_t commit) {
  struct hb_stream *stream = hb_registry_find(&engine->sequencer.registry, id);
  HB_ASSERT(stream);
  hb_publish_touch_stream(engine, stream, commit);
}

void hb_publish_touch_stream(struct hb_engine *engine, struct hb_stream *stream, uint64_t commit) {
  struct hb_sequencer *sequencer = &engine->sequencer;
  if (stream->touched == commit) return;
  stream->touched = commit;
  hb_stream_note_write(stream);
  if (stream->dirty) return;
  stream->dirty = true;
  stream->next_dirty = sequencer->dirty;
  sequencer->dirty = hb_stream_ref(stream);
}

void hb_publish_keep(struct hb_engine *engine, const struct hb_commit *commit) {
  struct hb_sequencer *sequencer = &engine->sequencer;
  for (size_t i = 0; i < commit->blocks_count; i++) {
    const struct hb_put_block *put = &commit->blocks[i];
    struct hb_stream *stream = hb_registry_find(&sequencer->registry, put->stream);
    hb_tail_push(&stream->unpublished, put->from, put->to, hb_bytes_ref(put->block));
    sequencer->unpublished_bytes += put->block->size;
  }
}

/* ---- whose block goes next */

static void share_push(struct hb_share *share, struct hb_stream *stream) {
  if (share->count == share->cap) {
    size_t cap = share->cap ? share->cap * 2 : 64;
    struct hb_stream **ring = hb_calloc(cap, sizeof *ring);
    for (size_t i = 0; i < share->count; i++) {
      ring[i] = share->ring[(share->head + i) & (share->cap - 1)];
    }
    free(share->ring);
    share->ring = ring;
    share->cap = cap;
    share->head = 0;
  }
  share->ring[(share->head + share->count++) & (share->cap - 1)] = hb_stream_ref(stream);
}

static void share_shrink(struct hb_share *share, size_t bytes_max) {
  while (share->bytes > bytes_max) {
    HB_ASSERT(share->count > 0);
    struct hb_stream *stream = share->ring[share->head];
    share->head = (share->head + 1) & (share->cap - 1);
    share->count--;
    share->bytes -= hb_stream_evict(stream);
    hb_stream_unref(stream);
  }
}

/* ---- showing */

static struct hb_stream *take_dirty(struct hb_sequencer *sequencer) {
  struct hb_stream *stream = sequencer->dirty;
  if (!stream) return NULL;
  sequencer->dirty = stream->next_dirty;
  stream->next_dirty = NULL;
  stream->dirty = false;
  return stream;
}

static void unstage(struct hb_stream *stream) {
  free(stream->staged);
  stream->staged = NULL;
}

static void show_results(struct hb_engine *engine, struct hb_stream *results) {
  struct hb_share *share = &engine->sequencer.share;
  size_t blocks = 0;
  hb_stream_publish(results, &results->results_status, &blocks, &share->bytes);
  for (size_t i = 0; i < blocks; i++) share_push(share, results);
}

void hb_publish_stage(struct hb_engine *engine) {
  struct hb_now now = hb_sequencer_now(engine);
  for (struct hb_stream *stream = engine->sequencer.dirty; stream; stream = stream->next_dirty) {
    if (stream->is_results) continue;
    if (!stream->staged) stream->staged = hb_calloc(1, sizeof *stream->staged);
    if (!hb_ordering_status(engine->sequencer.core, stream->id, now, stream->staged)) {
      unstage(stream);
    }
  }
}

/* False: the core does not know the stream any more. */
static bool take_status(struct hb_engine *engine, struct hb_stream *stream, struct hb_now now,
                        struct hb_stream_status *out) {
  if (!stream->staged) return hb_ordering_status(engine->sequencer.core, stream->id, now, out);
  *out = *stream->staged;
  unstage(stream);
  return true;
}

static void show(struct hb_engine *engine, struct hb_stream *stream, struct hb_now now) {
  struct hb_share *share = &engine->sequencer.share;
  struct hb_stream_status status;
  if (stream->is_results) {
    show_results(engine, stream);
    return;
  }
  if (!take_status(engine, stream, now, &status)) return;
  if (!stream->indexed_known && status.record.frozen) {
    stream->indexed_to = status.record.earliest; /* nothing is indexed yet */
    stream->indexed_known = true;
  }
  status.indexed_to = stream->indexed_to;
  engine->disk.held += status.held_bytes - stream->status.held_bytes;
  bool moved = status.record.frozen && (!stream->status.record.frozen ||
                                        status.record.frontier > stream->status.record.frontier);
  size_t blocks = 0;
  hb_stream_publish(stream, &status, &blocks, &share->bytes);
  for (size_t i = 0; i < blocks; i++) share_push(share, stream);
  if (moved) hb_indexer_kick(engine, stream);
}

void hb_publish_all(struct hb_engine *engine) {
  struct hb_sequencer *sequencer = &engine->sequencer;
  struct hb_now now = hb_sequencer_now(engine);
  struct hb_stream *stream;
  while ((stream = take_dirty(sequencer)) != NULL) {
    show(engine, stream, now);
    hb_stream_unref(stream);
  }
  sequencer->unpublished_bytes = 0;
  share_shrink(&sequencer->share, engine->limits.shared_blocks_max);
}

void hb_publish_drop(struct hb_engine *engine, struct hb_stream *stream) {
  size_t bytes;
  while ((bytes = hb_stream_evict(stream)) > 0) engine->sequencer.share.bytes -= bytes;
}

void hb_publish_reset(struct hb_engine *engine) {
  struct hb_sequencer *sequencer = &engine->sequencer;
  for (size_t i = 0; i < sequencer->registry.count; i++) {
    struct hb_stream *stream = sequencer->registry.streams[i];
    hb_publish_drop(engine, stream);
    hb_tail_done(&stream->unpublished);
    stream->touched = 0;
  }
  hb_processors_reset_results(engine);
  sequencer->unpublished_bytes = 0;
  hb_publish_done(engine);
}

void hb_publish_done(struct hb_engine *engine) {
  struct hb_sequencer *sequencer = &engine->sequencer;
  struct hb_stream *stream;
  while ((stream = take_dirty(sequencer)) != NULL) {
    unstage(stream);
    hb_stream_unref(stream);
  }
  for (size_t i = 0; i < sequencer->share.count; i++) {
    struct hb_share *share = &sequencer->share;
    hb_stream_unref(share->ring[(share->head + i) & (share->cap - 1)]);
  }
  free(sequencer->share.ring);
  sequencer->share = (struct hb_share){0};
}
