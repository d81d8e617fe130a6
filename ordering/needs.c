/* Decides how questions for a reader leave the core and how answers come back.
 *
 * One NEED per batch, all its questions in it. A verdict that comes back is kept; MOVED leaves the
 * event without one, so it is asked again with the place as it is then. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "ordering/core_internal.h"

static struct hb_need *next_of(const struct hb_need *need) {
  return (struct hb_need *)(void *)need->node.next;
}

static struct hb_need *make(const struct hb_ordering *core, struct hb_batch *batch, size_t from,
                            size_t to) {
  size_t count = to - from;
  struct hb_need *need = hb_calloc(1, sizeof *need + count * sizeof *need->items);
  need->batch = batch;
  need->items = (struct hb_need_item *)(void *)(need + 1);
  need->count = count;
  for (size_t i = 0; i < count; i++) need->items[i] = core->wanted[from + i].item;
  return need;
}

void hb_needs_ask(struct hb_ordering *core, struct hb_batch *batch, size_t from, size_t to) {
  bool about_keys = core->wanted[from].item.place >= HB_PLACE_KEY_RECORD;
  struct hb_need *need =
      about_keys ? hb_per_key_ask(core, batch, from, to) : make(core, batch, from, to);
  batch->needs_open = 1;
  core->waiting_bytes += batch->bytes;
  if (core->needs_last) {
    core->needs_last->node.next = &need->node;
  } else {
    core->needs_first = need;
  }
  core->needs_last = need;
}

struct hb_need *hb_ordering_take_need(struct hb_ordering *core) {
  if (!core->in_flight && !core->dead) hb_round_prepare(core);
  struct hb_need *need = core->needs_first;
  if (!need) return NULL;
  core->needs_first = next_of(need);
  if (!core->needs_first) core->needs_last = NULL;
  need->node.next = NULL;
  core->needs_out++;
  return need;
}

static void end(struct hb_ordering *core, struct hb_batch *batch, const struct hb_err *err) {
  batch->needs_open = 0;
  core->waiting_bytes -= batch->bytes;
  hb_queue_resume(core, batch, err);
}

void hb_ordering_answer_need(struct hb_ordering *core, struct hb_need *owned_need) {
  HB_ASSERT(core->needs_out > 0);
  core->needs_out--;
  struct hb_batch *batch = owned_need->batch;
  for (size_t i = 0; i < owned_need->count; i++) {
    const struct hb_need_item *item = &owned_need->items[i];
    if (item->verdict == HB_VERDICT_MOVED) continue;
    batch->decisions[item->index].verdict = (uint8_t)item->verdict;
  }
  if (owned_need->keys_count) hb_per_key_answer(core, owned_need);
  end(core, batch, &owned_need->error);
  free(owned_need);
}

void hb_needs_drop(struct hb_ordering *core, const uint64_t *stream) {
  struct hb_need *need = core->needs_first;
  core->needs_first = core->needs_last = NULL;
  while (need) {
    struct hb_need *next = next_of(need);
    need->node.next = NULL;
    if (!stream || need->batch->stream == *stream) {
      struct hb_err err = {0};
      end(core, need->batch, &err);
      free(need);
    } else if (core->needs_last) {
      core->needs_last->node.next = &need->node;
      core->needs_last = need;
    } else {
      core->needs_first = core->needs_last = need;
    }
    need = next;
  }
}
