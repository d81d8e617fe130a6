/* Decides what of a stream is seen from outside: what was published last, under one short lock.
 *
 * Status and tail change together, so whoever looks finds the tail ending exactly at the
 * frontier (I2). Blocks that leave the tail are given back outside of the lock. */
#include "server/engine/stream.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/endian.h"
#include "base/live.h"
#include "server/engine/stream_internal.h"

struct hb_stream *hb_stream_create(uint64_t id, const uint8_t store_incarnation[16],
                                   const struct hb_stream_config *stored,
                                   const struct hb_stream_config *resolved) {
  struct hb_stream *stream = hb_calloc(1, sizeof *stream);
  hb_live_born(HB_LIVE_streams);
  stream->refs = 1;
  stream->id = id;
  memcpy(stream->incarnation, store_incarnation, 16);
  hb_put_u64_be(stream->incarnation + 16, id);
  pthread_mutex_init(&stream->mutex, NULL);
  pthread_cond_init(&stream->settled, NULL);
  memcpy(stream->name, stored->name, sizeof stream->name);
  stream->mode = resolved->mode;
  stream->config = *resolved;
  stream->stored = *stored;
  return stream;
}

struct hb_stream *hb_stream_ref(struct hb_stream *stream) {
  uint32_t before = atomic_fetch_add_explicit(&stream->refs, 1, memory_order_relaxed);
  HB_ASSERT(before > 0);
  return stream;
}

void hb_stream_unref(struct hb_stream *stream) {
  if (!stream) return;
  uint32_t before = atomic_fetch_sub_explicit(&stream->refs, 1, memory_order_acq_rel);
  HB_ASSERT(before > 0);
  if (before > 1) return;
  HB_ASSERT(!stream->armed && !stream->idle);
  HB_ASSERT(!stream->dirty && !stream->part && !stream->staged);
  hb_tail_done(&stream->tail);
  hb_tail_done(&stream->unpublished);
  pthread_cond_destroy(&stream->settled);
  pthread_mutex_destroy(&stream->mutex);
  free(stream);
  hb_live_gone(HB_LIVE_streams);
}

const uint8_t *hb_stream_incarnation(const struct hb_stream *stream) { return stream->incarnation; }

enum hb_mode hb_stream_mode(const struct hb_stream *stream) { return stream->mode; }

void hb_stream_get_config(struct hb_stream *stream, struct hb_stream_config *out) {
  pthread_mutex_lock(&stream->mutex);
  *out = stream->config;
  pthread_mutex_unlock(&stream->mutex);
}

void hb_stream_get_status(struct hb_stream *stream, struct hb_stream_status *out) {
  pthread_mutex_lock(&stream->mutex);
  *out = stream->status;
  pthread_mutex_unlock(&stream->mutex);
}

bool hb_stream_is_deleted(struct hb_stream *stream) {
  pthread_mutex_lock(&stream->mutex);
  bool deleted = stream->deleted;
  pthread_mutex_unlock(&stream->mutex);
  return deleted;
}

uint64_t hb_stream_event_bytes_max(struct hb_stream *stream) {
  pthread_mutex_lock(&stream->mutex);
  uint64_t bytes = stream->config.limits.event_bytes_max;
  pthread_mutex_unlock(&stream->mutex);
  return bytes;
}

void hb_stream_set_config(struct hb_stream *stream, const struct hb_stream_config *resolved) {
  pthread_mutex_lock(&stream->mutex);
  stream->config = *resolved;
  pthread_mutex_unlock(&stream->mutex);
}

enum hb_tail_result hb_stream_read_tail(struct hb_stream *stream, int64_t position,
                                        struct hb_bytes **out, size_t max, size_t bytes_max,
                                        size_t *out_count) {
  enum hb_tail_result result = HB_TAIL_BLOCKS;
  size_t count = 0;
  size_t bytes = 0;
  pthread_mutex_lock(&stream->mutex);
  size_t index = hb_tail_find(&stream->tail, position);
  if (!stream->status.record.frozen || position >= stream->status.record.frontier) {
    result = HB_TAIL_CAUGHT_UP;
  } else if (index == stream->tail.count) {
    result = HB_TAIL_BEHIND;
  } else {
    for (; index < stream->tail.count && count < max; index++) {
      struct hb_bytes *block = hb_tail_at(&stream->tail, index)->block;
      if (count > 0 && block->size > bytes_max - bytes) break;
      out[count++] = hb_bytes_ref(block);
      bytes += block->size;
      if (bytes >= bytes_max) break;
    }
  }
  pthread_mutex_unlock(&stream->mutex);
  if (result == HB_TAIL_BLOCKS) *out_count = count;
  return result;
}

void hb_stream_note_write(struct hb_stream *stream) {
  pthread_mutex_lock(&stream->mutex);
  stream->written++;
  pthread_mutex_unlock(&stream->mutex);
}

void hb_stream_publish(struct hb_stream *stream, const struct hb_stream_status *status,
                       size_t *out_blocks, size_t *out_bytes) {
  struct hb_tail_block block;
  pthread_mutex_lock(&stream->mutex);
  HB_ASSERT(!stream->status.record.frozen || !status->record.frozen ||
            status->record.frontier >= stream->status.record.frontier); /* I5 */
  while (hb_tail_pop(&stream->unpublished, &block)) {
    hb_tail_push(&stream->tail, block.from, block.to, block.block);
    *out_blocks += 1;
    *out_bytes += block.block->size;
  }
  stream->status = *status;
  stream->published = stream->written;
  stream->lost = false; /* after a rebuild */
  stream->version++;
  pthread_cond_broadcast(&stream->settled);
  hb_watches_call_locked(stream);
  pthread_mutex_unlock(&stream->mutex);
}

size_t hb_stream_evict(struct hb_stream *stream) {
  struct hb_tail_block block;
  pthread_mutex_lock(&stream->mutex);
  bool any = hb_tail_pop(&stream->tail, &block);
  pthread_mutex_unlock(&stream->mutex);
  if (!any) return 0;
  size_t bytes = block.block->size;
  hb_bytes_unref(block.block);
  return bytes;
}

void hb_stream_mark_deleted(struct hb_stream *stream) {
  pthread_mutex_lock(&stream->mutex);
  stream->deleted = true;
  stream->version++;
  pthread_cond_broadcast(&stream->settled);
  hb_watches_call_locked(stream);
  pthread_mutex_unlock(&stream->mutex);
}

void hb_stream_mark_lost(struct hb_stream *stream) {
  pthread_mutex_lock(&stream->mutex);
  stream->lost = true;
  pthread_cond_broadcast(&stream->settled);
  pthread_mutex_unlock(&stream->mutex);
}

void hb_stream_set_damage(struct hb_stream *stream, const struct hb_err *err) {
  pthread_mutex_lock(&stream->mutex);
  bool changed = stream->damaged != (err != NULL);
  stream->damaged = err != NULL;
  if (err) stream->damage = *err;
  if (changed) {
    stream->version++;
    hb_watches_call_locked(stream);
  }
  pthread_mutex_unlock(&stream->mutex);
}

bool hb_stream_get_damage(struct hb_stream *stream, struct hb_err *out) {
  pthread_mutex_lock(&stream->mutex);
  bool damaged = stream->damaged;
  int64_t position = stream->status.record.frontier;
  if (damaged) *out = stream->damage;
  pthread_mutex_unlock(&stream->mutex);
  if (damaged) {
    hb_err_wrap(out, "stream '%s': the event at position %" PRId64 " is held and can't be read",
                stream->name, position);
  }
  return damaged;
}

void hb_stream_forget_write(struct hb_stream *stream) {
  pthread_mutex_lock(&stream->mutex);
  HB_ASSERT(stream->written > stream->published);
  stream->written--;
  pthread_cond_broadcast(&stream->settled);
  pthread_mutex_unlock(&stream->mutex);
}

bool hb_stream_settle(struct hb_stream *stream) {
  pthread_mutex_lock(&stream->mutex);
  uint64_t until = stream->written;
  while (stream->published < until && !stream->deleted && !stream->lost) {
    pthread_cond_wait(&stream->settled, &stream->mutex);
  }
  bool settled = stream->published >= until && !stream->deleted;
  pthread_mutex_unlock(&stream->mutex);
  return settled;
}
