/* Decides what stands in one RocksDB write and whether it is fsynced.
 *
 * A commit of the core is one write, together with rows that others handed in meanwhile (index
 * rows, peers, served time). It is fsynced unless every batch in it is an ASYNC stream's; then the
 * fsync follows within async_sync_ms, or as soon as as much as one commit may bring is unpublished.
 * Only an fsync publishes (I2).
 *
 * A commit that holds much is handed to the writer, see in_flight.c; everything else is written
 * here and waits until that is durable.
 *
 * A write that fails for lack of space costs the store and the core, not the process; any other
 * failure, and that of a sync for whatever reason, ends it (I6). */
#include "base/assert.h"
#include "base/clock.h"
#include "base/frame/scan.h"
#include "server/engine/engine_internal.h"

enum { UNPUBLISHED_BYTES_MAX = 16 << 20 };

/* ---- rows that ride along */

/* Rows of streams that are gone meanwhile are left out: their data is being dropped. */
static void put_index_notes(struct hb_engine *engine, uint64_t number) {
  struct hb_sequencer *sequencer = &engine->sequencer;
  while (sequencer->index_notes) {
    struct hb_index_note *note = sequencer->index_notes;
    sequencer->index_notes = note->next;
    struct hb_stream *stream = hb_registry_find(&sequencer->registry, note->stream);
    if (stream) {
      for (size_t i = 0; note->rows && i < note->rows->count; i++) {
        hb_write_put_index_entry(sequencer->write, note->stream, &note->rows->entries[i]);
      }
      hb_write_put_indexed_to(sequencer->write, note->stream, note->indexed_to);
      hb_publish_touch(engine, note->stream, number);
      stream->indexed_to = note->indexed_to;
      stream->indexed_known = true;
    }
    hb_index_note_destroy(note);
  }
  sequencer->index_notes_end = &sequencer->index_notes;
}

static void put_extras(struct hb_engine *engine, uint64_t number) {
  struct hb_sequencer *sequencer = &engine->sequencer;
  put_index_notes(engine, number);
  (void)hb_peers_put(&engine->peers, sequencer->write);
  hb_write_put_served_ms(sequencer->write, hb_engine_served_ms(engine));
  sequencer->save_due_ns = hb_clock_mono_ns() + engine->tuning.save_ms * UINT64_C(1000000);
}

/* ---- a commit's rows */

/* Bytes of blocks and bundles. */
static uint64_t put_events(struct hb_write *write, const struct hb_commit *commit) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < commit->blocks_count; i++) {
    const struct hb_put_block *put = &commit->blocks[i];
    hb_write_put_block(write, put->stream, put->from, hb_bytes_view(put->block));
    bytes += put->block->size;
  }
  for (size_t i = 0; i < commit->bundles_count; i++) {
    hb_write_put_bundle(write, commit->bundles[i].id, hb_bytes_view(commit->bundles[i].block));
    bytes += commit->bundles[i].block->size;
  }
  for (size_t i = 0; i < commit->drained_count; i++) {
    hb_write_delete_bundle(write, commit->drained[i]);
  }
  for (size_t i = 0; i < commit->unprocessed_count; i++) {
    const struct hb_put_unprocessed *put = &commit->unprocessed[i];
    hb_write_put_unprocessed(write, put->stream, put->outcome, put->event->sequence,
                             put->content_hash, hb_event_frame(put->event),
                             put->receipt.received_ms, put->receipt.peer);
  }
  return bytes;
}

static void put_state(struct hb_write *write, const struct hb_commit *commit) {
  for (size_t i = 0; i < commit->keys_count; i++) {
    hb_write_put_key(write, commit->keys[i].stream, commit->keys[i].key, &commit->keys[i].record);
  }
  for (size_t i = 0; i < commit->frontiers_count; i++) {
    hb_write_put_frontier(write, commit->frontiers[i].stream, &commit->frontiers[i].record);
  }
  for (size_t i = 0; i < commit->gone_gaps_count; i++) {
    hb_write_delete_gap(write, commit->gone_gaps[i].stream, commit->gone_gaps[i].start);
  }
  for (size_t i = 0; i < commit->gaps_count; i++) {
    hb_write_put_gap(write, commit->gaps[i].stream, &commit->gaps[i].gap);
  }
}

/* Before the write: from here on a reader's view may show what is not published yet. */
static void touch(struct hb_engine *engine, const struct hb_commit *commit) {
  for (size_t i = 0; i < commit->frontiers_count; i++) {
    hb_publish_touch(engine, commit->frontiers[i].stream, commit->number);
  }
  for (size_t i = 0; i < commit->blocks_count; i++) {
    hb_publish_touch(engine, commit->blocks[i].stream, commit->number);
  }
  for (size_t i = 0; i < commit->bundles_count; i++) {
    hb_publish_touch(engine, commit->bundles[i].id.stream, commit->number);
  }
  for (size_t i = 0; i < commit->drained_count; i++) {
    hb_publish_touch(engine, commit->drained[i].stream, commit->number);
  }
}

/* ---- applying */

/* RocksDB wrote nothing into its tables, so no view will ever show what was noted. */
static void forget_writes(struct hb_engine *engine, uint64_t number) {
  struct hb_sequencer *sequencer = &engine->sequencer;
  for (size_t i = 0; i < sequencer->registry.count; i++) {
    struct hb_stream *stream = sequencer->registry.streams[i];
    if (stream->touched == number) hb_stream_forget_write(stream);
  }
}

bool hb_sequencer_wrote(struct hb_engine *engine, uint64_t number, enum hb_code code,
                        const struct hb_err *err) {
  hb_write_clear(engine->sequencer.write);
  if (code == HB_OK) return true;
  if (code == HB_NO_SPACE) {
    forget_writes(engine, number);
    hb_sequencer_lose(engine, err);
  } else {
    hb_sequencer_fail(engine, err);
  }
  return false;
}

static bool apply(struct hb_engine *engine, uint64_t number, bool sync, struct hb_err *err) {
  HB_ASSERT(!engine->sequencer.in_flight.on);
  struct hb_err own = {0};
  hb_store_write_fn *store_write = atomic_load(&engine->store_write);
  enum hb_code code = store_write(engine->store, engine->sequencer.write, number, sync, &own);
  if (hb_sequencer_wrote(engine, number, code, &own)) return true;
  (void)hb_err_failed(err);
  return false;
}

static void note_unsynced(struct hb_engine *engine) {
  struct hb_sequencer *sequencer = &engine->sequencer;
  if (sequencer->unsynced) return;
  sequencer->unsynced = true;
  sequencer->sync_due_ns = hb_clock_mono_ns() + engine->async_sync_ms * UINT64_C(1000000);
}

void hb_sequencer_note_synced(struct hb_engine *engine) {
  engine->sequencer.unsynced = false;
  hb_publish_all(engine);
}

/* A commit that holds much is followed by others that hold much, and to hold an event is what takes
 * the core longest: as long as its way to the disk. Where little is held the next commit is decided
 * at once, and the way over another thread would only cost. Rows of `unprocessed` are looked for by
 * processors as soon as they are told. */
static bool may_fly(const struct hb_engine *engine, const struct hb_commit *commit) {
  uint64_t held = 0;
  for (size_t i = 0; i < commit->bundles_count; i++) held += commit->bundles[i].block->size;
  return commit->durable && commit->unprocessed_count == 0 && held >= engine->tuning.fly_bytes;
}

/* The core is told before it is written; in_flight.c has what follows from that. */
static void fly(struct hb_engine *engine, const struct hb_commit *commit) {
  uint64_t number = commit->number;
  hb_publish_keep(engine, commit);
  hb_ordering_committed(engine->sequencer.core, commit);
  hb_publish_stage(engine);
  hb_in_flight_begin(engine, number);
}

bool hb_sequencer_write_commit(struct hb_engine *engine, const struct hb_commit *commit) {
  struct hb_sequencer *sequencer = &engine->sequencer;
  if (!hb_in_flight_settle(engine)) return false;
  if (hb_commit_is_empty(commit)) {
    hb_ordering_committed(sequencer->core, commit);
    return true;
  }
  touch(engine, commit);
  hb_disk_note_write(engine, put_events(sequencer->write, commit));
  put_state(sequencer->write, commit);
  put_extras(engine, commit->number);
  if (may_fly(engine, commit)) {
    fly(engine, commit);
    return true;
  }
  if (!apply(engine, commit->number, commit->durable, NULL)) return false;
  hb_publish_keep(engine, commit);
  hb_processors_note_moved(engine, commit);
  bool durable = commit->durable;
  hb_ordering_committed(sequencer->core, commit);
  if (durable) {
    hb_sequencer_note_synced(engine);
    return true;
  }
  note_unsynced(engine);
  return sequencer->unpublished_bytes < UNPUBLISHED_BYTES_MAX || hb_sequencer_sync(engine);
}

/* A write of its own that no fsync waits for: results are shown with the next one (I2). */
void hb_sequencer_write_bundle(struct hb_engine *engine, struct hb_processor_commit *commit) {
  struct hb_sequencer *sequencer = &engine->sequencer;
  struct hb_processor *processor = commit->processor;
  if (processor->gone) {
    hb_processor_answer(processor, HB_BUNDLE_GONE);
    return;
  }
  HB_ASSERT(!sequencer->in_flight.on || sequencer->failed);
  if (sequencer->failed || commit->epoch != atomic_load(&engine->store_epoch)) {
    hb_processor_answer(processor, HB_BUNDLE_LOST);
    return;
  }
  if (hb_disk_stops_writes(engine) && !commit->frees) {
    hb_processor_answer(processor, HB_BUNDLE_LATER);
    return;
  }
  uint64_t number = hb_ordering_take_number(sequencer->core);
  hb_publish_touch_stream(engine, processor->results, number);
  if (processor->statuses) hb_publish_touch_stream(engine, processor->statuses, number);
  hb_disk_note_write(engine, commit->bytes);
  struct hb_err err = {0};
  hb_store_write_fn *store_write = atomic_load(&engine->store_write);
  enum hb_code code = store_write(engine->store, commit->write, number, commit->durable, &err);
  if (code != HB_OK) {
    if (code == HB_NO_SPACE) {
      hb_stream_forget_write(processor->results);
      if (processor->statuses) hb_stream_forget_write(processor->statuses);
      hb_sequencer_lose(engine, &err);
    } else {
      hb_sequencer_fail(engine, &err);
    }
    hb_processor_answer(processor, HB_BUNDLE_LOST);
    return;
  }
  if (commit->bundle) hb_processor_note_written(engine, processor, commit->bundle);
  bool durable = commit->durable;
  hb_processor_answer(processor, HB_BUNDLE_WRITTEN); /* `commit` may be gone from here on */
  if (durable) {
    hb_sequencer_note_synced(engine);
  } else {
    note_unsynced(engine);
    if (sequencer->unpublished_bytes >= UNPUBLISHED_BYTES_MAX) (void)hb_sequencer_sync(engine);
  }
}

struct hb_write *hb_sequencer_begin_rows(struct hb_engine *engine) {
  HB_ASSERT(!engine->sequencer.failed && !engine->sequencer.in_flight.on);
  HB_ASSERT(hb_write_is_empty(engine->sequencer.write));
  return engine->sequencer.write;
}

bool hb_sequencer_apply_rows(struct hb_engine *engine, struct hb_err *err) {
  struct hb_sequencer *sequencer = &engine->sequencer;
  uint64_t number = hb_ordering_take_number(sequencer->core);
  put_extras(engine, number);
  if (!apply(engine, number, true, err)) return false;
  hb_sequencer_note_synced(engine);
  return true;
}

bool hb_sequencer_sync(struct hb_engine *engine) {
  struct hb_err err = {0};
  if (!hb_in_flight_settle(engine)) return false;
  if (!engine->sequencer.unsynced) return true; /* that synced it */
  if (hb_store_sync(engine->store, &err) == HB_OK) {
    hb_sequencer_note_synced(engine);
    return true;
  }
  hb_sequencer_fail(engine, &err);
  return false;
}

bool hb_sequencer_save_served(struct hb_engine *engine) {
  struct hb_sequencer *sequencer = &engine->sequencer;
  if (!hb_in_flight_settle(engine)) return false;
  uint64_t number = hb_ordering_take_number(sequencer->core);
  put_extras(engine, number);
  if (!apply(engine, number, false, NULL)) return false;
  note_unsynced(engine);
  return true;
}
