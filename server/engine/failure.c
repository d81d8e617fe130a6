/* Decides what a failed write costs: the core in any case, for it knows what may not be stored
 * (I6); the store where the disk was full, until it is opened again; else the process. */
#include "server/engine/engine_internal.h"

static void give_up(struct hb_engine *engine) {
  struct hb_sequencer *sequencer = &engine->sequencer;
  sequencer->failed = true;
  hb_ordering_fail(sequencer->core);
  (void)hb_sequencer_answer(engine);
  for (size_t i = 0; i < sequencer->registry.count; i++) {
    hb_stream_mark_lost(sequencer->registry.streams[i]);
  }
  hb_processors_mark_lost(engine);
}

void hb_sequencer_fail(struct hb_engine *engine, const struct hb_err *err) {
  struct hb_sequencer *sequencer = &engine->sequencer;
  if (sequencer->fatal) return;
  sequencer->fatal = true;
  if (!sequencer->failed) give_up(engine);
  if (engine->on_fatal) engine->on_fatal(engine->context, err);
}

void hb_sequencer_lose(struct hb_engine *engine, const struct hb_err *err) {
  hb_disk_lose(engine, err);
  give_up(engine);
}
