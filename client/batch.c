/* Decides when a batch's memory goes: with the last of answer and transport. */
#include "client/batch.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/frame/wire.h"

struct hbc_batch *hbc_batch_create(size_t size) {
  struct hbc_batch *batch = hb_calloc(1, sizeof *batch);
  batch->refs = 1;
  (void)hb_buf_reserve(&batch->frames, size);
  return batch;
}

void hbc_batch_unref(struct hbc_batch *batch) {
  if (atomic_fetch_sub_explicit(&batch->refs, 1, memory_order_acq_rel) > 1) return;
  hb_buf_done(&batch->frames);
  free(batch->runs);
  free(batch);
}

void hbc_batch_added(struct hbc_batch *batch, uint64_t index) {
  batch->count++;
  if (batch->runs_count) {
    struct hbc_index_run *last = &batch->runs[batch->runs_count - 1];
    if (last->first + last->count == index) {
      last->count++;
      return;
    }
  }
  hb_reserve((void **)&batch->runs, &batch->runs_cap, batch->runs_count + 1, sizeof *batch->runs);
  batch->runs[batch->runs_count++] = (struct hbc_index_run){.first = index, .count = 1};
}

static void unref_slice(void *batch) { hbc_batch_unref(batch); }

grpc_slice hbc_batch_slice(struct hbc_batch *batch) {
  atomic_fetch_add_explicit(&batch->refs, 1, memory_order_relaxed);
  return grpc_slice_new_with_user_data(batch->frames.data, batch->frames.size, unref_slice, batch);
}

uint32_t hbc_batch_next_run(struct hbc_batch_cursor *cursor, uint32_t max, uint64_t *out_index) {
  HB_ASSERT(max > 0);
  HB_ASSERT(cursor->run < cursor->batch->runs_count);
  const struct hbc_index_run *run = &cursor->batch->runs[cursor->run];
  uint32_t left = run->count - cursor->in_run;
  uint32_t count = left < max ? left : max;
  *out_index = run->first + cursor->in_run;
  cursor->in_run += count;
  if (cursor->in_run == run->count) {
    cursor->run++;
    cursor->in_run = 0;
  }
  return count;
}

struct hb_slice hbc_batch_next_frame(struct hbc_batch_cursor *cursor) {
  const struct hb_buf *frames = &cursor->batch->frames;
  struct hb_wire_reader reader = {frames->data + cursor->offset, frames->data + frames->size};
  struct hb_wire_field field;
  enum hb_wire_result result = hb_wire_next(&reader, &field);
  HB_ASSERT(result == HB_WIRE_FIELD);
  cursor->offset = (size_t)(field.end - frames->data);
  return hb_slice_of(field.start, (size_t)(field.end - field.start));
}
