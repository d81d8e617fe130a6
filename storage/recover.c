/* What a start finds out before anything is served: which streams are known, which rows belong to
 * none, how far commit numbers went. All of it by seeking from stream to stream, so that the cost
 * follows their number and not their data. */
#include <inttypes.h>
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

/* The lowest known stream >= `stream`; false: none. */
static bool next_known(const struct orphans *orphans, uint64_t stream, uint64_t *out) {
  size_t low = 0;
  size_t high = orphans->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (orphans->known[middle] < stream) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == orphans->count) return false;
  *out = orphans->known[low];
  return true;
}

/* A deletion takes the mark away last: nothing is left behind it. Small rows may be dropped all the
 * same; events without their stream, and what belongs to an id that was never given, say that other
 * rows are lost. */
static enum hb_code drop(struct orphans *orphans, uint64_t stream, struct hb_err *err) {
  bool events = orphans->family == HB_FAMILY_LOG || orphans->family == HB_FAMILY_HELD;
  if (events || stream >= orphans->store->info.next_stream) {
    return hb_err_set(err, HB_CORRUPT, NULL,
                      "there are rows in %s of stream id %" PRIu64
                      ", of which no configuration is there; restore the folder from a backup",
                      hb_family_name(orphans->family), stream);
  }
  struct hb_key start = hb_key_stream(stream);
  struct hb_key end = hb_key_stream_end(stream);
  hb_rocks_delete_range(orphans->batch, orphans->family, hb_key_view(&start), hb_key_view(&end));
  return HB_OK;
}

/* *out_any: the first stream >= `from` that has rows is *out. */
static enum hb_code find_stream(struct orphans *orphans, struct hb_rocks_iter *iter, uint64_t from,
                                bool *out_any, uint64_t *out, struct hb_err *err) {
  struct hb_key start = hb_key_stream(from);
  hb_rocks_iter_seek(iter, hb_key_view(&start));
  *out_any = hb_rocks_iter_valid(iter);
  if (!*out_any) return hb_rocks_iter_error(iter, err);
  struct hb_slice key = hb_rocks_iter_key(iter);
  if (hb_key_parse_stream(key, out)) return HB_OK;
  return hb_store_wrap_row(hb_store_bad_key(err), orphans->family, key, err);
}

static struct hb_rocks_iter *family_iter(const struct orphans *orphans) {
  struct hb_slice none = {0};
  return hb_rocks_iter_create(orphans->store->engine, orphans->family, none, none);
}

/* What can't be read is passed over, up to behind the next known stream: it is for who reads that
 * stream to be told, and no reason to keep the others from theirs. */
static enum hb_code look_through(struct orphans *orphans, struct hb_err *err) {
  struct hb_rocks_iter *iter = family_iter(orphans);
  enum hb_code code = HB_OK;
  for (uint64_t from = 0; !code;) {
    bool any;
    uint64_t stream;
    uint64_t known = UINT64_MAX;
    code = find_stream(orphans, iter, from, &any, &stream, err);
    bool has_known = next_known(orphans, from, &known);
    bool unreadable = code == HB_CORRUPT && !any;
    if (unreadable) { /* one that has met damage may tell it again elsewhere */
      hb_rocks_iter_destroy(iter);
      iter = family_iter(orphans);
      code = HB_OK;
    } else if (!code && any && (!has_known || stream < known)) {
      code = drop(orphans, stream, err);
      known = stream;
    }
    bool over = unreadable ? !has_known : !any;
    if (code || over || known == UINT64_MAX) break;
    from = known + 1;
  }
  hb_rocks_iter_destroy(iter);
  return code;
}

enum hb_code hb_recover_orphans(struct hb_store *store, struct hb_batch_writer *batch,
                                struct hb_err *err) {
  struct orphans orphans = {.store = store, .batch = batch};
  enum hb_code code = for_each_stream(store, HB_FAMILY_STREAMS, note_known, &orphans, err);
  for (int i = 0; !code && i < HB_FAMILY_COUNT; i++) {
    orphans.family = (enum hb_family)i;
    if (hb_family_is_per_stream(orphans.family)) code = look_through(&orphans, err);
  }
  free(orphans.known);
  return code;
}

/* ---- the index */

struct lowered {
  struct hb_store *store;
  struct hb_batch_writer *batch;
};

static enum hb_code lower(void *context, uint64_t stream, struct hb_err *err) {
  const struct lowered *lowered = context;
  struct hb_key key = hb_key_streams_row(stream, HB_KIND_INDEXED_TO);
  struct hb_bytes *value = NULL;
  enum hb_code code =
      hb_rocks_get(lowered->store->engine, HB_FAMILY_STREAMS, hb_key_view(&key), &value, err);
  if (code || !value) return code;
  uint64_t number = 0;
  code = hb_record_get_u64(hb_bytes_view(value), &number, err);
  hb_bytes_unref(value);
  if (code) return hb_store_wrap_row(code, HB_FAMILY_STREAMS, hb_key_view(&key), err);
  struct hb_buf row = {0};
  int64_t indexed_to = (int64_t)number;
  int64_t back = (int64_t)lowered->store->lost_edits * HB_INDEX_FILE_MAX;
  bool low = indexed_to < INT64_MIN + back;
  hb_record_put_u64(&row, (uint64_t)(low ? INT64_MIN : indexed_to - back));
  hb_rocks_put(lowered->batch, HB_FAMILY_STREAMS, hb_key_view(&key), hb_buf_view(&row));
  hb_buf_done(&row);
  return HB_OK;
}

enum hb_code hb_recover_index(struct hb_store *store, struct hb_batch_writer *batch,
                              struct hb_err *err) {
  struct lowered lowered = {.store = store, .batch = batch};
  return for_each_stream(store, HB_FAMILY_STREAMS, lower, &lowered, err);
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
