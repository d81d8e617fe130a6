/* Decides what is done with what other threads sent: jobs, answered needs, fetched bundles, index
 * rows, a processor's bundles, deletion steps, those who wait for room. What writes, or looks at
 * the core as it is between two commits, waits for the commit that is in flight. */
#include <stdlib.h>

#include "base/clock.h"
#include "server/engine/engine_internal.h"

static void take_needs(struct hb_engine *engine) {
  struct hb_sequencer *sequencer = &engine->sequencer;
  struct hb_node *node;
  while ((node = hb_mailbox_take(sequencer->needs, SIZE_MAX, 0)) != NULL) {
    while (node) {
      struct hb_need *need = (struct hb_need *)node;
      node = node->next;
      hb_append_call_waits(engine, need->batch->call, false);
      sequencer->needs_out--;
      hb_ordering_answer_need(sequencer->core, need);
    }
  }
}

/* A release that comes to a bundle that can't be read stops there: who waits for what follows is to
 * know why. It goes on where a later attempt succeeds. */
static void note_fetched(struct hb_engine *engine, const struct hb_fetch *fetch) {
  struct hb_stream *stream = hb_registry_find(&engine->sequencer.registry, fetch->id.stream);
  if (!stream || !hb_ordering_waits_for(engine->sequencer.core, fetch->id)) return;
  hb_stream_set_damage(stream, fetch->error.code == HB_CORRUPT ? &fetch->error : NULL);
}

static void take_fetched(struct hb_engine *engine) {
  struct hb_sequencer *sequencer = &engine->sequencer;
  struct hb_node *node;
  while ((node = hb_mailbox_take(sequencer->fetched, SIZE_MAX, 0)) != NULL) {
    while (node) {
      struct hb_fetch *fetch = (struct hb_fetch *)node;
      node = node->next;
      sequencer->fetches_out--;
      if (!sequencer->failed) {
        note_fetched(engine, fetch);
        hb_ordering_fetched(sequencer->core, fetch->id, fetch->block);
      }
      hb_bytes_unref(fetch->block);
      free(fetch);
    }
  }
}

void hb_sequencer_take_notes(struct hb_engine *engine) {
  struct hb_sequencer *sequencer = &engine->sequencer;
  struct hb_node *node;
  while ((node = hb_mailbox_take(sequencer->notes, SIZE_MAX, 0)) != NULL) {
    while (node) {
      struct hb_index_note *note = (struct hb_index_note *)node;
      node = node->next;
      if (note->epoch != atomic_load(&engine->store_epoch)) {
        hb_index_note_destroy(note);
        continue;
      }
      if (!sequencer->index_notes) {
        sequencer->index_due_ns = hb_clock_mono_ns() + engine->tuning.tick_ms * UINT64_C(200000);
      }
      note->next = NULL;
      *sequencer->index_notes_end = note;
      sequencer->index_notes_end = &note->next;
    }
  }
}

static void take_deletions(struct hb_engine *engine) {
  struct hb_node *node;
  while ((node = hb_mailbox_take(engine->sequencer.deletions, SIZE_MAX, 0)) != NULL) {
    (void)hb_in_flight_settle(engine);
    while (node) {
      struct hb_deletion *deletion = (struct hb_deletion *)node;
      node = node->next;
      hb_deletion_continue(engine, deletion);
    }
  }
}

static void take_bundles(struct hb_engine *engine) {
  struct hb_node *node;
  while ((node = hb_mailbox_take(engine->sequencer.bundles, SIZE_MAX, 0)) != NULL) {
    (void)hb_in_flight_settle(engine);
    while (node) {
      struct hb_processor_commit *commit = (struct hb_processor_commit *)node;
      node = node->next;
      hb_sequencer_write_bundle(engine, commit);
    }
  }
}

void hb_sequencer_take_jobs(struct hb_engine *engine) {
  struct hb_node *node;
  while ((node = hb_mailbox_take(engine->sequencer.jobs, SIZE_MAX, 0)) != NULL) {
    (void)hb_in_flight_settle(engine);
    while (node) {
      struct hb_job *job = (struct hb_job *)node;
      node = node->next;
      hb_job_run(engine, job);
    }
  }
}

void hb_sequencer_take_rooms(struct hb_engine *engine) {
  struct hb_sequencer *sequencer = &engine->sequencer;
  struct hb_node *node;
  while ((node = hb_mailbox_take(sequencer->rooms, SIZE_MAX, 0)) != NULL) {
    while (node) {
      struct hb_node *next = node->next;
      node->next = sequencer->rooms_waiting;
      sequencer->rooms_waiting = node;
      node = next;
    }
  }
}

void hb_sequencer_take_all(struct hb_engine *engine) {
  hb_sequencer_take_rooms(engine);
  take_needs(engine);
  take_fetched(engine);
  hb_sequencer_take_notes(engine);
  take_bundles(engine);
  hb_sequencer_take_jobs(engine);
  take_deletions(engine);
}
