/* A bounded mailbox: how one thread hands work to another. Many post, one takes.
 *
 * Nodes are intrusive: whoever posts embeds an hb_node in its own object, so posting allocates
 * nothing. Each node weighs something (bytes, by habit); try_post refuses what would pass the
 * cap, post never refuses and is for control messages whose number is bounded by other means.
 * A single node heavier than the cap is taken when the mailbox is empty, so nothing is stuck. */
#ifndef HB_BASE_MAILBOX_H
#define HB_BASE_MAILBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hb_node {
  struct hb_node *next; /* the mailbox's while posted, the taker's afterwards */
  size_t weight;
};

struct hb_mailbox;

/* `wake(context)` is called by the posting thread, outside the lock, when the mailbox turns from
 * empty to not empty; NULL = the taker blocks in hb_mailbox_take instead. `cap` in weight. */
struct hb_mailbox *hb_mailbox_create(size_t cap, void (*wake)(void *), void *context);
/* Nothing may be posted any more and it must be empty. NULL is allowed. */
void hb_mailbox_destroy(struct hb_mailbox *mailbox);

/* Any thread. False: full, the node is still the caller's. */
bool hb_mailbox_try_post(struct hb_mailbox *mailbox, struct hb_node *node, size_t weight);
void hb_mailbox_post(struct hb_mailbox *mailbox, struct hb_node *node);

/* The taker's thread: a list in posting order, linked by next, of nodes that together weigh at
 * most `weight_max` (but at least one). Waits until `deadline_ns` (monotonic; 0 = don't wait,
 * UINT64_MAX = for ever) for the first. NULL: none came. */
struct hb_node *hb_mailbox_take(struct hb_mailbox *mailbox, size_t weight_max,
                                uint64_t deadline_ns);
/* What is posted and not taken. Any thread; stale at once. */
size_t hb_mailbox_weight(struct hb_mailbox *mailbox);

#endif
