/* A core with one stream in PER_KEY mode, and a store in memory for it: commits are applied and
 * checked by plain means, NEED is answered as a reader would, a restart builds the core anew.
 * Checks are cmocka's. */
#ifndef HB_TESTS_MODEL_PER_KEY_RIG_H
#define HB_TESTS_MODEL_PER_KEY_RIG_H

#include "ordering/ordering.h"
#include "tests/model/test_batch.h"

enum { HB_RIG_KEYS = 64, HB_RIG_STREAM = 7 };

struct hb_rig_row {
  char key[16];
  struct hb_key_record record;
};

struct hb_rig_event {
  char key[16];
  int64_t sequence;
  uint32_t content;
  bool held;
  bool aside;       /* held, and below its key's first: not kept aside yet */
  int64_t position; /* where not held */
};

struct hb_rig_bundle {
  struct hb_bundle_id id;
  struct hb_bytes *block;
};

struct hb_per_key_rig {
  struct hb_ordering *core;
  struct hb_ordering_options options;
  struct hb_stream_config config;
  struct hb_now now;
  /* the store */
  struct hb_frontier record;
  uint64_t last_commit;
  struct hb_rig_row rows[HB_RIG_KEYS];
  size_t rows_count;
  struct hb_put_block *blocks;
  size_t blocks_count, blocks_cap;
  struct hb_rig_bundle *bundles;
  size_t bundles_count, bundles_cap;
  uint64_t refusals; /* rows put into `unprocessed` */
  /* of the last commit */
  size_t block_bytes;
  /* how often */
  unsigned record_needs, content_needs, held_needs, fetches, rewrites;
};

/* GLOBAL's default limits, mode PER_KEY. */
struct hb_stream_config hb_rig_config(int64_t first_sequence);
void hb_rig_start(struct hb_per_key_rig *rig, const struct hb_stream_config *config,
                  const struct hb_ordering_options *options);
/* Batches in the core come back HB_UNAVAILABLE: take them first. */
void hb_rig_recover(struct hb_per_key_rig *rig);
void hb_rig_stop(struct hb_per_key_rig *rig);

void hb_rig_apply(struct hb_per_key_rig *rig, const struct hb_commit *commit);
void hb_rig_answer(struct hb_per_key_rig *rig, struct hb_need *need);
/* Borrowed; NULL: gone. */
struct hb_bytes *hb_rig_bundle(const struct hb_per_key_rig *rig, struct hb_bundle_id id);
/* Of the bundles, those that the core keeps in memory; and the largest of all. */
size_t hb_rig_resident_bytes(const struct hb_per_key_rig *rig, size_t *out_largest);
/* Needs, fetches, commits, until nothing is left to do. */
void hb_rig_settle(struct hb_per_key_rig *rig);
/* Submit events as one batch, settle; decisions are the batch's, which is the caller's. */
struct hb_test_batch *hb_rig_send(struct hb_per_key_rig *rig, const struct hb_test_event *events,
                                  size_t count);

/* NULL: no row. */
const struct hb_key_record *hb_rig_row(const struct hb_per_key_rig *rig, const char *key);
/* Everything stored, released ones first by position; free() it. */
struct hb_rig_event *hb_rig_events(const struct hb_per_key_rig *rig, size_t *out_count);
/* Rows, log and bundles agree (I3, I4, I10); status is what the store has. */
void hb_rig_check(struct hb_per_key_rig *rig);

#endif
