/* The batches of one appender that are not answered yet, in the order of their sending.
 *
 *   answered -> | sent, unanswered ... | not sent ... | <- pushed
 *
 * The server answers in order, with ordinals from 0 in each call. After a lost call everything
 * that was sent and not answered is sent again, in the same order, in a new one: each answer is
 * taken once, since only the batch at the front can be answered. Pure; one thread. */
#ifndef HB_CLIENT_OUTBOX_H
#define HB_CLIENT_OUTBOX_H

#include "client/batch.h"

/* Zeroed = empty. */
struct hbc_outbox {
  struct hbc_batch *first;
  struct hbc_batch *last;
  struct hbc_batch *last_sent; /* in this call; NULL = none */
  size_t count;
  uint64_t next_ordinal; /* of the next answer of this call */
};

/* The reference becomes the outbox's. */
void hbc_outbox_push(struct hbc_outbox *outbox, struct hbc_batch *owned);
/* In front of all that is not sent yet. */
void hbc_outbox_push_first(struct hbc_outbox *outbox, struct hbc_batch *owned);
/* The next to send; NULL = everything is sent. Borrowed. */
struct hbc_batch *hbc_outbox_unsent(const struct hbc_outbox *outbox);
void hbc_outbox_sent(struct hbc_outbox *outbox);
/* The batch that answer `ordinal` is for; the reference is the caller's. NULL: that answer can't
 * be, it is for nothing that was sent. */
struct hbc_batch *hbc_outbox_answered(struct hbc_outbox *outbox, uint64_t ordinal);
/* The call is lost: nothing counts as sent any more. */
void hbc_outbox_rewind(struct hbc_outbox *outbox);
void hbc_outbox_done(struct hbc_outbox *outbox);

#endif
