/* Verification of the store beside the traffic, step by step: each step is a bounded piece on a
 * reader's thread, after what producers and subscribers wait for, and the next one begins when its
 * caller has taken the findings of the one before. One verification at a time. */
#ifndef HB_SERVER_ENGINE_VERIFY_H
#define HB_SERVER_ENGINE_VERIFY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/mailbox.h"
#include "server/engine/engine.h"
#include "storage/verify.h"

struct hb_verification {
  struct hb_node node;      /* the engine's, down to `lost` */
  struct hb_verify *verify; /* NULL until the first step */
  uint64_t stream;
  bool begun;
  bool lost; /* its store was closed */

  /* Of the last step; error HB_UNAVAILABLE: the engine stops, or has opened its store again. */
  struct hb_err error;
  struct hb_finding *findings; /* owned */
  size_t findings_count;
  size_t findings_cap;
  struct hb_verify_counts counts; /* of all steps */
  bool finished;

  /* A reader's thread; the caller's own once it stops. Must only hand on. */
  void (*done)(struct hb_verification *verification);
  void *context;
};

/* `stream` NULL = the whole store. HB_LIMIT: another verification is under way. */
HB_MUST_CHECK enum hb_code hb_engine_verify_begin(struct hb_engine *engine,
                                                  struct hb_verification *verification,
                                                  const struct hb_stream *stream,
                                                  struct hb_err *err);
/* Look at some more; ends in `done`. Not after the last step. */
void hb_engine_verify_step(struct hb_engine *engine, struct hb_verification *verification);
/* At any time but between step and done. A verification that did not begin is allowed. */
void hb_engine_verify_end(struct hb_engine *engine, struct hb_verification *verification);

#endif
