/* Decides how much of a verification is done at a time: so little that a reader's thread is soon
 * free again, and so few findings that an answer holds them. */
#include "server/engine/verify.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "server/engine/engine_internal.h"

enum { STEP_BYTES = 4 << 20 };

static void note(void *context, const struct hb_finding *finding) {
  struct hb_verification *verification = context;
  hb_reserve((void **)&verification->findings, &verification->findings_cap,
             verification->findings_count + 1, sizeof *verification->findings);
  verification->findings[verification->findings_count++] = *finding;
}

enum hb_code hb_engine_verify_begin(struct hb_engine *engine, struct hb_verification *verification,
                                    uint64_t stream, struct hb_err *err) {
  bool idle = false;
  if (!atomic_compare_exchange_strong(&engine->verifying, &idle, true)) {
    return hb_err_set(err, HB_LIMIT, "VERIFICATION_RUNS",
                      "another verification is under way, and one at a time is the limit");
  }
  struct hb_verify_options options = {.store = engine->store,
                                      .stream = stream,
                                      .live = true,
                                      .found = note,
                                      .context = verification};
  verification->verify = hb_verify_create(&options);
  return HB_OK;
}

void hb_verification_run(struct hb_engine *engine, struct hb_node *node) {
  (void)engine;
  struct hb_verification *verification = (struct hb_verification *)node;
  verification->finished = !hb_verify_step(verification->verify, STEP_BYTES);
  verification->counts = *hb_verify_counts(verification->verify);
  verification->done(verification);
}

void hb_engine_verify_step(struct hb_engine *engine, struct hb_verification *verification) {
  verification->findings_count = 0;
  verification->error = (struct hb_err){0};
  if (!hb_door_enter(engine)) {
    (void)hb_err_stops(&verification->error);
    verification->done(verification);
    return;
  }
  hb_pool_post(&engine->readers, HB_WORK_VERIFY, &verification->node);
  hb_door_leave(engine);
}

void hb_engine_verify_end(struct hb_engine *engine, struct hb_verification *verification) {
  if (!verification->verify) return;
  hb_verify_destroy(verification->verify);
  free(verification->findings);
  *verification = (struct hb_verification){0};
  atomic_store(&engine->verifying, false);
}
