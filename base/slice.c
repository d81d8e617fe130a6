/* Decides byte order and how a buffer grows: by doubling, so that appending costs O(1). */
#include "base/slice.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

struct hb_slice hb_slice_of(const void *data, size_t size) {
  return (struct hb_slice){.data = data, .size = size};
}

struct hb_slice hb_slice_text(const char *text) {
  return hb_slice_of(text, strlen(text));
}

bool hb_slice_equal(struct hb_slice a, struct hb_slice b) {
  return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

int hb_slice_compare(struct hb_slice a, struct hb_slice b) {
  size_t common = a.size < b.size ? a.size : b.size;
  int order = common ? memcmp(a.data, b.data, common) : 0;
  return order ? order : (a.size > b.size) - (a.size < b.size);
}

bool hb_slice_starts_with(struct hb_slice slice, struct hb_slice prefix) {
  return slice.size >= prefix.size &&
         (prefix.size == 0 || memcmp(slice.data, prefix.data, prefix.size) == 0);
}

void hb_buf_done(struct hb_buf *buf) {
  free(buf->data);
  *buf = (struct hb_buf){0};
}

void hb_buf_clear(struct hb_buf *buf) { buf->size = 0; }

uint8_t *hb_buf_reserve(struct hb_buf *buf, size_t size) {
  hb_reserve((void **)&buf->data, &buf->cap, buf->size + size, 1);
  return buf->size ? buf->data + buf->size : buf->data; /* which may be NULL still */
}

void hb_buf_append(struct hb_buf *buf, const void *data, size_t size) {
  if (!size) return;
  memcpy(hb_buf_reserve(buf, size), data, size);
  buf->size += size;
}

void hb_buf_append_u8(struct hb_buf *buf, uint8_t value) { hb_buf_append(buf, &value, 1); }

struct hb_slice hb_buf_view(const struct hb_buf *buf) {
  return hb_slice_of(buf->data, buf->size);
}

uint8_t *hb_buf_take(struct hb_buf *buf, size_t *out_size) {
  uint8_t *data = buf->data ? buf->data : hb_alloc(0);
  *out_size = buf->size;
  *buf = (struct hb_buf){0};
  return data;
}
