/* Decides which batch is sent next and which one an answer is for. */
#include "client/outbox.h"

#include "base/assert.h"

void hbc_outbox_push(struct hbc_outbox *outbox, struct hbc_batch *owned) {
  owned->next = NULL;
  if (outbox->last) {
    outbox->last->next = owned;
  } else {
    outbox->first = owned;
  }
  outbox->last = owned;
  outbox->count++;
}

void hbc_outbox_push_first(struct hbc_outbox *outbox, struct hbc_batch *owned) {
  struct hbc_batch **link = outbox->last_sent ? &outbox->last_sent->next : &outbox->first;
  owned->next = *link;
  *link = owned;
  if (!owned->next) outbox->last = owned;
  outbox->count++;
}

struct hbc_batch *hbc_outbox_unsent(const struct hbc_outbox *outbox) {
  return outbox->last_sent ? outbox->last_sent->next : outbox->first;
}

void hbc_outbox_sent(struct hbc_outbox *outbox) {
  struct hbc_batch *batch = hbc_outbox_unsent(outbox);
  HB_ASSERT(batch);
  outbox->last_sent = batch;
}

struct hbc_batch *hbc_outbox_answered(struct hbc_outbox *outbox, uint64_t ordinal) {
  if (!outbox->last_sent || ordinal != outbox->next_ordinal) return NULL;
  struct hbc_batch *batch = outbox->first;
  outbox->first = batch->next;
  if (!outbox->first) outbox->last = NULL;
  if (outbox->last_sent == batch) outbox->last_sent = NULL;
  outbox->next_ordinal++;
  outbox->count--;
  return batch;
}

void hbc_outbox_rewind(struct hbc_outbox *outbox) {
  outbox->last_sent = NULL;
  outbox->next_ordinal = 0;
}

void hbc_outbox_done(struct hbc_outbox *outbox) {
  while (outbox->first) {
    struct hbc_batch *batch = outbox->first;
    outbox->first = batch->next;
    hbc_batch_unref(batch);
  }
  *outbox = (struct hbc_outbox){0};
}
