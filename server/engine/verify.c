/* Decides how much of a verification is done at a time: so little that a reader's thread is soon
 * free again, and so few findings that an answer holds them. */
#include "server/engine/verify.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "server/engine/engine_internal.h"
#include "server/engine/stream_internal.h"

static void note(void *context, const struct hb_finding *finding) {
  struct hb_verification *verification = context;
  hb_reserve((void **)&verification->findings, &verification->findings_cap,
             verification->findings_count + 1, sizeof *verification->findings);
  verification->findings[verification->findings_count++] = *finding;
}

enum hb_code hb_engine_verify_begin(struct hb_engine *engine, struct hb_verification *verification,
                                    const struct hb_stream *stream, struct hb_err *err) {
  pthread_mutex_lock(&engine->verification_mutex);
  bool idle = !engine->verification;
  if (idle) engine->verification = verification;
  pthread_mutex_unlock(&engine->verification_mutex);
  if (!idle) {
    return hb_err_set(err, HB_LIMIT, "VERIFICATION_RUNS",
                      "another verification is under way, and one at a time is the limit");
  }
  verification->begun = true;
  verification->stream = stream ? stream->id : 0;
  return HB_OK;
}

/* The store is open, and the same one, until this returns. */
static void look(struct hb_engine *engine, struct hb_verification *verification) {
  if (!verification->verify) {
    struct hb_verify_options options = {.store = engine->store,
                                        .stream = verification->stream,
                                        .live = true,
                                        .found = note,
                                        .context = verification};
    verification->verify = hb_verify_create(&options);
  }
  verification->finished = !hb_verify_step(verification->verify, engine->tuning.verify_step_bytes);
  verification->counts = *hb_verify_counts(verification->verify);
}

void hb_verification_run(struct hb_engine *engine, struct hb_node *node) {
  struct hb_verification *verification = (struct hb_verification *)node;
  if (verification->lost) {
    hb_err_set(&verification->error, HB_UNAVAILABLE, "STORE_REOPENED",
               "the store was opened again meanwhile; begin anew");
  } else {
    look(engine, verification);
  }
  verification->done(verification);
}

void hb_verification_refuse(struct hb_engine *engine, struct hb_node *node) {
  (void)engine;
  struct hb_verification *verification = (struct hb_verification *)node;
  (void)hb_err_no_store(&verification->error);
  verification->done(verification);
}

void hb_engine_verify_step(struct hb_engine *engine, struct hb_verification *verification) {
  verification->findings_count = 0;
  verification->error = (struct hb_err){.code = HB_OK};
  if (!hb_door_enter(engine)) {
    (void)hb_err_stops(&verification->error);
    verification->done(verification);
    return;
  }
  hb_pool_post(&engine->readers, HB_WORK_VERIFY, &verification->node);
  hb_door_leave(engine);
}

static void drop_locked(struct hb_verification *verification) {
  hb_verify_destroy(verification->verify);
  verification->verify = NULL;
  verification->lost = true;
}

/* Between two steps, for none runs while the store is closed: what it had of it is let go. */
void hb_verification_drop(struct hb_engine *engine) {
  pthread_mutex_lock(&engine->verification_mutex);
  if (engine->verification) drop_locked(engine->verification);
  pthread_mutex_unlock(&engine->verification_mutex);
}

void hb_engine_verify_end(struct hb_engine *engine, struct hb_verification *verification) {
  if (!verification->begun) return;
  pthread_mutex_lock(&engine->verification_mutex);
  drop_locked(verification);
  engine->verification = NULL;
  pthread_mutex_unlock(&engine->verification_mutex);
  free(verification->findings);
  *verification = (struct hb_verification){.stream = 0};
}
