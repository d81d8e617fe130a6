/* The merge operator of `unprocessed`: RocksDB calls it when it reads or compacts a row to which
 * several writes went. Values and operands have one form, so a full and a partial merge are one
 * fold, oldest first. */
#include "base/alloc.h"
#include "storage/engine_rocks_internal.h"
#include "storage/record_internal.h"

static char *fold(struct hb_slice first, const char *const *operands, const size_t *sizes,
                  int count, unsigned char *success, size_t *out_size) {
  struct hb_buf merged = {0};
  hb_buf_append(&merged, first.data, first.size);
  for (int i = 0; i < count; i++) {
    struct hb_buf next = {0};
    hb_record_merge_unprocessed(hb_buf_view(&merged), hb_slice_of(operands[i], sizes[i]), &next);
    hb_buf_done(&merged);
    merged = next;
  }
  *success = 1;
  return (char *)hb_buf_take(&merged, out_size);
}

static char *merge_full(void *state, const char *key, size_t key_size, const char *value,
                        size_t value_size, const char *const *operands, const size_t *sizes,
                        int count, unsigned char *success, size_t *out_size) {
  (void)state;
  (void)key;
  (void)key_size;
  if (value) {
    return fold(hb_slice_of(value, value_size), operands, sizes, count, success, out_size);
  }
  return fold(hb_slice_of(operands[0], sizes[0]), operands + 1, sizes + 1, count - 1, success,
              out_size);
}

static char *merge_partial(void *state, const char *key, size_t key_size,
                           const char *const *operands, const size_t *sizes, int count,
                           unsigned char *success, size_t *out_size) {
  return merge_full(state, key, key_size, NULL, 0, operands, sizes, count, success, out_size);
}

static const char *name(void *state) {
  (void)state;
  return "holdback.unprocessed.1"; /* RocksDB refuses a family whose operator has another name */
}

static void forget(void *state) { (void)state; }

/* With no delete_value RocksDB frees a result with free(), which is how hb_buf made it. */
rocksdb_mergeoperator_t *hb_rocks_merge_create(void) {
  return rocksdb_mergeoperator_create(NULL, forget, merge_full, merge_partial, NULL, name);
}
