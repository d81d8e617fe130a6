/* Immutable bytes shared by reference across threads: a received batch, a log block.
 *
 * One allocation holds the count and (for hb_bytes_create) the bytes; hb_bytes_wrap lends bytes
 * that live elsewhere, such as a gRPC slice, and calls back when the last reference goes. */
#ifndef HB_BASE_BYTES_H
#define HB_BASE_BYTES_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

struct hb_bytes {
  _Atomic uint32_t refs;
  const uint8_t *data;
  size_t size;
  void (*release)(void *context); /* NULL: the bytes stand behind this struct */
  void *context;
};

/* One reference, the caller's. The bytes may be written through *out_data until shared. */
struct hb_bytes *hb_bytes_create(size_t size, uint8_t **out_data);
struct hb_bytes *hb_bytes_copy(struct hb_slice from);
/* `release(context)` runs on the thread that drops the last reference. */
struct hb_bytes *hb_bytes_wrap(const uint8_t *data, size_t size, void (*release)(void *),
                               void *context);
/* Any thread. */
struct hb_bytes *hb_bytes_ref(struct hb_bytes *bytes);
/* NULL is allowed. */
void hb_bytes_unref(struct hb_bytes *bytes);
struct hb_slice hb_bytes_view(const struct hb_bytes *bytes);

#endif
