/* What one decision of the core wants written, all of it in one atomic write.
 *
 * The core encodes blocks and bundles itself (base/frame is pure); the store only puts bytes under
 * keys. Everything here is the core's and valid until hb_ordering_committed or hb_ordering_fail;
 * take a reference to a block to keep it longer. */
#ifndef HB_ORDERING_COMMIT_H
#define HB_ORDERING_COMMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/frame/scan.h"
#include "base/slice.h"
#include "base/types.h"

/* A log block: released in order, [from, to) accounted for. Per stream ascending, no holes. In
 * PER_KEY mode the numbers are positions, and so are those that the block gives to its events. */
struct hb_put_block {
  uint64_t stream;
  int64_t from;
  int64_t to;
  struct hb_bytes *block;
};

/* A bundle of events that wait; its id carries this commit's number. In PER_KEY mode its events are
 * numbered from 0: sequences of several keys would not ascend. */
struct hb_put_bundle {
  struct hb_bundle_id id;
  struct hb_bytes *block;
};

/* The frontier record of a stream that this commit touches: at most one per stream. */
struct hb_put_frontier {
  uint64_t stream;
  struct hb_frontier record;
};

/* A refused event that is kept aside (CONFLICT, BEFORE_FIRST, within the quota). A row that is
 * there already (same stream, outcome, sequence and hash) only counts up. */
struct hb_put_unprocessed {
  uint64_t stream;
  enum hb_outcome outcome;
  bool was_stored; /* answered so by an earlier commit: no batch is told of the refusal */
  const struct hb_event *event; /* the batch's, or a bundle's (was_stored) */
  uint64_t content_hash;
  struct hb_receipt receipt;
};

struct hb_put_gap {
  uint64_t stream;
  struct hb_gap gap;
};

struct hb_delete_gap {
  uint64_t stream;
  int64_t start;
};

/* A key of a PER_KEY stream of which something is released: its row. */
struct hb_put_key {
  uint64_t stream;
  struct hb_slice key;
  struct hb_key_record record;
};

struct hb_commit {
  uint64_t number;
  bool durable; /* must be fsynced before committed: false only where every batch is ASYNC's */
  const struct hb_put_block *blocks;
  size_t blocks_count;
  const struct hb_put_bundle *bundles;
  size_t bundles_count;
  const struct hb_bundle_id *drained; /* bundles to delete */
  size_t drained_count;
  const struct hb_put_frontier *frontiers;
  size_t frontiers_count;
  const struct hb_put_unprocessed *unprocessed;
  size_t unprocessed_count;
  const struct hb_put_gap *gaps;
  size_t gaps_count;
  const struct hb_delete_gap *gone_gaps;
  size_t gone_gaps_count;
  const struct hb_put_key *keys;
  size_t keys_count;
};

/* Nothing to write (duplicates alone, say): call committed at once. */
bool hb_commit_is_empty(const struct hb_commit *commit);

#endif
