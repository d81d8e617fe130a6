/* Decides whether a batch is let in, and where it waits until it is answered.
 *
 * Two caps (I8). ingest_mailbox_max bounds what was handed in and not taken yet: the inbox keeps
 * it. waiting_bytes_max is for batches that the core can't decide because stored content must be
 * compared first: while the core is that full, a call one of whose batches waits for a comparison
 * is refused, and goes on when batches were answered; other calls go on at once, so a producer
 * that sends its whole history again doesn't stop the others. Which calls wait is counted in a
 * fixed table by a hash of the call; a collision delays an innocent call by one answer. What was
 * in the inbox when the core became full still gets in, so all batches together are held to the
 * sum of the two caps. */
#include <stdint.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/live.h"
#include "server/engine/engine_internal.h"

static _Atomic uint32_t *waits_of(struct hb_sequencer *sequencer, uint64_t call) {
  uint64_t hash = call * UINT64_C(0x9E3779B97F4A7C15);
  return &sequencer->waiting_calls[hash >> 54];
}

void hb_append_call_waits(struct hb_engine *engine, uint64_t call, bool waits) {
  _Static_assert(HB_WAITING_CALLS == 1 << 10, "waits_of takes the upper 10 bits");
  _Atomic uint32_t *count = waits_of(&engine->sequencer, call);
  if (waits) {
    atomic_fetch_add(count, 1);
  } else {
    atomic_fetch_sub(count, 1);
  }
}

static void refuse(struct hb_append *append) {
  (void)hb_err_stops(&append->batch.error);
  hb_stream_get_status(append->target, &append->status);
  append->answered(append);
}

/* One batch heavier than what is left is let in where nothing else is, so none is stuck. */
static bool reserve_bytes(struct hb_engine *engine, size_t bytes) {
  struct hb_sequencer *sequencer = &engine->sequencer;
  size_t most = engine->limits.ingest_mailbox_max + engine->limits.waiting_bytes_max;
  size_t before = atomic_fetch_add(&sequencer->accepted_bytes, bytes);
  if (before == 0 || (before <= most && bytes <= most - before)) return true;
  atomic_fetch_sub(&sequencer->accepted_bytes, bytes);
  return false;
}

static bool post(struct hb_engine *engine, struct hb_append *append) {
  struct hb_sequencer *sequencer = &engine->sequencer;
  struct hb_batch *batch = &append->batch;
  if (atomic_load(&sequencer->waiting_full) && atomic_load(waits_of(sequencer, batch->call)) > 0) {
    return false;
  }
  if (!reserve_bytes(engine, batch->bytes)) return false;
  batch->stream = append->target->id;
  batch->receipt.received_ms = hb_clock_wall_ms();
  batch->error.code = HB_OK;
  hb_live_born(HB_LIVE_appends); /* before: the answer may come before try_post returns */
  if (hb_mailbox_try_post(sequencer->inbox, &batch->node, batch->bytes)) return true;
  hb_live_gone(HB_LIVE_appends);
  atomic_fetch_sub(&sequencer->accepted_bytes, batch->bytes);
  return false;
}

bool hb_engine_try_append(struct hb_engine *engine, struct hb_append *append) {
  HB_ASSERT(append->batch.count > 0 && append->batch.bytes > 0);
  if (!hb_door_enter(engine)) {
    refuse(append);
    return true;
  }
  bool posted = post(engine, append);
  hb_door_leave(engine);
  return posted;
}

void hb_engine_on_room(struct hb_engine *engine, struct hb_room *waiter) {
  if (!hb_door_enter(engine)) {
    waiter->room(waiter); /* and the append that follows is answered: the engine stops */
    return;
  }
  hb_mailbox_post(engine->sequencer.rooms, &waiter->node);
  hb_door_leave(engine);
}

void hb_append_take(struct hb_engine *engine, struct hb_node *first) {
  struct hb_sequencer *sequencer = &engine->sequencer;
  while (first) {
    struct hb_node *node = first;
    first = first->next;
    if (node == &sequencer->poke) {
      /* Before the mailboxes are looked at: a post after this look pokes again. */
      atomic_store(&sequencer->poked, false);
      continue;
    }
    struct hb_append *append = (struct hb_append *)node;
    if (hb_disk_stops_writes(engine)) {
      (void)hb_err_disk(engine, &append->batch.error);
      hb_engine_answer(engine, append);
    } else if (sequencer->failed) {
      (void)hb_err_failed(&append->batch.error);
      hb_engine_answer(engine, append);
    } else {
      hb_ordering_submit(sequencer->core, &append->batch);
    }
  }
}

void hb_engine_answer(struct hb_engine *engine, struct hb_append *append) {
  atomic_fetch_sub(&engine->sequencer.accepted_bytes, append->batch.bytes);
  append->status = append->target->status; /* published: only this thread writes it */
  hb_live_gone(HB_LIVE_appends);
  hb_processors_note_refusals(engine, append->target, &append->batch);
  hb_processors_note_copies(engine, append->target, &append->batch);
  append->answered(append);
}

/* Enough for the largest batch, so that who is told is not refused again. */
static bool has_room(struct hb_engine *engine, bool answered) {
  struct hb_sequencer *sequencer = &engine->sequencer;
  if (sequencer->failed || atomic_load(&sequencer->stopping)) return true;
  if (atomic_load(&sequencer->waiting_full) && !answered) return false;
  const struct hb_limits *limits = &engine->limits;
  size_t most = limits->ingest_mailbox_max + limits->waiting_bytes_max;
  size_t posted = hb_mailbox_weight(sequencer->inbox);
  return (posted == 0 || posted + limits->batch_bytes_max <= limits->ingest_mailbox_max) &&
         atomic_load(&sequencer->accepted_bytes) + limits->batch_bytes_max <= most;
}

void hb_append_call_rooms(struct hb_engine *engine, bool answered) {
  struct hb_sequencer *sequencer = &engine->sequencer;
  if (!sequencer->rooms_waiting || !has_room(engine, answered)) return;
  struct hb_node *node = sequencer->rooms_waiting;
  sequencer->rooms_waiting = NULL;
  while (node) {
    struct hb_room *room = (struct hb_room *)node;
    node = node->next;
    room->room(room);
  }
}
