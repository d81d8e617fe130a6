/* Bytes: a slice looks at them, a buffer owns and grows them. Neither is NUL-terminated. */
#ifndef HB_BASE_SLICE_H
#define HB_BASE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A view; lives as long as what it looks at. {NULL, 0} is the empty slice. */
struct hb_slice {
  const uint8_t *data;
  size_t size;
};

struct hb_slice hb_slice_of(const void *data, size_t size);
struct hb_slice hb_slice_text(const char *text);
/* Past the last byte; NULL of {NULL, 0}, to which C adds nothing, not even 0. */
static inline const uint8_t *hb_slice_end(struct hb_slice slice) {
  return slice.size ? slice.data + slice.size : slice.data;
}
bool hb_slice_equal(struct hb_slice a, struct hb_slice b);
/* Byte order, a prefix before what it begins: < 0, 0, > 0. */
int hb_slice_compare(struct hb_slice a, struct hb_slice b);
bool hb_slice_starts_with(struct hb_slice slice, struct hb_slice prefix);

/* Zeroed = empty. */
struct hb_buf {
  uint8_t *data; /* owned */
  size_t size;
  size_t cap;
};

void hb_buf_done(struct hb_buf *buf);
/* Empty, capacity kept. */
void hb_buf_clear(struct hb_buf *buf);
/* Room for `size` more bytes at the end, not counted in buf->size yet. Valid until the next call.
 */
uint8_t *hb_buf_reserve(struct hb_buf *buf, size_t size);
void hb_buf_append(struct hb_buf *buf, const void *data, size_t size);
void hb_buf_append_u8(struct hb_buf *buf, uint8_t value);
struct hb_slice hb_buf_view(const struct hb_buf *buf);
/* The bytes become the caller's (free()); the buffer is empty. */
uint8_t *hb_buf_take(struct hb_buf *buf, size_t *out_size);

#endif
