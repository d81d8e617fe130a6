/* The core: decides what each event is, what is released, what must wait and what is refused.
 *
 * Pure: no thread, clock, socket or disk. Data, time and completions come in by calls; effects
 * (commits, answers, NEED, FETCH) are taken out by calls. One thread uses it, the sequencer. The
 * cycle:
 *
 *   submit(batch)*  ->  take_need* / take_fetch* (a reader answers later)
 *   decide(now)     ->  commit: the caller writes it
 *   committed()     ->  take_answered*            or  fail() after a failed write
 *
 * take_need and take_fetch want to be called again after committed, and after a decide that gave
 * NULL: it may have found that a batch must ask. Blocks handed in are borrowed for the call.
 *
 * Between decide and committed nothing else may be called but answer_need, fetched and submit;
 * the state is provisional until committed. A caller may tell of a commit before its write has
 * ended, so that the next is decided meanwhile. Until the end it must show nothing, answer nobody
 * (a DUPLICATE may be of an event that is on its way), take no need or fetch, and begin no other
 * write; where the write fails, fail is due as if it had not told. After fail the core can only
 * be destroyed: whoever goes on builds a new one from the store (I6). */
#ifndef HB_ORDERING_ORDERING_H
#define HB_ORDERING_ORDERING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "base/limits.h"
#include "base/types.h"
#include "ordering/batch.h"
#include "ordering/commit.h"

struct hb_ordering;

struct hb_ordering_options {
  struct hb_limits limits;
  uint64_t last_commit; /* highest commit number found in the store; numbering goes on above */
  /* Sizes; 0 = the default in brackets. Small ones make small tests. */
  size_t commit_bytes;         /* batches taken by one commit [16 MiB] */
  size_t release_stream_bytes; /* block bytes released per stream and commit [4 MiB] */
  size_t release_bytes;        /* the same over all streams [16 MiB] */
  size_t block_bytes;          /* frames in one log block; one event may be larger [64 KiB] */
  size_t bundle_bytes;         /* frames in one bundle; one event may be larger [1 MiB] */
  size_t fetch_ahead_bytes;    /* spilled bundles asked for above the frontier [8 MiB] */
};

/* Time as the server tells it. served_ms: monotonic over restarts, counts only while serving. */
struct hb_now {
  uint64_t served_ms;
  uint64_t wall_ms;
};

struct hb_ordering *hb_ordering_create(const struct hb_ordering_options *options);
/* Every batch must have been handed back. NULL is allowed. */
void hb_ordering_destroy(struct hb_ordering *core);

/* ---- streams */

/* A new stream (record->frozen false, or true where the configuration states first_sequence) or
 * one being recovered: then recover_* follow and recover_end closes.
 * `config` limits are resolved: none is 0. */
HB_MUST_CHECK enum hb_code hb_ordering_add_stream(struct hb_ordering *core, uint64_t stream,
                                                  const struct hb_stream_config *config,
                                                  const struct hb_frontier *record,
                                                  struct hb_err *err);
/* The record that a new stream starts with. */
struct hb_frontier hb_ordering_new_record(const struct hb_stream_config *config);
/* In any order of bundles. Entries below the frontier are ignored (I10); one with none left
 * is deleted by the next commit. HB_CORRUPT: not a bundle, or a sequence is in two of them. */
HB_MUST_CHECK enum hb_code hb_ordering_recover_bundle(struct hb_ordering *core,
                                                      struct hb_bundle_id id,
                                                      struct hb_bytes *block, struct hb_err *err);
/* PER_KEY streams, when all bundles are in: the keys that something is held of. While there is one
 * whose record is not known, read its row (NULL: there is none) and tell. HB_CORRUPT: an event is
 * in two bundles. */
bool hb_ordering_recover_wants_key(const struct hb_ordering *core, uint64_t stream,
                                   struct hb_slice *out_key);
HB_MUST_CHECK enum hb_code hb_ordering_recover_key(struct hb_ordering *core, uint64_t stream,
                                                   struct hb_slice key,
                                                   const struct hb_key_record *record,
                                                   struct hb_err *err);
/* A stored first-seen row; one that matches no gap is deleted later. */
void hb_ordering_recover_gap(struct hb_ordering *core, uint64_t stream, struct hb_gap gap);
/* A row of `unprocessed` that exists: the same refusal again does not count against the quota.
 * A refusal is named by all three: one content may be refused at many sequences. */
void hb_ordering_recover_unprocessed(struct hb_ordering *core, uint64_t stream,
                                     enum hb_outcome outcome, int64_t sequence,
                                     uint64_t content_hash);
/* The agreement check: coverage from the frontier must end exactly at complete_to. HB_CORRUPT
 * with stream and both numbers else. */
HB_MUST_CHECK enum hb_code hb_ordering_recover_end(struct hb_ordering *core, uint64_t stream,
                                                   struct hb_now now, struct hb_err *err);
/* Limits and ack mode; the rest of `config` must be as it was. */
void hb_ordering_update_stream(struct hb_ordering *core, uint64_t stream,
                               const struct hb_stream_config *config);
/* Nothing at or above `end` will be stored: OUT_OF_RANGE, SEALED. The check alone first, then, once
 * the caller has written the record, the effect. HB_PRECONDITION: no first sequence yet, something
 * is stored at or above `end`, `end` is below what is complete, sealed with another end. The same
 * seal again is HB_OK. Not between decide and committed. */
HB_MUST_CHECK enum hb_code hb_ordering_check_seal(const struct hb_ordering *core, uint64_t stream,
                                                  int64_t end, struct hb_err *err);
void hb_ordering_seal(struct hb_ordering *core, uint64_t stream, int64_t end);
/* Forget a stream: its batches come back HB_NOT_FOUND (those with a NEED out, when it returns).
 * Not between decide and committed. */
void hb_ordering_remove_stream(struct hb_ordering *core, uint64_t stream);
/* State after the last committed decision; indexed_to is left 0 for the caller. False: unknown
 * stream. Not between decide and committed. */
bool hb_ordering_status(const struct hb_ordering *core, uint64_t stream, struct hb_now now,
                        struct hb_stream_status *out);
/* While set, new held events are refused: WINDOW_FULL, DISK_RESERVE. Releases go on. */
void hb_ordering_set_disk_reserve(struct hb_ordering *core, bool reached);

/* ---- batches in, answers out */

/* For an unknown stream the batch comes back HB_NOT_FOUND. */
void hb_ordering_submit(struct hb_ordering *core, struct hb_batch *batch);
/* Batches that are answered or failed, in order; NULL: none. The batch is the caller's again. */
struct hb_batch *hb_ordering_take_answered(struct hb_ordering *core);
/* Bytes of batches that wait for a NEED, and of all batches that the core has. */
size_t hb_ordering_waiting_bytes(const struct hb_ordering *core);
size_t hb_ordering_batch_bytes(const struct hb_ordering *core);

/* ---- NEED: content to be compared, read elsewhere */

/* The last three are questions about a key (struct hb_need_key). */
enum hb_place_kind {
  HB_PLACE_LOG,
  HB_PLACE_BUNDLE,
  HB_PLACE_KEY_RECORD,
  HB_PLACE_KEY_CONTENT,
  HB_PLACE_KEY_HELD
};

struct hb_need_item {
  uint32_t index; /* of the event in the batch */
  uint32_t part;  /* PLACE_BUNDLE: with commit, which bundle */
  int64_t sequence;
  uint64_t commit;
  enum hb_place_kind place;
  enum hb_verdict verdict; /* the reader's answer */
};

/* PER_KEY mode: about the key of an event.
 * KEY_RECORD: read its row into `record`, and say whether there is one.
 * KEY_CONTENT: compare with the released event of that key and sequence; `record` tells where it
 * may lie: a key's events ascend in the log, so that of sequence s is at or above
 * first_position + (s - first), at or below last_position - (next - 1 - s). Answers: EQUAL,
 * DIFFERENT, TRUNCATED.
 * KEY_HELD: compare with event number `at` of a bundle. Answers: EQUAL, DIFFERENT, and MOVED where
 * the bundle is gone. */
struct hb_need_key {
  uint32_t index; /* of the event in the batch */
  enum hb_place_kind place;
  enum hb_verdict verdict;
  bool found;
  struct hb_key_record record;
  struct hb_bundle_id bundle;
  uint32_t at;
};

/* Items ascend by sequence. The reader compares each with batch->events[index] (hb_event_same):
 * it tries the named bundle, then the log (release and delete are one write), else says MOVED. */
struct hb_need {
  struct hb_node node;
  struct hb_batch *batch; /* borrowed; not changed while the need is out */
  struct hb_need_item *items;
  size_t count;
  struct hb_need_key *keys; /* of a PER_KEY stream; then there are no items */
  size_t keys_count;
  struct hb_err error; /* the reader's: not HB_OK = the batch fails with it */
};

/* [low, high]: where the released event of that sequence lies in the log. */
void hb_key_record_bounds(const struct hb_key_record *record, int64_t sequence, int64_t *out_low,
                          int64_t *out_high);

/* NULL: nothing to ask. The need is the caller's until it is given back with answer_need. */
struct hb_need *hb_ordering_take_need(struct hb_ordering *core);
void hb_ordering_answer_need(struct hb_ordering *core, struct hb_need *owned_need);

/* ---- FETCH: spilled bundles that a release or a rewrite will need */

bool hb_ordering_take_fetch(struct hb_ordering *core, struct hb_bundle_id *out);
/* `block` NULL: the bundle could not be read, `err` says why: what waits for it stays waiting and
 * is asked for again after the next commit. A bundle that is gone meanwhile is no error. */
void hb_ordering_fetched(struct hb_ordering *core, struct hb_bundle_id id, struct hb_bytes *block);

/* Whether the event at the stream's frontier lies in this bundle: nothing is released before it is
 * there. Between commits. */
bool hb_ordering_waits_for(const struct hb_ordering *core, struct hb_bundle_id id);

/* ---- deciding */

/* Whether decide would do something now: batches ready, a release to go on with, bundles to
 * rewrite. Gap rows wait for the next decide that comes anyway, or for idle ticks: call decide at
 * least once a second of served time. */
bool hb_ordering_has_work(const struct hb_ordering *core);
/* Decide what is ready; NULL: nothing changed and nobody is to be answered. */
const struct hb_commit *hb_ordering_decide(struct hb_ordering *core, struct hb_now now);
void hb_ordering_committed(struct hb_ordering *core, const struct hb_commit *commit);
/* Instead of deciding: hand back every batch that is ready with `err`; nothing of it is stored.
 * Those that wait for a NEED are ready when it returns. Not between decide and committed. */
void hb_ordering_refuse(struct hb_ordering *core, const struct hb_err *err);
/* A commit number for a write that the caller makes without a decision (a configuration, index
 * rows): above all before it. Not between decide and committed. */
uint64_t hb_ordering_take_number(struct hb_ordering *core);
/* The write failed: every batch anywhere comes back HB_UNAVAILABLE, needs that are out when they
 * return. */
void hb_ordering_fail(struct hb_ordering *core);

#endif
