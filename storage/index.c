/* The per-key index: writing a bundle of entries as a file, reading one key's list, listing keys.
 */
#include "storage/index.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/endian.h"
#include "storage/folder_internal.h"
#include "storage/index_sort_internal.h"
#include "storage/key_internal.h"
#include "storage/record_internal.h"
#include "storage/store_internal.h"

/* ---- writing */

/* The row's key: of the entry before, with another position at its end, where the key is the same.
 * True where the row itself is the same (an entry given twice). */
static bool next_key(struct hb_buf *row, uint64_t stream, const struct hb_index_entry *before,
                     const struct hb_index_entry *entry, bool same) {
  if (same && before->position == entry->position) return true;
  if (same) {
    hb_put_u64_be(row->data + row->size - 8, hb_flip_sign(entry->position));
  } else {
    hb_buf_clear(row);
    hb_key_list(row, stream, entry->key, entry->position);
  }
  return false;
}

/* The entries lie in the order of the log: without asking early each would be waited for, and the
 * key of each that begins a list. Always inline: gcc 12 takes a function that only prefetches for
 * one without an effect, and drops the call. */
__attribute__((always_inline)) static inline void look_ahead(const struct hb_index_entry *entries,
                                                             const uint32_t *order, size_t i,
                                                             size_t count) {
  enum { ENTRY = 16, KEY = 8 };
  if (i + ENTRY >= count) return;
  const struct hb_index_entry *entry = &entries[order[i + ENTRY] & ~HB_INDEX_SAME_KEY];
  __builtin_prefetch(entry);
  __builtin_prefetch(&entry->length);
  if (!(order[i + KEY] & HB_INDEX_SAME_KEY)) __builtin_prefetch(entries[order[i + KEY]].key.data);
}

static enum hb_code add_entries(struct hb_rocks_file *file, uint64_t stream,
                                const struct hb_index_entry *entries, const uint32_t *order,
                                size_t count, struct hb_err *err) {
  struct hb_buf row = {0};
  const struct hb_index_entry *before = NULL;
  enum hb_code code = HB_OK;
  for (size_t i = 0; !code && i < count; i++) {
    const struct hb_index_entry *entry = &entries[order[i] & ~HB_INDEX_SAME_KEY];
    uint8_t value[HB_RECORD_INDEX_SIZE];
    look_ahead(entries, order, i, count);
    if (!next_key(&row, stream, before, entry, order[i] & HB_INDEX_SAME_KEY)) {
      hb_record_put_index(value, entry);
      code = hb_rocks_file_add(file, hb_buf_view(&row), hb_slice_of(value, sizeof value), err);
    }
    before = entry;
  }
  hb_buf_done(&row);
  return code;
}

static enum hb_code write_file(struct hb_store *store, const char *path, uint64_t stream,
                               const struct hb_index_entry *entries, size_t count,
                               struct hb_err *err) {
  struct hb_rocks_file *file = NULL;
  enum hb_code code = hb_rocks_file_create(store->engine, HB_FAMILY_LISTS, path, &file, err);
  if (code) return code;
  uint32_t *order = hb_index_sort(entries, count);
  code = add_entries(file, stream, entries, order, count, err);
  if (!code) code = hb_rocks_file_finish(file, err);
  free(order);
  hb_rocks_file_destroy(file);
  return code;
}

/* A file that was taken in is a table of RocksDB's; where its old name could not be removed,
 * writing to that name would be writing over the table. */
static enum hb_code remove_left(const char *path, struct hb_err *err) {
  if (!unlink(path) || errno == ENOENT) return HB_OK;
  return hb_folder_errno(errno, "remove", path, err);
}

enum hb_code hb_index_ingest(struct hb_store *store, uint64_t stream,
                             struct hb_index_entry *entries, size_t count, struct hb_err *err) {
  HB_ASSERT(count <= HB_INDEX_FILE_MAX);
  if (!count) return HB_OK;
  HB_ASSERT(!atomic_exchange(&store->ingesting, true)); /* one call at a time: one file name */
  char *path = hb_folder_join(store->path, HB_FOLDER_INDEX "/bundle.sst");
  enum hb_code code = remove_left(path, err);
  if (!code) code = write_file(store, path, stream, entries, count, err);
  if (!code) code = hb_rocks_ingest(store->engine, HB_FAMILY_LISTS, path, err);
  if (code) (void)unlink(path); /* the next one, or the next start, would do it anyway */
  free(path);
  atomic_store(&store->ingesting, false);
  return code;
}

/* ---- one key's list */

struct each {
  hb_index_visit *visit;
  void *context;
  struct hb_buf key; /* of the row */
};

static enum hb_code visit_entry(void *context, struct hb_slice key, struct hb_slice value,
                                bool *stop, struct hb_err *err) {
  struct each *each = context;
  uint64_t stream;
  struct hb_index_entry entry;
  if (!hb_key_parse_list(key, &stream, &each->key, &entry.position)) return hb_store_bad_key(err);
  entry.key = hb_buf_view(&each->key);
  enum hb_code code = hb_record_get_index(value, &entry, err);
  if (!code) *stop = !each->visit(each->context, &entry);
  return code;
}

enum hb_code hb_index_each(struct hb_store *store, uint64_t stream, struct hb_slice key,
                           int64_t from, int64_t end, hb_index_visit *visit, void *context,
                           struct hb_err *err) {
  if (from >= end) return HB_OK;
  struct hb_buf low = {0};
  struct hb_buf high = {0};
  hb_key_list(&low, stream, key, from);
  hb_key_list(&high, stream, key, end);
  struct hb_rocks_iter *iter =
      hb_rocks_iter_create(store->engine, HB_FAMILY_LISTS, hb_buf_view(&low), hb_buf_view(&high));
  hb_rocks_iter_first(iter);
  struct each each = {.visit = visit, .context = context};
  enum hb_code code = hb_store_each_row(iter, HB_FAMILY_LISTS, visit_entry, &each, err);
  hb_buf_done(&each.key);
  hb_buf_done(&low);
  hb_buf_done(&high);
  return code;
}

/* ---- keys */

static enum hb_code walk_keys(struct hb_rocks_iter *iter, hb_index_key_visit *visit, void *context,
                              struct hb_err *err) {
  struct hb_buf key = {0};
  struct hb_buf after = {0};
  enum hb_code code = HB_OK;
  while (hb_rocks_iter_valid(iter)) {
    uint64_t stream;
    int64_t position;
    struct hb_slice row = hb_rocks_iter_key(iter);
    if (!hb_key_parse_list(row, &stream, &key, &position)) {
      code = hb_store_wrap_row(hb_store_bad_key(err), HB_FAMILY_LISTS, row, err);
      break;
    }
    if (!visit(context, hb_buf_view(&key))) break;
    hb_buf_clear(&after);
    hb_key_list_after(&after, stream, hb_buf_view(&key));
    hb_rocks_iter_seek(iter, hb_buf_view(&after));
  }
  if (!code) code = hb_rocks_iter_error(iter, err);
  hb_buf_done(&key);
  hb_buf_done(&after);
  return code;
}

enum hb_code hb_index_keys(struct hb_store *store, uint64_t stream, struct hb_slice prefix,
                           bool has_after, struct hb_slice after, hb_index_key_visit *visit,
                           void *context, struct hb_err *err) {
  struct hb_buf low = {0};
  struct hb_buf high = {0};
  hb_key_list_prefix(&low, stream, prefix);
  (void)hb_key_after_prefix(hb_buf_view(&low), &high); /* false: empty = no bound */
  if (has_after) {
    struct hb_buf above = {0};
    hb_key_list_after(&above, stream, after);
    if (hb_slice_compare(hb_buf_view(&above), hb_buf_view(&low)) > 0) {
      hb_buf_done(&low);
      low = above;
    } else {
      hb_buf_done(&above);
    }
  }
  struct hb_rocks_iter *iter =
      hb_rocks_iter_create(store->engine, HB_FAMILY_LISTS, hb_buf_view(&low), hb_buf_view(&high));
  hb_rocks_iter_first(iter);
  enum hb_code code = walk_keys(iter, visit, context, err);
  hb_rocks_iter_destroy(iter);
  hb_buf_done(&low);
  hb_buf_done(&high);
  return code;
}
