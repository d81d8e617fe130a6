/* What a start finds out before anything is served: which streams are known, which rows belong to
 * none, how far commit numbers went. All of it by seeking from stream to stream, so that the cost
 * follows their number and not their data. */
#include <stdlib.h>

#include "base/alloc.h"
#include "storage/key_internal.h"
#include "storage/record_internal.h"
#include "storage/store_internal.h"

/* Calls visit with each stream that has rows in a family, ascending. */
typedef enum hb_code each_stream(void *context, uint64_t stream, struct hb_err *err);

static enum hb_code for_each_stream(struct hb_store *store, enum hb_family family,
                                    each_stream *visit, void *context, struct hb_err *err) {
  struct hb_slice none = {0};
  struct hb_rocks_iter *iter = hb_rocks_iter_create(store->engine, family, none, none);
  hb_rocks_iter_first(iter);
  enum hb_code code = HB_OK;
  while (!code && hb_rocks_iter_valid(iter)) {
    uint64_t stream;
    struct hb_slice key = hb_rocks_iter_key(iter);
    if (!hb_key_parse_stream(key, &stream)) {
      code = hb_store_wrap_row(hb_store_bad_key(err), family, key, err);
      break;
    }
    code = visit(context, stream, err);
    struct hb_key end = hb_key_stream_end(stream);
    hb_rocks_iter_seek(iter, hb_key_view(&end));
  }
  if (!code) code = hb_rocks_iter_error(iter, err);
  hb_rocks_iter_destroy(iter);
  return code;
}

/* ---- orphans */

struct orphans {
  struct hb_store *store;
  struct hb_batch_writer *batch;
  enum hb_family family; /* being walked */
  uint64_t *known;       /* owned; ascending: streams with a configuration or a mark */
  size_t count;
  size_t cap;
};

static enum hb_code has_row(struct hb_store *store, uint64_t stream, enum hb_stream_kind kind,
                            bool *out, struct hb_err *err) {
  struct hb_key key = hb_key_streams_row(stream, kind);
  struct hb_bytes *value = NULL;
  enum hb_code code =
      hb_rocks_get(store->engine, HB_FAMILY_STREAMS, hb_key_view(&key), &value, err);
  if (code) return code;
  *out = value != NULL;
  hb_bytes_unref(value);
  return HB_OK;
}

static enum hb_code note_known(void *context, uint64_t stream, struct hb_err *err) {
  struct orphans *orphans = context;
  bool known = false;
  enum hb_code code = has_row(orphans->store, stream, HB_KIND_CONFIG, &known, err);
  if (!code && !known) code = has_row(orphans->store, stream, HB_KIND_DELETING, &known, err);
  if (code || !known) return code;
  hb_reserve((void **)&orphans->known, &orphans->cap, orphans->count + 1, sizeof stream);
  orphans->known[orphans->count++] = stream;
  return HB_OK;
}

static int compare_streams(const void *a, const void *b) {
  uint64_t left = *(const uint64_t *)a;
  uint64_t right = *(const uint64_t *)b;
  return (left > right) - (left < right);
}

static enum hb_code drop_unknown(void *context, uint64_t stream, struct hb_err *err) {
  (void)err;
  struct orphans *orphans = context;
  if (orphans->count &&
      bsearch(&stream, orphans->known, orphans->count, sizeof stream, compare_streams)) {
    return HB_OK;
  }
  struct hb_key start = hb_key_stream(stream);
  struct hb_key end = hb_key_stream_end(stream);
  hb_rocks_delete_range(orphans->batch, orphans->family, hb_key_view(&start), hb_key_view(&end));
  return HB_OK;
}

enum hb_code hb_recover_orphans(struct hb_store *store, struct hb_batch_writer *batch,
                                struct hb_err *err) {
  struct orphans orphans = {.store = store, .batch = batch};
  enum hb_code code = for_each_stream(store, HB_FAMILY_STREAMS, note_known, &orphans, err);
  for (int i = 0; !code && i < HB_FAMILY_COUNT; i++) {
    orphans.family = (enum hb_family)i;
    if (!hb_family_is_per_stream(orphans.family)) continue;
    code = for_each_stream(store, orphans.family, drop_unknown, &orphans, err);
  }
  free(orphans.known);
  return code;
}

/* ---- commit numbers */

struct highest {
  struct hb_store *store;
  uint64_t commit;
};

static enum hb_code note_bundle(void *context, uint64_t stream, struct hb_err *err) {
  struct highest *highest = context;
  struct hb_rocks_iter *iter = hb_store_iter(highest->store, HB_FAMILY_HELD, stream);
  hb_rocks_iter_last(iter);
  enum hb_code code = HB_OK;
  if (hb_rocks_iter_valid(iter)) {
    struct hb_bundle_id id;
    struct hb_slice key = hb_rocks_iter_key(iter);
    if (!hb_key_parse_bundle(key, &id)) {
      code = hb_store_wrap_row(hb_store_bad_key(err), HB_FAMILY_HELD, key, err);
    } else if (id.commit > highest->commit) {
      highest->commit = id.commit;
    }
  }
  if (!code) code = hb_rocks_iter_error(iter, err);
  hb_rocks_iter_destroy(iter);
  return code;
}

static enum hb_code note_frontier(void *context, uint64_t stream, struct hb_err *err) {
  struct highest *highest = context;
  struct hb_key key = hb_key_streams_row(stream, HB_KIND_FRONTIER);
  struct hb_bytes *value = NULL;
  enum hb_code code =
      hb_rocks_get(highest->store->engine, HB_FAMILY_STREAMS, hb_key_view(&key), &value, err);
  if (code || !value) return code;
  struct hb_frontier record;
  code = hb_record_get_frontier(hb_bytes_view(value), &record, err);
  if (!code && record.commit > highest->commit) highest->commit = record.commit;
  hb_bytes_unref(value);
  return hb_store_wrap_row(code, HB_FAMILY_STREAMS, hb_key_view(&key), err);
}

enum hb_code hb_recover_last_commit(struct hb_store *store, uint64_t *out, struct hb_err *err) {
  struct highest highest = {.store = store};
  enum hb_code code = for_each_stream(store, HB_FAMILY_STREAMS, note_frontier, &highest, err);
  if (!code) code = for_each_stream(store, HB_FAMILY_HELD, note_bundle, &highest, err);
  if (!code) *out = highest.commit;
  return code;
}
