/* Decides what one commit takes: ready batches in arrival order, up to commit_bytes, and no more of
 * one stream than a commit can release, so that input in order is not bundled first.
 *
 * Then the events are sorted by stream and sequence and looked up. A batch with an event that must
 * be compared with content elsewhere goes to wait and takes no part; so do later batches of its
 * call. While nothing comes in, what was prepared stays good: take_need prepares, decide uses it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "ordering/core_internal.h"

void hb_round_done(struct hb_round *round) {
  free(round->batches);
  free(round->shares);
  free(round->items);
  free(round->spare);
  free(round->firsts);
}

/* ---- choosing */

static void clear_round(struct hb_ordering *core) {
  struct hb_round *round = &core->round;
  round->count = round->taken = 0;
  round->shares_count = round->items_count = round->firsts_count = 0;
}

static struct hb_share *share_of(struct hb_round *round, struct hb_core_stream *stream) {
  size_t at = stream->share - 1;
  bool known = stream->share && at < round->shares_count && round->shares[at].stream == stream;
  if (known) return &round->shares[at];
  hb_reserve((void **)&round->shares, &round->shares_cap, round->shares_count + 1,
             sizeof *round->shares);
  round->shares[round->shares_count] = (struct hb_share){.stream = stream};
  stream->share = ++round->shares_count;
  return &round->shares[stream->share - 1];
}

enum { EVENT_IN_BLOCK_BYTES = 8 };

/* About what a batch is as log blocks. */
static size_t block_bytes_of(const struct hb_batch *batch) {
  return batch->bytes + (size_t)batch->count * EVENT_IN_BLOCK_BYTES;
}

/* A sixteenth of a stream's slice is left for the blocks' own bytes. */
static bool fits(const struct hb_ordering *core, size_t taken, const struct hb_share *share,
                 const struct hb_batch *batch) {
  size_t stream_max = core->options.release_stream_bytes / 16 * 15;
  if (core->round.count == 0) return true;
  if (taken >= core->options.commit_bytes || batch->bytes > core->options.commit_bytes - taken) {
    return false;
  }
  return share->bytes == 0 ||
         (share->bytes < stream_max && block_bytes_of(batch) <= stream_max - share->bytes);
}

static void choose(struct hb_ordering *core) {
  struct hb_round *round = &core->round;
  size_t taken = 0;
  struct hb_batch **at = &core->ready.first;
  struct hb_batch *before = NULL;
  while (*at) {
    struct hb_batch *batch = *at;
    struct hb_batch *next = batch->next;
    if (hb_queue_put_behind(core, batch)) {
      *at = next;
      if (core->ready.last == batch) core->ready.last = before;
      continue;
    }
    struct hb_share *share = share_of(round, hb_core_find_stream(core, batch->stream));
    if (!fits(core, taken, share, batch)) break;
    taken += batch->bytes;
    share->bytes += block_bytes_of(batch);
    share->items_to += batch->count; /* the number, until fill_items */
    hb_reserve((void **)&round->batches, &round->cap, round->count + 1, sizeof *round->batches);
    round->batches[round->count++] = batch;
    round->items_count += batch->count;
    before = batch;
    at = &batch->next;
  }
}

/* ---- sorting */

static void fill_items(struct hb_ordering *core) {
  struct hb_round *round = &core->round;
  hb_reserve((void **)&round->items, &round->items_cap, round->items_count, sizeof *round->items);
  hb_reserve((void **)&round->spare, &round->spare_cap, round->items_count, sizeof *round->spare);
  size_t from = 0;
  for (size_t i = 0; i < round->shares_count; i++) {
    struct hb_share *share = &round->shares[i];
    size_t count = share->items_to;
    share->items_from = share->items_to = from;
    from += count;
  }
  for (size_t i = 0; i < round->count; i++) {
    const struct hb_batch *batch = round->batches[i];
    struct hb_share *share = share_of(round, hb_core_find_stream(core, batch->stream));
    struct hb_item *to = round->items + share->items_to;
    share->items_to += batch->count;
    for (uint32_t k = 0; k < batch->count; k++) {
      to[k] = (struct hb_item){batch->events[k].sequence, (uint32_t)i, k};
    }
  }
}

static void sort_items(struct hb_round *round) {
  for (size_t i = 0; i < round->shares_count; i++) {
    const struct hb_share *share = &round->shares[i];
    if (share->stream->per_key) continue; /* by arrival; sorted by key when they are decided */
    hb_sort_items(round->items + share->items_from, round->spare,
                  share->items_to - share->items_from);
  }
}

/* ---- sending back what must wait */

static int compare_wanted(const void *a, const void *b) {
  const struct hb_wanted *x = a;
  const struct hb_wanted *y = b;
  if (x->batch != y->batch) return x->batch < y->batch ? -1 : 1;
  if (x->item.sequence != y->item.sequence) return x->item.sequence < y->item.sequence ? -1 : 1;
  return (x->item.index > y->item.index) - (x->item.index < y->item.index);
}

/* They ascend by sequence; with one batch, or one after another, there is nothing to do. */
static void sort_wanted(struct hb_ordering *core) {
  for (size_t i = 1; i < core->wanted_count; i++) {
    if (core->wanted[i - 1].batch <= core->wanted[i].batch) continue;
    qsort(core->wanted, core->wanted_count, sizeof *core->wanted, compare_wanted);
    return;
  }
}

/* What batches behind a waiting one may have asked for, all calls together: small ones are helped,
 * to whom each question one by one would be a disk's time, and the budget stays for the first. */
enum { AHEAD_BYTES_MAX = 1 << 20 };

static bool may_ask_ahead(const struct hb_ordering *core, const struct hb_batch *batch) {
  return batch->bytes <= AHEAD_BYTES_MAX && core->waiting_bytes <= AHEAD_BYTES_MAX - batch->bytes;
}

/* The batch, which asks or is behind one that does, is in no list any more. */
static void send_back_one(struct hb_ordering *core, struct hb_batch *batch, size_t from,
                          size_t to) {
  bool asks = to > from;
  if (hb_queue_put_behind(core, batch)) {
    asks = asks && may_ask_ahead(core, batch);
  } else {
    hb_queue_wait(core, batch);
  }
  if (asks) hb_needs_ask(core, batch, from, to);
}

/* The batches are looked at in arrival order: the first of a call that needs something waits, the
 * others of that call are behind it, and ask too while that is cheap. The round has what stands
 * first in `ready`, in that order, so one pass over both will do. */
static void send_back(struct hb_ordering *core) {
  struct hb_round *round = &core->round;
  sort_wanted(core);
  size_t at = 0;
  struct hb_batch **link = &core->ready.first;
  struct hb_batch *before = NULL;
  for (uint32_t i = 0; i < round->count; i++) {
    struct hb_batch *batch = round->batches[i];
    HB_ASSERT(*link == batch);
    size_t from = at;
    while (at < core->wanted_count && core->wanted[at].batch == i) at++;
    if (at == from && !hb_queue_is_behind(core, batch)) {
      before = batch;
      link = &batch->next;
      continue;
    }
    *link = batch->next;
    if (core->ready.last == batch) core->ready.last = before;
    round->batches[i] = NULL;
    round->taken--;
    send_back_one(core, batch, from, at);
  }
}

static void drop_items_of_the_absent(struct hb_round *round) {
  for (size_t i = 0; i < round->shares_count; i++) {
    struct hb_share *share = &round->shares[i];
    size_t kept = share->items_from;
    for (size_t k = share->items_from; k < share->items_to; k++) {
      if (round->batches[round->items[k].batch]) round->items[kept++] = round->items[k];
    }
    share->items_to = kept;
  }
}

static void prepare_once(struct hb_ordering *core) {
  struct hb_round *round = &core->round;
  clear_round(core);
  choose(core);
  round->taken = round->count;
  fill_items(core);
  sort_items(round);
  core->wanted_count = 0;
  for (size_t i = 0; i < round->shares_count; i++) hb_presence_look_up(core, &round->shares[i]);
  if (!core->wanted_count) return;
  send_back(core);
  drop_items_of_the_absent(round);
}

void hb_round_prepare(struct hb_ordering *core) {
  HB_ASSERT(!core->in_flight);
  if (core->round.prepared) return;
  do {
    prepare_once(core);
  } while (!core->round.taken && core->ready.first);
  core->round.prepared = true;
}
