/* The sequencer's loop: what is done in which order, and how long it sleeps.
 *
 *   take batches (sleep in the inbox where there is nothing to do)
 *   take everything else: jobs, answered needs, fetched bundles, index rows, deletion steps
 *   hand needs and fetches to the readers
 *   decide, write once, fsync, publish, answer          (sequencer_write.c, publish.c)
 *     or, where much is held: decide, hand to the writer; the rest of it when that is done, while
 *     the next is decided                               (in_flight.c)
 *   what is due by time: fsync for ASYNC, served time, index rows
 *
 * Group commit comes by itself: what arrives while a write is on its way is taken by the next
 * turn; nothing ever waits for company. A release in slices goes on in the same way, with new
 * batches taken between two slices.
 *
 * Failure of any write: the core is given up, and everyone who waits is told that the outcome is
 * unknown (I6). Where the disk was full the store is opened again when there is room, and the core
 * rebuilt from it (reopen.c); after any other failure the process is asked to end, and a new one
 * does that. How full the disk may be for what is in disk.c. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/planted.h"
#include "server/engine/engine_internal.h"

enum { COMMIT_BYTES = 16 << 20 };

void hb_sequencer_poke(struct hb_sequencer *sequencer) {
  if (atomic_exchange(&sequencer->poked, true)) return;
  hb_mailbox_post(sequencer->inbox, &sequencer->poke);
}

static void poke(void *context) { hb_sequencer_poke(context); }

void hb_sequencer_create(struct hb_engine *engine) {
  struct hb_sequencer *sequencer = &engine->sequencer;
  sequencer->inbox = hb_mailbox_create(engine->limits.ingest_mailbox_max, NULL, NULL);
  sequencer->jobs = hb_mailbox_create(0, poke, sequencer);
  sequencer->rooms = hb_mailbox_create(0, poke, sequencer);
  sequencer->needs = hb_mailbox_create(0, poke, sequencer);
  sequencer->fetched = hb_mailbox_create(0, poke, sequencer);
  sequencer->notes = hb_mailbox_create(0, poke, sequencer);
  sequencer->deletions = hb_mailbox_create(0, poke, sequencer);
  sequencer->bundles = hb_mailbox_create(0, poke, sequencer);
  sequencer->write = hb_write_create(engine->store);
  sequencer->index_notes_end = &sequencer->index_notes;
}

struct hb_now hb_sequencer_now(const struct hb_engine *engine) {
  return (struct hb_now){.served_ms = hb_engine_served_ms(engine), .wall_ms = hb_clock_wall_ms()};
}

/* ---- what the core asks for */

static void hand_out(struct hb_engine *engine) {
  struct hb_sequencer *sequencer = &engine->sequencer;
  if (sequencer->failed) return;
  if (sequencer->in_flight.on) return; /* it may be about what is on its way */
  struct hb_need *need;
  while ((need = hb_ordering_take_need(sequencer->core)) != NULL) {
    hb_append_call_waits(engine, need->batch->call, true);
    sequencer->needs_out++;
    hb_pool_post(&engine->readers, HB_WORK_NEED, &need->node);
  }
  struct hb_bundle_id id;
  while (hb_ordering_take_fetch(sequencer->core, &id)) {
    struct hb_fetch *fetch = hb_calloc(1, sizeof *fetch);
    fetch->id = id;
    sequencer->fetches_out++;
    hb_pool_post(&engine->readers, HB_WORK_FETCH, &fetch->node);
  }
}

/* ---- deciding */

bool hb_sequencer_answer(struct hb_engine *engine) {
  struct hb_sequencer *sequencer = &engine->sequencer;
  struct hb_batch *batch;
  bool any = false;
  while ((batch = hb_ordering_take_answered(sequencer->core)) != NULL) {
    if (sequencer->in_flight.on && !HB_PLANTED(ANSWER_IN_FLIGHT)) {
      hb_in_flight_keep(engine, batch);
    } else {
      hb_engine_answer(engine, (struct hb_append *)batch);
    }
    any = true;
  }
  size_t bytes = hb_ordering_batch_bytes(sequencer->core);
  atomic_store(&sequencer->waiting_full, bytes >= engine->limits.waiting_bytes_max);
  return any;
}

static bool refuse(struct hb_engine *engine) {
  struct hb_err err;
  (void)hb_err_disk(engine, &err);
  hb_ordering_refuse(engine->sequencer.core, &err);
  return hb_sequencer_answer(engine);
}

/* While a commit is on its way, the next is worth deciding once it is half as large: what comes
 * meanwhile is in it then, and neither has to wait long for the other. */
static bool is_worth_deciding(const struct hb_engine *engine) {
  const struct hb_sequencer *sequencer = &engine->sequencer;
  const struct hb_ordering *core = sequencer->core;
  if (!hb_ordering_has_work(core)) return false;
  if (!sequencer->in_flight.on || hb_writer_is_done(engine)) return true;
  size_t ready = hb_ordering_batch_bytes(core) - hb_ordering_waiting_bytes(core);
  return ready == 0 || ready >= sequencer->in_flight.bytes / 2;
}

/* Whether something was answered. */
static bool decide(struct hb_engine *engine) {
  struct hb_sequencer *sequencer = &engine->sequencer;
  if (sequencer->failed) return hb_sequencer_answer(engine); /* needs that came back */
  if (hb_disk_stops_writes(engine)) return refuse(engine);
  uint64_t now_ns = hb_clock_mono_ns();
  bool tick = now_ns >= sequencer->tick_due_ns;
  if (tick) sequencer->tick_due_ns = now_ns + engine->tuning.tick_ms * UINT64_C(1000000);
  if (tick || is_worth_deciding(engine)) {
    const struct hb_commit *commit = hb_ordering_decide(sequencer->core, hb_sequencer_now(engine));
    if (commit && !hb_sequencer_write_commit(engine, commit)) return true;
  }
  return hb_sequencer_answer(engine);
}

/* ---- time */

static void do_what_is_due(struct hb_engine *engine) {
  struct hb_sequencer *sequencer = &engine->sequencer;
  if (sequencer->failed) return;
  uint64_t now_ns = hb_clock_mono_ns();
  if (sequencer->unsynced && now_ns >= sequencer->sync_due_ns && !hb_sequencer_sync(engine)) return;
  if (hb_disk_stops_writes(engine)) return;
  if (sequencer->index_notes && now_ns >= sequencer->index_due_ns) {
    if (!hb_in_flight_settle(engine)) return;
    (void)hb_sequencer_begin_rows(engine); /* puts the index rows itself */
    if (!hb_sequencer_apply_rows(engine, NULL)) return;
  }
  if (now_ns >= sequencer->look_due_ns) {
    hb_processors_look(engine);
    sequencer->look_due_ns = now_ns + engine->tuning.tick_ms * UINT64_C(1000000);
  }
  if (now_ns >= sequencer->save_due_ns) (void)hb_sequencer_save_served(engine);
}

static uint64_t next_due_ns(const struct hb_engine *engine) {
  const struct hb_sequencer *sequencer = &engine->sequencer;
  uint64_t due = hb_disk_due_ns(engine);
  if (sequencer->failed) return due;
  if (sequencer->unsynced && sequencer->sync_due_ns < due) due = sequencer->sync_due_ns;
  if (hb_disk_stops_writes(engine)) return due;
  if (is_worth_deciding(engine)) return 0;
  if (sequencer->tick_due_ns < due) due = sequencer->tick_due_ns;
  if (sequencer->save_due_ns < due) due = sequencer->save_due_ns;
  if (sequencer->index_notes && sequencer->index_due_ns < due) due = sequencer->index_due_ns;
  return due;
}

/* ---- the loop */

static void take_batches(struct hb_engine *engine, uint64_t until_ns) {
  struct hb_sequencer *sequencer = &engine->sequencer;
  size_t most = engine->tuning.core.commit_bytes ? engine->tuning.core.commit_bytes : COMMIT_BYTES;
  struct hb_node *first = hb_mailbox_take(sequencer->inbox, most, until_ns);
  hb_disk_look(engine); /* before: what came is let in or refused by what is free now */
  if (first) hb_append_take(engine, first);
}

/* Everything accepted has been dealt with: no post can come any more, the door is closed. */
static bool is_finished(const struct hb_engine *engine) {
  const struct hb_sequencer *sequencer = &engine->sequencer;
  if (!atomic_load(&sequencer->stopping)) return false;
  return atomic_load(&sequencer->accepted_bytes) == 0 && sequencer->needs_out == 0 &&
         sequencer->fetches_out == 0 && !sequencer->rooms_waiting;
}

static void turn(struct hb_engine *engine) {
  take_batches(engine, next_due_ns(engine));
  if (hb_writer_is_done(engine)) (void)hb_in_flight_settle(engine);
  hb_sequencer_take_all(engine);
  hb_reopen_try(engine);
  if (hb_disk_stops_writes(engine)) (void)decide(engine); /* so that no NEED goes out for them */
  hand_out(engine);
  bool answered = decide(engine);
  hand_out(engine);
  do_what_is_due(engine);
  hb_append_call_rooms(engine, answered);
}

static void *run(void *context) {
  struct hb_engine *engine = context;
  struct hb_sequencer *sequencer = &engine->sequencer;
  while (!is_finished(engine)) turn(engine);
  (void)hb_in_flight_settle(engine);
  hb_sequencer_take_jobs(engine);
  hb_sequencer_take_rooms(engine);
  hb_append_call_rooms(engine, true);
  hb_sequencer_take_notes(engine);
  if (!sequencer->failed && sequencer->unsynced) (void)hb_sequencer_sync(engine);
  if (!sequencer->failed && !hb_disk_stops_writes(engine)) {
    (void)hb_sequencer_begin_rows(engine);
    (void)hb_sequencer_apply_rows(engine, NULL);
  }
  return NULL;
}

static void set_times(struct hb_engine *engine) {
  struct hb_sequencer *sequencer = &engine->sequencer;
  uint64_t now_ns = hb_clock_mono_ns();
  sequencer->tick_due_ns = now_ns;
  sequencer->save_due_ns = now_ns + engine->tuning.save_ms * UINT64_C(1000000);
}

void hb_sequencer_start(struct hb_engine *engine) {
  struct hb_sequencer *sequencer = &engine->sequencer;
  set_times(engine);
  hb_writer_start(engine);
  hb_thread_start(&sequencer->thread, "hb-sequencer", run, engine);
  sequencer->started = true;
}

void hb_sequencer_stop(struct hb_engine *engine) {
  struct hb_sequencer *sequencer = &engine->sequencer;
  if (!sequencer->started) return;
  atomic_store(&sequencer->stopping, true);
  hb_sequencer_poke(sequencer);
  pthread_join(sequencer->thread, NULL);
  hb_writer_stop(engine);
  sequencer->started = false;
}

/* ---- after a failure */

void hb_sequencer_resume(struct hb_engine *engine) {
  struct hb_sequencer *sequencer = &engine->sequencer;
  sequencer->failed = false;
  sequencer->unsynced = false; /* opening made all of it durable */
  set_times(engine);
}

void hb_sequencer_drop_notes(struct hb_engine *engine) {
  struct hb_sequencer *sequencer = &engine->sequencer;
  hb_sequencer_take_notes(engine);
  while (sequencer->index_notes) {
    struct hb_index_note *note = sequencer->index_notes;
    sequencer->index_notes = note->next;
    hb_index_note_destroy(note);
  }
  sequencer->index_notes_end = &sequencer->index_notes;
}

static void drop_deletions(struct hb_engine *engine) {
  struct hb_sequencer *sequencer = &engine->sequencer;
  struct hb_node *node;
  while ((node = hb_mailbox_take(sequencer->deletions, SIZE_MAX, 0)) != NULL) {
    while (node) {
      struct hb_node *next = node->next;
      free(node); /* first member of its struct hb_deletion */
      node = next;
    }
  }
}

void hb_sequencer_destroy(struct hb_engine *engine) {
  struct hb_sequencer *sequencer = &engine->sequencer;
  if (!sequencer->inbox) return;
  hb_sequencer_drop_notes(engine);
  drop_deletions(engine);
  (void)hb_mailbox_take(sequencer->inbox, SIZE_MAX, 0); /* at most the poke */
  hb_publish_done(engine);
  hb_registry_done(&sequencer->registry);
  hb_write_destroy(sequencer->write);
  hb_ordering_destroy(sequencer->core);
  hb_mailbox_destroy(sequencer->inbox);
  hb_mailbox_destroy(sequencer->jobs);
  hb_mailbox_destroy(sequencer->rooms);
  hb_mailbox_destroy(sequencer->needs);
  hb_mailbox_destroy(sequencer->fetched);
  hb_mailbox_destroy(sequencer->notes);
  hb_mailbox_destroy(sequencer->deletions);
  hb_mailbox_destroy(sequencer->bundles);
  sequencer->inbox = NULL;
}
