/* Decides who frees shared bytes: whoever drops the last reference, on the thread that does. */
#include "base/bytes.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/live.h"

struct hb_bytes *hb_bytes_create(size_t size, uint8_t **out_data) {
  struct hb_bytes *bytes = hb_alloc(sizeof *bytes + size);
  uint8_t *data = (uint8_t *)(bytes + 1);
  *bytes = (struct hb_bytes){.refs = 1, .data = data, .size = size};
  hb_live_born(HB_LIVE_blocks);
  *out_data = data;
  return bytes;
}

struct hb_bytes *hb_bytes_copy(struct hb_slice from) {
  uint8_t *data;
  struct hb_bytes *bytes = hb_bytes_create(from.size, &data);
  if (from.size) memcpy(data, from.data, from.size);
  return bytes;
}

struct hb_bytes *hb_bytes_wrap(const uint8_t *data, size_t size, void (*release)(void *),
                               void *context) {
  struct hb_bytes *bytes = hb_alloc(sizeof *bytes);
  *bytes = (struct hb_bytes){
      .refs = 1, .data = data, .size = size, .release = release, .context = context};
  hb_live_born(HB_LIVE_blocks);
  return bytes;
}

struct hb_bytes *hb_bytes_ref(struct hb_bytes *bytes) {
  uint32_t before = atomic_fetch_add_explicit(&bytes->refs, 1, memory_order_relaxed);
  HB_ASSERT(before > 0);
  return bytes;
}

void hb_bytes_unref(struct hb_bytes *bytes) {
  if (!bytes) return;
  /* acq_rel: the last owner must see every other owner's reads done before it frees. */
  uint32_t before = atomic_fetch_sub_explicit(&bytes->refs, 1, memory_order_acq_rel);
  HB_ASSERT(before > 0);
  if (before > 1) return;
  if (bytes->release) bytes->release(bytes->context);
  free(bytes);
  hb_live_gone(HB_LIVE_blocks);
}

struct hb_slice hb_bytes_view(const struct hb_bytes *bytes) {
  return hb_slice_of(bytes->data, bytes->size);
}
