/* Decides what a commit is to RocksDB: one batch, with log data that says which commit it is and
 * how far everything was durable when it was written. After the first failure nothing is written
 * any more (I6), whatever RocksDB thinks about its own recovery. */
#include "storage/write.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/planted.h"
#include "storage/delete.h"
#include "storage/index.h"
#include "storage/key_internal.h"
#include "storage/key_record_internal.h"
#include "storage/record_internal.h"
#include "storage/store_internal.h"
#include "storage/write_internal.h"

struct hb_write *hb_write_create(struct hb_store *store) {
  struct hb_write *write = hb_calloc(1, sizeof *write);
  write->store = store;
  write->batch = hb_rocks_batch_create(store->engine);
  return write;
}

void hb_write_destroy(struct hb_write *write) {
  if (!write) return;
  hb_rocks_batch_destroy(write->batch);
  hb_buf_done(&write->key);
  hb_buf_done(&write->value);
  free(write);
}

void hb_write_clear(struct hb_write *write) { hb_rocks_batch_clear(write->batch); }

bool hb_write_is_empty(const struct hb_write *write) {
  return hb_rocks_batch_count(write->batch) == 0;
}

static struct hb_buf *begin_value(struct hb_write *write) {
  hb_buf_clear(&write->value);
  return &write->value;
}

static void put_value(struct hb_write *write, enum hb_family family, const struct hb_key *key) {
  hb_rocks_put(write->batch, family, hb_key_view(key), hb_buf_view(&write->value));
}

/* ---- log, held */

void hb_write_put_block(struct hb_write *write, uint64_t stream, int64_t from,
                        struct hb_slice block) {
  struct hb_key key = hb_key_position(stream, from);
  hb_rocks_put(write->batch, HB_FAMILY_LOG, hb_key_view(&key), block);
}

void hb_write_put_bundle(struct hb_write *write, struct hb_bundle_id id, struct hb_slice block) {
  struct hb_key key = hb_key_bundle(id);
  hb_rocks_put(write->batch, HB_FAMILY_HELD, hb_key_view(&key), block);
}

/* An id names one bundle for ever: the put and its deletion leave nothing behind when they meet. */
void hb_write_delete_bundle(struct hb_write *write, struct hb_bundle_id id) {
  struct hb_key key = hb_key_bundle(id);
  hb_rocks_delete_once(write->batch, HB_FAMILY_HELD, hb_key_view(&key));
}

/* ---- streams */

static void put_stream_row(struct hb_write *write, uint64_t stream, enum hb_stream_kind kind) {
  struct hb_key key = hb_key_streams_row(stream, kind);
  put_value(write, HB_FAMILY_STREAMS, &key);
}

static void delete_stream_row(struct hb_write *write, uint64_t stream, enum hb_stream_kind kind) {
  struct hb_key key = hb_key_streams_row(stream, kind);
  hb_rocks_delete(write->batch, HB_FAMILY_STREAMS, hb_key_view(&key));
}

void hb_write_put_config(struct hb_write *write, uint64_t stream,
                         const struct hb_stream_config *config) {
  hb_record_put_config(begin_value(write), config);
  put_stream_row(write, stream, HB_KIND_CONFIG);
}

void hb_write_put_frontier(struct hb_write *write, uint64_t stream,
                           const struct hb_frontier *record) {
  hb_record_put_frontier(begin_value(write), record);
  put_stream_row(write, stream, HB_KIND_FRONTIER);
}

void hb_write_put_indexed_to(struct hb_write *write, uint64_t stream, int64_t indexed_to) {
  hb_record_put_u64(begin_value(write), (uint64_t)indexed_to);
  put_stream_row(write, stream, HB_KIND_INDEXED_TO);
}

void hb_write_mark_deleting(struct hb_write *write, uint64_t stream) {
  delete_stream_row(write, stream, HB_KIND_CONFIG);
  delete_stream_row(write, stream, HB_KIND_FRONTIER);
  delete_stream_row(write, stream, HB_KIND_INDEXED_TO);
  hb_record_put_bytes(begin_value(write), (struct hb_slice){0});
  put_stream_row(write, stream, HB_KIND_DELETING);
}

void hb_write_delete_mark(struct hb_write *write, uint64_t stream) {
  delete_stream_row(write, stream, HB_KIND_DELETING);
}

/* ---- gaps, unprocessed, peers, meta, lists */

void hb_write_put_gap(struct hb_write *write, uint64_t stream, const struct hb_gap *gap) {
  struct hb_key key = hb_key_position(stream, gap->start);
  hb_record_put_gap(begin_value(write), gap);
  put_value(write, HB_FAMILY_GAPS, &key);
}

void hb_write_delete_gap(struct hb_write *write, uint64_t stream, int64_t start) {
  struct hb_key key = hb_key_position(stream, start);
  hb_rocks_delete(write->batch, HB_FAMILY_GAPS, hb_key_view(&key));
}

void hb_write_put_unprocessed(struct hb_write *write, uint64_t stream, enum hb_outcome outcome,
                              int64_t sequence, uint64_t content_hash, struct hb_slice frame,
                              uint64_t seen_wall_ms, uint32_t peer) {
  struct hb_key key = hb_key_unprocessed(stream, outcome, sequence, content_hash);
  struct hb_unprocessed row = {.count = 1,
                               .first_seen_wall_ms = seen_wall_ms,
                               .last_seen_wall_ms = seen_wall_ms,
                               .peer = peer,
                               .frame = frame};
  hb_record_put_unprocessed(begin_value(write), &row);
  hb_rocks_merge(write->batch, HB_FAMILY_UNPROCESSED, hb_key_view(&key),
                 hb_buf_view(&write->value));
}

void hb_write_put_peer(struct hb_write *write, uint32_t peer, struct hb_slice text) {
  struct hb_key key = hb_key_peer(peer);
  hb_record_put_bytes(begin_value(write), text);
  put_value(write, HB_FAMILY_PEERS, &key);
}

static void put_meta_u64(struct hb_write *write, const char *name, uint64_t number) {
  hb_record_put_u64(begin_value(write), number);
  hb_rocks_put(write->batch, HB_FAMILY_META, hb_slice_text(name), hb_buf_view(&write->value));
}

void hb_write_put_served_ms(struct hb_write *write, uint64_t served_ms) {
  put_meta_u64(write, HB_META_SERVED, served_ms);
}

void hb_write_put_next_stream(struct hb_write *write, uint64_t next_stream) {
  put_meta_u64(write, HB_META_NEXT_STREAM, next_stream);
}

void hb_write_put_index_entry(struct hb_write *write, uint64_t stream,
                              const struct hb_index_entry *entry) {
  uint8_t value[HB_RECORD_INDEX_SIZE];
  hb_buf_clear(&write->key);
  hb_key_list(&write->key, stream, entry->key, entry->position);
  hb_record_put_index(value, entry);
  hb_rocks_put(write->batch, HB_FAMILY_LISTS, hb_buf_view(&write->key),
               hb_slice_of(value, sizeof value));
}

void hb_write_put_key(struct hb_write *write, uint64_t stream, struct hb_slice key,
                      const struct hb_key_record *record) {
  hb_buf_clear(&write->key);
  hb_key_row(&write->key, stream, key);
  hb_record_put_key(begin_value(write), record);
  hb_rocks_put(write->batch, HB_FAMILY_KEYS, hb_buf_view(&write->key), hb_buf_view(&write->value));
}

/* Its rows in `streams` go too, but for the mark: that is the last to go (hb_write_delete_mark). */
static void drop_stream_rows(struct hb_write *write, uint64_t stream) {
  struct hb_key start = hb_key_stream(stream);
  struct hb_key mark = hb_key_streams_row(stream, HB_KIND_DELETING);
  struct hb_key after_mark = hb_key_streams_row(stream, HB_KIND_DELETING + 1);
  struct hb_key end = hb_key_stream_end(stream);
  hb_rocks_delete_range(write->batch, HB_FAMILY_STREAMS, hb_key_view(&start), hb_key_view(&mark));
  hb_rocks_delete_range(write->batch, HB_FAMILY_STREAMS, hb_key_view(&after_mark),
                        hb_key_view(&end));
}

void hb_write_drop_stream(struct hb_write *write, uint64_t stream) {
  struct hb_key start = hb_key_stream(stream);
  struct hb_key end = hb_key_stream_end(stream);
  drop_stream_rows(write, stream);
  for (int i = 0; i < HB_FAMILY_COUNT; i++) {
    enum hb_family family = (enum hb_family)i;
    if (!hb_family_is_per_stream(family) || family == HB_FAMILY_STREAMS) continue;
    hb_rocks_delete_range(write->batch, family, hb_key_view(&start), hb_key_view(&end));
  }
}

/* ---- applying */

static enum hb_code failed_before(const struct hb_store *store, struct hb_err *err) {
  return hb_err_set(err, store->failure.code, store->failure.reason,
                    "the store failed before and has to be opened again: %s",
                    store->failure.message);
}

static enum hb_code fail(struct hb_store *store, struct hb_err *err) {
  if (store->failure.code == HB_CORRUPT) hb_damaged_note(store, &store->failure);
  if (err) *err = store->failure;
  return store->failure.code;
}

enum hb_code hb_store_write(struct hb_store *store, struct hb_write *write, uint64_t commit,
                            bool sync, struct hb_err *err) {
  HB_ASSERT(write->store == store);
  if (store->failure.code) return failed_before(store, err);
  HB_ASSERT(commit > store->written);
  if (hb_rocks_is_damaged(store->engine)) hb_damaged_note(store, NULL);
  uint8_t data[HB_LOG_DATA_SIZE];
  hb_log_data_put(data, (struct hb_log_data){.run = store->info.run,
                                             .mark = store->run_mark,
                                             .commit = commit,
                                             .previous = store->written,
                                             .synced = store->synced});
  hb_rocks_log_data(write->batch, hb_slice_of(data, sizeof data));
  bool fsync_it = sync && !HB_PLANTED(ACK_BEFORE_SYNC);
  if (hb_rocks_write(store->engine, write->batch, fsync_it, &store->failure)) {
    return fail(store, err);
  }
  store->written = commit;
  if (sync) store->synced = commit;
  return HB_OK;
}

enum hb_code hb_store_sync(struct hb_store *store, struct hb_err *err) {
  if (store->failure.code) return failed_before(store, err);
  if (hb_rocks_sync(store->engine, &store->failure)) return fail(store, err);
  store->synced = store->written;
  return HB_OK;
}
