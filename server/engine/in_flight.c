/* Decides when a commit that is being made durable counts: only once it is.
 *
 * The core is told of it at once, so the next commit can be decided on top of it. Nobody else may
 * notice before: what it shows is staged (publish.c), its answers wait here, as do those of
 * batches that rest on it (a DUPLICATE of an event in it), nobody is sent to read what it writes,
 * and no other write is begun. Should it fail, the core is thrown away with all that was decided
 * on top (I6). */
#include "base/assert.h"
#include "server/engine/engine_internal.h"

void hb_in_flight_begin(struct hb_engine *engine, uint64_t number) {
  struct hb_in_flight *flight = &engine->sequencer.in_flight;
  HB_ASSERT(!flight->on && !flight->answers);
  flight->on = true;
  flight->number = number;
  flight->bytes = 0;
  flight->answers_end = &flight->answers;
  hb_writer_begin(engine, number);
}

void hb_in_flight_keep(struct hb_engine *engine, struct hb_batch *batch) {
  struct hb_in_flight *flight = &engine->sequencer.in_flight;
  flight->bytes += batch->bytes;
  batch->node.next = NULL;
  *flight->answers_end = &batch->node;
  flight->answers_end = &batch->node.next;
}

static void answer(struct hb_engine *engine, struct hb_node *node, bool written) {
  while (node) {
    struct hb_batch *batch = (struct hb_batch *)node;
    node = node->next;
    if (!written && batch->error.code == HB_OK) (void)hb_err_failed(&batch->error);
    hb_engine_answer(engine, (struct hb_append *)batch);
  }
}

bool hb_in_flight_settle(struct hb_engine *engine) {
  struct hb_in_flight *flight = &engine->sequencer.in_flight;
  if (!flight->on) return true;
  struct hb_err err = {0};
  enum hb_code code = hb_writer_wait(engine, &err);
  struct hb_node *answers = flight->answers;
  flight->answers = NULL;
  flight->on = false;
  if (code) answer(engine, answers, false); /* before those that the core has: they came first */
  if (!hb_sequencer_wrote(engine, flight->number, code, &err)) return false;
  hb_sequencer_note_synced(engine);
  answer(engine, answers, true);
  return true;
}
