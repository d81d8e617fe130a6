/* Decides the order of one commit: admission, release, what must wait, then housekeeping; and what
 * happens to it after the write.
 *
 *   prepare the round -> first copies -> release walk, streams in turn -> limits -> copies
 *   -> rewrites -> rows of gaps -> frontier records
 *
 * The state is the new one from decide on; it is only shown after committed. fail makes the core
 * dead: every batch comes back, nothing can be learned from what the write would have stored (I6).
 */
#include "base/assert.h"
#include "base/planted.h"
#include "ordering/core_internal.h"

static void take_batches(struct hb_ordering *core) {
  struct hb_round *round = &core->round;
  size_t kept = 0;
  for (size_t i = 0; i < round->count; i++) {
    struct hb_batch *batch = round->batches[i];
    if (!batch) continue;
    struct hb_batch *first = hb_queue_pop(&core->ready);
    HB_ASSERT(first == batch); /* what was prepared is the head of the queue */
    batch->state = HB_BATCH_DECIDED;
    batch->error = (struct hb_err){0};
    kept++;
  }
  HB_ASSERT(kept == round->taken);
}

/* Only ASYNC streams' batches may go without fsync; what the core does on its own is synced. */
static bool is_durable(const struct hb_ordering *core) {
  const struct hb_round *round = &core->round;
  for (size_t i = 0; i < round->shares_count; i++) {
    const struct hb_share *share = &round->shares[i];
    bool takes_part = share->items_to > share->items_from;
    if (takes_part && share->stream->config.ack != HB_ACK_ASYNC) return true;
  }
  return round->taken == 0;
}

static void delete_empty_bundles(struct hb_ordering *core) {
  if (!core->empty_bundles) return;
  for (size_t i = 0; i < core->streams_count; i++) {
    struct hb_core_stream *stream = core->streams[i];
    for (size_t k = 0; k < stream->empty_count; k++) hb_outbox_drained(core, stream->empty[k]);
    stream->empty_count = 0;
  }
  core->empty_bundles = false;
}

static void decide_batches(struct hb_ordering *core) {
  struct hb_round *round = &core->round;
  take_batches(core);
  for (size_t i = 0; i < round->shares_count; i++) {
    hb_admit_first_copies(core, &round->shares[i]);
    hb_release_enqueue(core, round->shares[i].stream);
  }
  hb_release_walk(core);
  for (size_t i = 0; i < round->shares_count; i++) hb_admit_held(core, &round->shares[i]);
  hb_per_key_hold(core);
  for (size_t i = 0; i < round->shares_count; i++) hb_admit_copies(core, &round->shares[i]);
}

/* The records show where coverage ends now. */
static void note_complete_to(struct hb_ordering *core) {
  for (size_t i = 0; i < core->touched_count; i++) {
    struct hb_core_stream *stream = core->touched[i];
    if (!stream->record.frozen) continue;
    HB_ASSERT(stream->covered.base >= stream->record.complete_to); /* I5 */
    stream->record.complete_to = stream->covered.base;
  }
}

static bool asserts_only(const struct hb_batch *batch, enum hb_outcome outcome) {
  for (uint32_t i = 0; i < batch->count; i++) {
    if (batch->decisions[i].outcome != outcome) return false;
  }
  return true;
}

/* Planted: nothing of it is to be written, so why wait for the write? */
static void answer_duplicates(struct hb_ordering *core) {
  struct hb_round *round = &core->round;
  for (size_t i = 0; i < round->count; i++) {
    if (!round->batches[i] || !asserts_only(round->batches[i], HB_OUTCOME_DUPLICATE)) continue;
    hb_queue_answer(core, round->batches[i]);
    round->batches[i] = NULL;
    round->taken--;
  }
}

const struct hb_commit *hb_ordering_decide(struct hb_ordering *core, struct hb_now now) {
  HB_ASSERT(!core->in_flight && !core->dead);
  core->now = now;
  core->moment = hb_moment_of(&core->moments, now.served_ms, now.wall_ms);
  hb_round_prepare(core);
  core->round.prepared = false;
  core->commit.number = core->options.last_commit + 1;
  decide_batches(core);
  hb_rewrite(core);
  hb_regroup(core);
  hb_gaps_write_rows(core);
  hb_per_key_close(core);
  hb_release_settle(core);
  note_complete_to(core);
  hb_outbox_frontiers(core);
  hb_per_key_round_done(core);
  bool writes = !hb_commit_is_empty(&core->commit);
  if (!writes && !core->round.taken) {
    hb_outbox_clear(core);
    return NULL;
  }
  if (writes) {
    delete_empty_bundles(core);
    core->options.last_commit = core->commit.number;
  }
  struct hb_commit *commit = &core->commit;
  commit->durable = is_durable(core);
  commit->blocks = core->blocks;
  commit->bundles = core->bundles;
  commit->drained = core->drained;
  commit->frontiers = core->frontiers;
  commit->unprocessed = core->unprocessed;
  commit->gaps = core->gaps;
  commit->gone_gaps = core->gone_gaps;
  commit->keys = core->keys;
  core->in_flight = true;
  if (HB_PLANTED(EARLY_DUPLICATE)) answer_duplicates(core);
  return commit;
}

uint64_t hb_ordering_take_number(struct hb_ordering *core) {
  HB_ASSERT(!core->in_flight);
  return ++core->options.last_commit;
}

static void answer_round(struct hb_ordering *core, bool failed) {
  struct hb_round *round = &core->round;
  for (size_t i = 0; i < round->count; i++) {
    if (!round->batches[i]) continue;
    if (failed) {
      hb_queue_fail(core, round->batches[i], HB_UNAVAILABLE);
    } else {
      hb_queue_answer(core, round->batches[i]);
    }
  }
  round->count = round->taken = 0;
  round->shares_count = round->items_count = 0;
}

/* Planted: batches that came meanwhile are judged by what the write would have stored. */
static void decide_once_more(struct hb_ordering *core) {
  core->in_flight = false;
  hb_outbox_clear(core);
  hb_round_prepare(core);
  decide_batches(core);
  answer_round(core, false);
}

void hb_ordering_committed(struct hb_ordering *core, const struct hb_commit *commit) {
  HB_ASSERT(core->in_flight && commit == &core->commit);
  core->in_flight = false;
  answer_round(core, false);
  hb_per_key_committed(core);
  hb_outbox_clear(core);
  hb_residency_retry(core);
  hb_residency_trim(core);
  hb_key_memory_trim(core);
  hb_rewrite_look(core);
  core->fetch_stale = true;
}

void hb_ordering_fail(struct hb_ordering *core) {
  core->dead = true;
  if (core->in_flight) {
    answer_round(core, true);
    if (HB_PLANTED(FAILED_WRITE)) decide_once_more(core);
  }
  core->in_flight = false;
  for (struct hb_batch *batch = hb_queue_pop(&core->ready); batch;
       batch = hb_queue_pop(&core->ready)) {
    hb_queue_fail(core, batch, HB_UNAVAILABLE);
  }
  hb_needs_drop(core, NULL);
}

bool hb_ordering_has_work(const struct hb_ordering *core) {
  if (core->dead) return false;
  return core->ready.first || core->rewrite_ready || core->regroup_stream ||
         hb_release_has_work(core);
}
