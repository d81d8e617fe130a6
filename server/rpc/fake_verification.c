/* Verifications of the fake engine: as many steps and findings as a test says. One engine at a
 * time, as in every test. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "server/engine/verify.h"
#include "server/rpc/fake_engine.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct {
  size_t steps;
  size_t findings;
  bool busy;
  bool hold;
  struct hb_verification *held;
} fake; /* protected by mutex */

void fake_engine_set_verification(struct hb_engine *engine, size_t steps, size_t findings) {
  (void)engine;
  pthread_mutex_lock(&mutex);
  fake.steps = steps;
  fake.findings = findings;
  pthread_mutex_unlock(&mutex);
}

enum hb_code hb_engine_verify_begin(struct hb_engine *engine, struct hb_verification *verification,
                                    const struct hb_stream *stream, struct hb_err *err) {
  (void)engine;
  pthread_mutex_lock(&mutex);
  bool busy = fake.busy;
  fake.busy = true;
  pthread_mutex_unlock(&mutex);
  if (busy) return hb_err_set(err, HB_LIMIT, "VERIFICATION_RUNS", "one at a time");
  verification->begun = true;
  verification->counts.streams = stream ? 1 : 0;
  return HB_OK;
}

static void make_finding(struct hb_verification *verification, size_t index) {
  hb_reserve((void **)&verification->findings, &verification->findings_cap, index + 1,
             sizeof *verification->findings);
  struct hb_finding *finding = &verification->findings[index];
  *finding = (struct hb_finding){.stream = 7, .name = "some", .family = "log"};
  finding->has_range = index > 0;
  finding->range = (struct hb_range){INT64_MIN, (int64_t)index};
  (void)snprintf(finding->text, sizeof finding->text, "finding %zu", index);
  verification->findings_count = index + 1;
}

void hb_engine_verify_step(struct hb_engine *engine, struct hb_verification *verification) {
  (void)engine;
  pthread_mutex_lock(&mutex);
  verification->findings_count = 0;
  verification->error = (struct hb_err){.code = HB_OK};
  for (size_t i = 0; i < fake.findings; i++) make_finding(verification, i);
  verification->counts.findings += fake.findings;
  verification->counts.blocks++;
  verification->finished = verification->counts.blocks >= fake.steps;
  bool hold = fake.hold;
  if (hold) fake.held = verification;
  pthread_mutex_unlock(&mutex);
  if (!hold) verification->done(verification);
}

void fake_engine_hold_verification(struct hb_engine *engine, bool hold) {
  (void)engine;
  pthread_mutex_lock(&mutex);
  fake.hold = hold;
  struct hb_verification *held = hold ? NULL : fake.held;
  fake.held = NULL;
  pthread_mutex_unlock(&mutex);
  if (held) held->done(held);
}

void hb_engine_verify_end(struct hb_engine *engine, struct hb_verification *verification) {
  (void)engine;
  if (!verification->begun) return;
  pthread_mutex_lock(&mutex);
  fake.busy = false;
  pthread_mutex_unlock(&mutex);
  free(verification->findings);
  *verification = (struct hb_verification){.stream = 0};
}
