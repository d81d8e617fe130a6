/* What a stream must do, said as plainly as possible: one sorted array of everything stored, and
 * every question answered by walking it. */
#ifndef HB_TESTS_MODEL_NAIVE_MODEL_H
#define HB_TESTS_MODEL_NAIVE_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/model/fake_store.h"
#include "tests/model/test_batch.h"

struct naive_event {
  int64_t sequence;
  uint32_t content;
};

/* Sequences [from, to) were uncovered and below the highest since served time `at`. */
struct naive_sight {
  int64_t from;
  int64_t to;
  uint64_t at_ms;
};

struct naive_stream {
  bool frozen;
  int64_t first;
  struct naive_event *events; /* ascending */
  size_t events_count, events_cap;
  struct naive_sight *sights;
  size_t sights_count, sights_cap;
  struct hb_stream_counters counters;
  uint64_t held_bytes; /* on disk, before the commit that is judged */
};

void naive_done(struct naive_stream *model);
/* Apply the batches of one commit (in their order) and check each outcome. `stored` is the stream
 * after the commit was applied; `frontier_before` tells which new events the walk released. */
void naive_commit(struct naive_stream *model, struct hb_test_batch **batches, size_t count,
                  const struct hb_fake_stream *stored, int64_t frontier_before, bool disk_reserve,
                  uint64_t now_ms);
/* Everything stored, and nothing else, lies in log or bundles, once, with its content. */
void naive_check_stored(const struct naive_stream *model, const struct hb_fake_stream *stored);
/* The status agrees. */
void naive_check(const struct naive_stream *model, const struct hb_fake_stream *stored,
                 const struct hb_stream_status *status);
/* The state becomes what is stored: after a write whose outcome is not known, and at a restart. */
void naive_reload(struct naive_stream *model, const struct hb_fake_stream *stored, uint64_t now_ms);
bool naive_has(const struct naive_stream *model, int64_t sequence);
int64_t naive_complete_to(const struct naive_stream *model);

#endif
