/* Reading the families of small rows: gaps, unprocessed, peers. */
#include "storage/key_internal.h"
#include "storage/read.h"
#include "storage/record_internal.h"
#include "storage/store_internal.h"

struct gaps {
  hb_gap_visit *visit;
  void *context;
};

static enum hb_code visit_gap(void *context, struct hb_slice key, struct hb_slice value, bool *stop,
                              struct hb_err *err) {
  const struct gaps *gaps = context;
  uint64_t stream;
  struct hb_gap gap;
  if (!hb_key_parse_position(key, &stream, &gap.start)) return hb_store_bad_key(err);
  enum hb_code code = hb_record_get_gap(value, &gap, err);
  if (!code) *stop = !gaps->visit(gaps->context, &gap);
  return code;
}

enum hb_code hb_gap_each(struct hb_store *store, uint64_t stream, hb_gap_visit *visit,
                         void *context, struct hb_err *err) {
  struct gaps gaps = {.visit = visit, .context = context};
  struct hb_rocks_iter *iter = hb_store_iter(store, HB_FAMILY_GAPS, stream);
  hb_rocks_iter_first(iter);
  return hb_store_each_row(iter, HB_FAMILY_GAPS, visit_gap, &gaps, err);
}

struct unprocessed {
  hb_unprocessed_visit *visit;
  void *context;
};

static enum hb_code visit_unprocessed(void *context, struct hb_slice key, struct hb_slice value,
                                      bool *stop, struct hb_err *err) {
  const struct unprocessed *all = context;
  uint64_t stream;
  struct hb_unprocessed row;
  if (hb_key_is_failure(key)) return HB_OK; /* hb_failure_each */
  if (!hb_key_parse_unprocessed(key, &stream, &row.outcome, &row.sequence, &row.content_hash)) {
    return hb_store_bad_key(err);
  }
  enum hb_code code = hb_record_get_unprocessed(value, &row, err);
  if (!code) *stop = !all->visit(all->context, &row);
  return code;
}

enum hb_code hb_unprocessed_each(struct hb_store *store, uint64_t stream,
                                 hb_unprocessed_visit *visit, void *context, struct hb_err *err) {
  struct unprocessed all = {.visit = visit, .context = context};
  struct hb_rocks_iter *iter = hb_store_iter(store, HB_FAMILY_UNPROCESSED, stream);
  hb_rocks_iter_first(iter);
  return hb_store_each_row(iter, HB_FAMILY_UNPROCESSED, visit_unprocessed, &all, err);
}

/* Rows with these hashes, both included. */
static enum hb_code visit_hashes(struct hb_store *store, struct hb_key start, struct hb_key last,
                                 struct unprocessed *all, struct hb_err *err) {
  last.data[last.size++] = 0; /* above the last hash */
  struct hb_rocks_iter *iter = hb_rocks_iter_create(store->engine, HB_FAMILY_UNPROCESSED,
                                                    hb_key_view(&start), hb_key_view(&last));
  hb_rocks_iter_first(iter);
  return hb_store_each_row(iter, HB_FAMILY_UNPROCESSED, visit_unprocessed, all, err);
}

enum hb_code hb_unprocessed_of(struct hb_store *store, uint64_t stream, enum hb_outcome outcome,
                               int64_t sequence, hb_unprocessed_visit *visit, void *context,
                               struct hb_err *err) {
  struct unprocessed all = {.visit = visit, .context = context};
  return visit_hashes(store, hb_key_unprocessed(stream, outcome, sequence, 0),
                      hb_key_unprocessed(stream, outcome, sequence, UINT64_MAX), &all, err);
}

enum hb_code hb_unprocessed_one(struct hb_store *store, uint64_t stream, enum hb_outcome outcome,
                                int64_t sequence, uint64_t hash, hb_unprocessed_visit *visit,
                                void *context, struct hb_err *err) {
  struct unprocessed all = {.visit = visit, .context = context};
  struct hb_key key = hb_key_unprocessed(stream, outcome, sequence, hash);
  return visit_hashes(store, key, key, &all, err);
}

struct peers {
  hb_peer_visit *visit;
  void *context;
};

static enum hb_code visit_peer(void *context, struct hb_slice key, struct hb_slice value,
                               bool *stop, struct hb_err *err) {
  const struct peers *peers = context;
  uint32_t peer;
  if (!hb_key_parse_peer(key, &peer)) return hb_store_bad_key(err);
  struct hb_slice text;
  enum hb_code code = hb_record_get_bytes(value, &text, err);
  if (!code) *stop = !peers->visit(peers->context, peer, text);
  return code;
}

enum hb_code hb_peer_each(struct hb_store *store, hb_peer_visit *visit, void *context,
                          struct hb_err *err) {
  struct peers peers = {.visit = visit, .context = context};
  struct hb_slice none = {0};
  struct hb_rocks_iter *iter = hb_rocks_iter_create(store->engine, HB_FAMILY_PEERS, none, none);
  hb_rocks_iter_first(iter);
  return hb_store_each_row(iter, HB_FAMILY_PEERS, visit_peer, &peers, err);
}
