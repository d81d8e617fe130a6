/* A store in memory: keeps what commits put, answers NEED and FETCH as a reader would, and builds
 * a new core from it. Each commit that it applies is checked against the invariants I4, I5 and I10
 * by plain means. Checks are cmocka's. */
#ifndef HB_TESTS_MODEL_FAKE_STORE_H
#define HB_TESTS_MODEL_FAKE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ordering/ordering.h"

struct hb_fake_refusal {
  enum hb_outcome outcome;
  int64_t sequence;
  uint64_t content_hash;
  uint64_t count;
};

struct hb_fake_stream {
  uint64_t id; /* 0 = not used */
  struct hb_stream_config config;
  struct hb_frontier record;
  struct hb_put_block *blocks; /* owned, as all here */
  size_t blocks_count, blocks_cap;
  struct hb_put_bundle *bundles;
  size_t bundles_count, bundles_cap;
  struct hb_gap *gaps;
  size_t gaps_count, gaps_cap;
  struct hb_fake_refusal *refusals;
  size_t refusals_count, refusals_cap;
};

enum { HB_FAKE_STREAMS = 64 };

struct hb_fake_store {
  struct hb_fake_stream streams[HB_FAKE_STREAMS];
  uint64_t last_commit;
};

void hb_fake_store_done(struct hb_fake_store *store);
/* `to` becomes the same as `from`; what it had is gone. Blocks are shared. */
void hb_fake_store_copy(struct hb_fake_store *to, const struct hb_fake_store *from);
/* Writes the record of a new stream. */
struct hb_fake_stream *hb_fake_add_stream(struct hb_fake_store *store, uint64_t id,
                                          const struct hb_stream_config *config);
void hb_fake_remove_stream(struct hb_fake_store *store, uint64_t id);
struct hb_fake_stream *hb_fake_find(struct hb_fake_store *store, uint64_t id);

void hb_fake_apply(struct hb_fake_store *store, const struct hb_commit *commit);
void hb_fake_answer(struct hb_fake_store *store, struct hb_need *need);
/* Borrowed; NULL: gone. */
struct hb_bytes *hb_fake_fetch(struct hb_fake_store *store, struct hb_bundle_id id);
/* Every stream added, recovered and closed. The first failure is returned. */
enum hb_code hb_fake_recover(struct hb_fake_store *store, struct hb_ordering *core,
                             struct hb_now now, struct hb_err *err);

/* Calls for each event that is stored, in no particular order. */
void hb_fake_each(const struct hb_fake_stream *stream,
                  void (*visit)(void *context, int64_t sequence, struct hb_slice frame),
                  void *context);
/* The content of an event that is stored, released or held; false: it is not there. */
bool hb_fake_content(const struct hb_fake_stream *stream, int64_t sequence, uint32_t *out);
uint64_t hb_fake_held_bytes(const struct hb_fake_stream *stream);
/* I4 and I10 over everything stored of the stream. */
void hb_fake_check(const struct hb_fake_stream *stream);

#endif
