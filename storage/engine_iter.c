/* Iterators, with the bounds that they need to live as long as they do. */
#include <stdlib.h>

#include "base/alloc.h"
#include "storage/engine_rocks_internal.h"

struct hb_rocks_iter {
  struct hb_rocks *engine; /* borrowed */
  rocksdb_iterator_t *iter;
  rocksdb_readoptions_t *options; /* holds pointers into the two bounds */
  struct hb_buf start;
  struct hb_buf end;
};

struct hb_rocks_iter *hb_rocks_iter_create(struct hb_rocks *engine, enum hb_family family,
                                           struct hb_slice start, struct hb_slice end) {
  struct hb_rocks_iter *iter = hb_calloc(1, sizeof *iter);
  hb_buf_append(&iter->start, start.data, start.size);
  hb_buf_append(&iter->end, end.data, end.size);
  iter->options = rocksdb_readoptions_create();
  rocksdb_readoptions_set_verify_checksums(iter->options, 1);
  rocksdb_readoptions_set_fill_cache(iter->options, 0);
  if (start.size) {
    rocksdb_readoptions_set_iterate_lower_bound(iter->options, (const char *)iter->start.data,
                                                iter->start.size);
  }
  if (end.size) {
    rocksdb_readoptions_set_iterate_upper_bound(iter->options, (const char *)iter->end.data,
                                                iter->end.size);
  }
  iter->engine = engine;
  iter->iter = rocksdb_create_iterator_cf(engine->db, iter->options, engine->families[family]);
  return iter;
}

void hb_rocks_iter_destroy(struct hb_rocks_iter *iter) {
  if (!iter) return;
  rocksdb_iter_destroy(iter->iter);
  rocksdb_readoptions_destroy(iter->options);
  hb_buf_done(&iter->start);
  hb_buf_done(&iter->end);
  free(iter);
}

void hb_rocks_iter_first(struct hb_rocks_iter *iter) { rocksdb_iter_seek_to_first(iter->iter); }

void hb_rocks_iter_last(struct hb_rocks_iter *iter) { rocksdb_iter_seek_to_last(iter->iter); }

void hb_rocks_iter_seek(struct hb_rocks_iter *iter, struct hb_slice key) {
  rocksdb_iter_seek(iter->iter, (const char *)key.data, key.size);
}

void hb_rocks_iter_seek_back(struct hb_rocks_iter *iter, struct hb_slice key) {
  rocksdb_iter_seek_for_prev(iter->iter, (const char *)key.data, key.size);
}

void hb_rocks_iter_next(struct hb_rocks_iter *iter) { rocksdb_iter_next(iter->iter); }

bool hb_rocks_iter_valid(const struct hb_rocks_iter *iter) {
  return rocksdb_iter_valid(iter->iter);
}

enum hb_code hb_rocks_iter_error(const struct hb_rocks_iter *iter, struct hb_err *err) {
  char *text = NULL;
  rocksdb_iter_get_error(iter->iter, &text);
  return hb_rocks_note(iter->engine, hb_rocks_take_error(text, "read", err));
}

struct hb_slice hb_rocks_iter_key(const struct hb_rocks_iter *iter) {
  size_t size = 0;
  const char *key = rocksdb_iter_key(iter->iter, &size);
  return hb_slice_of(key, size);
}

struct hb_slice hb_rocks_iter_value(const struct hb_rocks_iter *iter) {
  size_t size = 0;
  const char *value = rocksdb_iter_value(iter->iter, &size);
  return hb_slice_of(value, size);
}
