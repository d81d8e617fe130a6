/* Giving back the space of a deleted stream: whole files at once, then (after the range deletions,
 * write.c) what shares files with others by compaction. */
#include "storage/delete.h"

#include "storage/key_internal.h"
#include "storage/store_internal.h"

/* `streams` is tiny and has the mark itself: it is left to its own compactions. */
static bool has_data(enum hb_family family) {
  return hb_family_is_per_stream(family) && family != HB_FAMILY_STREAMS;
}

enum hb_code hb_store_drop_files(struct hb_store *store, uint64_t stream, struct hb_err *err) {
  struct hb_key start = hb_key_stream(stream);
  struct hb_key end = hb_key_stream_end(stream);
  enum hb_code code = HB_OK;
  for (int i = 0; !code && i < HB_FAMILY_COUNT; i++) {
    if (!has_data((enum hb_family)i)) continue;
    code = hb_rocks_drop_files(store->engine, (enum hb_family)i, hb_key_view(&start),
                               hb_key_view(&end), err);
  }
  return code;
}

/* `lists` is compacted as a whole or not at all: that pays where the stream is a good part of it.
 * Elsewhere its entries go when the files that have them are compacted anyway. */
static bool is_worth_it(struct hb_store *store, enum hb_family family, struct hb_slice start,
                        struct hb_slice end) {
  if (family != HB_FAMILY_LISTS) return true;
  uint64_t all = hb_rocks_number(store->engine, family, "rocksdb.total-sst-files-size");
  return hb_rocks_size(store->engine, family, start, end) >= all / 4;
}

enum hb_code hb_store_reclaim(struct hb_store *store, uint64_t stream, struct hb_err *err) {
  struct hb_key start = hb_key_stream(stream);
  struct hb_key end = hb_key_stream_end(stream);
  for (int i = 0; i < HB_FAMILY_COUNT; i++) {
    enum hb_family family = (enum hb_family)i;
    if (!has_data(family)) continue;
    enum hb_code code = hb_rocks_flush(store->engine, family, err);
    if (code) return code;
    if (hb_damaged_now(store)) continue; /* its space is given back when the damage is gone */
    if (!is_worth_it(store, family, hb_key_view(&start), hb_key_view(&end))) continue;
    hb_rocks_compact(store->engine, family, hb_key_view(&start), hb_key_view(&end));
  }
  return HB_OK;
}
