/* Decides the order of batches: arrival, and within a call never past one that waits for a NEED.
 *
 * A batch that waits is in no list; its call's later batches queue behind it. When its answers are
 * there it takes its old place among those not decided yet, and so do those behind it, up to the
 * next one that waits. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "ordering/core_internal.h"

void hb_queue_insert(struct hb_batch_list *list, struct hb_batch *batch) {
  batch->next = NULL;
  if (!list->first) {
    list->first = list->last = batch;
  } else if (list->last->node.weight < batch->node.weight) {
    list->last->next = batch;
    list->last = batch;
  } else {
    struct hb_batch **at = &list->first;
    while ((*at)->node.weight < batch->node.weight) at = &(*at)->next;
    batch->next = *at;
    *at = batch;
  }
}

struct hb_batch *hb_queue_pop(struct hb_batch_list *list) {
  struct hb_batch *batch = list->first;
  if (!batch) return NULL;
  list->first = batch->next;
  if (!list->first) list->last = NULL;
  batch->next = NULL;
  return batch;
}

/* All of `more`, ascending like `list`, in one pass: hundreds of calls may each come back with all
 * that had queued behind a batch, and one by one that would be a square of their number. */
static void merge(struct hb_batch_list *list, struct hb_batch_list *more) {
  struct hb_batch **at = &list->first;
  while (more->first) {
    struct hb_batch *batch = more->first;
    if (list->last && list->last->node.weight < batch->node.weight) at = &list->last->next;
    while (*at && (*at)->node.weight < batch->node.weight) at = &(*at)->next;
    if (!*at) { /* the end: all that is left goes there */
      *at = batch;
      list->last = more->last;
      return;
    }
    more->first = batch->next;
    batch->next = *at;
    *at = batch;
    at = &batch->next;
  }
}

/* ---- calls that wait */

static struct hb_call_wait **bucket_of(struct hb_ordering *core, uint64_t call) {
  return &core->waits[(call * UINT64_C(0x9E3779B97F4A7C15)) >> 54];
}

_Static_assert(HB_WAIT_BUCKETS == 1 << 10, "the hash above gives ten bits");

static struct hb_call_wait *find_wait(const struct hb_ordering *core, uint64_t call) {
  struct hb_call_wait *wait = core->waits[(call * UINT64_C(0x9E3779B97F4A7C15)) >> 54];
  while (wait && wait->call != call) wait = wait->next;
  return wait;
}

/* NULL: nothing of its call that came before it waits. */
static struct hb_call_wait *wait_before(const struct hb_ordering *core,
                                        const struct hb_batch *batch) {
  struct hb_call_wait *wait = find_wait(core, batch->call);
  return wait && wait->waiting->node.weight < batch->node.weight ? wait : NULL;
}

bool hb_queue_is_behind(const struct hb_ordering *core, const struct hb_batch *batch) {
  return wait_before(core, batch) != NULL;
}

bool hb_queue_put_behind(struct hb_ordering *core, struct hb_batch *batch) {
  struct hb_call_wait *wait = wait_before(core, batch);
  if (!wait) return false;
  batch->state = HB_BATCH_BEHIND;
  hb_queue_insert(&wait->behind, batch);
  return true;
}

static struct hb_call_wait *begin_wait(struct hb_ordering *core, struct hb_batch *batch) {
  struct hb_call_wait *wait = hb_alloc(sizeof *wait);
  struct hb_call_wait **bucket = bucket_of(core, batch->call);
  *wait = (struct hb_call_wait){.call = batch->call, .waiting = batch, .next = *bucket};
  *bucket = wait;
  batch->state = HB_BATCH_WAITING;
  return wait;
}

void hb_queue_wait(struct hb_ordering *core, struct hb_batch *batch) {
  struct hb_call_wait *wait = find_wait(core, batch->call);
  if (!wait) {
    (void)begin_wait(core, batch);
    return;
  }
  struct hb_batch *later = wait->waiting;
  wait->waiting = batch;
  batch->state = HB_BATCH_WAITING;
  HB_ASSERT(hb_queue_put_behind(core, later));
}

static struct hb_batch_list end_wait(struct hb_ordering *core, const struct hb_batch *batch) {
  struct hb_call_wait **at = bucket_of(core, batch->call);
  while (*at && (*at)->waiting != batch) at = &(*at)->next;
  struct hb_call_wait *wait = *at;
  HB_ASSERT(wait);
  struct hb_batch_list behind = wait->behind;
  *at = wait->next;
  free(wait);
  return behind;
}

/* ---- handing back */

void hb_queue_answer(struct hb_ordering *core, struct hb_batch *batch) {
  if (batch->pinned) hb_per_key_unpin(core, batch);
  core->batch_bytes -= batch->bytes;
  batch->next = NULL;
  if (core->answered.last) {
    core->answered.last->next = batch;
  } else {
    core->answered.first = batch;
  }
  core->answered.last = batch;
}

void hb_queue_fail(struct hb_ordering *core, struct hb_batch *batch, enum hb_code code) {
  if (code == HB_NOT_FOUND) {
    (void)hb_err_set(&batch->error, code, "STREAM_NOT_FOUND", "stream: it does not exist");
  } else {
    (void)hb_err_set(&batch->error, code, NULL, "batch: outcome unknown, send again");
  }
  hb_queue_answer(core, batch);
}

void hb_ordering_refuse(struct hb_ordering *core, const struct hb_err *err) {
  HB_ASSERT(!core->in_flight && err->code != HB_OK);
  core->round.prepared = false;
  for (struct hb_batch *batch = hb_queue_pop(&core->ready); batch;
       batch = hb_queue_pop(&core->ready)) {
    batch->error = *err;
    hb_queue_answer(core, batch);
  }
}

struct hb_batch *hb_ordering_take_answered(struct hb_ordering *core) {
  return hb_queue_pop(&core->answered);
}

size_t hb_ordering_waiting_bytes(const struct hb_ordering *core) { return core->waiting_bytes; }

size_t hb_ordering_batch_bytes(const struct hb_ordering *core) { return core->batch_bytes; }

/* ---- coming in */

/* Into `to`, where it can go on. */
static void make_ready(struct hb_ordering *core, struct hb_batch *batch, struct hb_batch_list *to) {
  if (core->dead) {
    hb_queue_fail(core, batch, HB_UNAVAILABLE);
  } else if (!hb_core_find_stream(core, batch->stream)) {
    hb_queue_fail(core, batch, HB_NOT_FOUND);
  } else if (batch->error.code) { /* what it asked for can't be read: it fails alone */
    hb_queue_answer(core, batch);
  } else {
    batch->state = HB_BATCH_READY;
    hb_queue_insert(to, batch);
  }
}

void hb_ordering_submit(struct hb_ordering *core, struct hb_batch *batch) {
  HB_ASSERT(batch->count > 0);
  core->batch_bytes += batch->bytes;
  core->round.prepared = false;
  batch->node.weight = ++core->arrivals;
  batch->needs_open = 0;
  batch->error.code = HB_OK;
  batch->pinned = 0;
  if (!hb_queue_put_behind(core, batch)) make_ready(core, batch, &core->ready);
}

void hb_queue_resume(struct hb_ordering *core, struct hb_batch *batch, const struct hb_err *err) {
  if (err->code) batch->error = *err;
  if (batch->state == HB_BATCH_BEHIND) return; /* its turn comes */
  struct hb_batch_list behind = end_wait(core, batch);
  struct hb_batch_list again = {0};
  core->round.prepared = false;
  make_ready(core, batch, &again);
  for (batch = hb_queue_pop(&behind); batch; batch = hb_queue_pop(&behind)) {
    if (batch->needs_open) {
      begin_wait(core, batch)->behind = behind;
      break;
    }
    make_ready(core, batch, &again);
  }
  merge(&core->ready, &again);
}
