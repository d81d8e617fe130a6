/* A batch on its way through the core: what a producer sent, and what is decided about it.
 *
 * Whoever submits owns the memory (the pump: one allocation that also carries its mailbox node
 * and its answer slot) and leaves it alone from hb_ordering_submit until the core hands the batch
 * back through hb_ordering_take_answered. The events' frames live as long. */
#ifndef HB_ORDERING_BATCH_H
#define HB_ORDERING_BATCH_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/frame/scan.h"
#include "base/mailbox.h"
#include "base/types.h"

/* What a comparison with stored content showed; it stays true, for contents never change. */
enum hb_verdict {
  HB_VERDICT_NONE = 0,
  HB_VERDICT_EQUAL,
  HB_VERDICT_DIFFERENT,
  HB_VERDICT_VOID,      /* the sequence was voided before it came: LATE */
  HB_VERDICT_CHAIN,     /* only another event's `previous` covers it: CONFLICT, CHAIN_CONFLICT */
  HB_VERDICT_TRUNCATED, /* below earliest: DUPLICATE, UNVERIFIED */
  HB_VERDICT_MOVED      /* a reader's answer only: not at the place asked for, ask again */
};

struct hb_decision {
  uint8_t outcome; /* enum hb_outcome */
  uint8_t reason;  /* enum hb_reason */
  uint8_t verdict; /* enum hb_verdict, the core's */
  uint8_t flags;   /* the core's */
};

struct hb_batch {
  struct hb_node node; /* whoever holds the batch uses it for its lists */

  /* Set by who submits. */
  uint64_t stream;
  uint64_t call; /* batches with the same number are decided in the order of their submission */
  const struct hb_event *events;
  struct hb_decision *decisions; /* one per event, zeroed */
  uint32_t count;                /* > 0 */
  size_t bytes;                  /* of the encoded batch: its weight everywhere */
  struct hb_receipt receipt;

  /* The answer. error.code == HB_OK: each decision has an outcome. Otherwise nothing of the batch
   * is known to be stored: HB_UNAVAILABLE ("outcome unknown, send again"), HB_NOT_FOUND. */
  struct hb_err error;

  /* The core's while it has the batch. */
  struct hb_batch *next;
  uint32_t needs_open;
  uint32_t pinned; /* PER_KEY: keys that stay in memory for it */
  uint32_t state;
};

#endif
