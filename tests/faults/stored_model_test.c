/* Core and store together against the naive model, while calls on files fail and processes end:
 *
 *   HB_SEED=n      this run only              HB_SEEDS=n     that many, from 1
 *   HB_STEPS=a,b   with HB_SEED: these steps of it only
 *
 * A run that fails is shrunk: the fewest steps that still fail are printed, with the command that
 * runs them again. Steps are what is sent before the fault, what is sent after it, the fault, the
 * power loss.
 *
 * Each run: random batches (copies, conflicts, gaps) until a fault; what was not synced may be
 * lost; a start; what was acknowledged is there; random batches again; the gaps are filled, and all
 * is out. After every commit the outcomes, the status and now and then each stored row are the
 * model's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/frame/block.h"
#include "tests/faults/input.h"
#include "tests/faults/mirror.h"
#include "tests/lib/faultfs.h"
#include "tests/lib/shrink.h"
#include "tests/model/naive_model.h"

enum { SEEDS = 40, STREAMS = 2, SEQUENCES = 120, STEPS = 40, PER_BATCH = 8, BATCHES_MAX = 400 };
enum { SECONDS_MAX = 60, FIRST_CALL = 60, LAST_CALL = 420 };
/* STEPS before the fault, STEPS after it. */
enum { FAULT_STEP = 2 * STEPS, POWER_STEP, ALL_STEPS, TRIALS_MAX = 120 };

/* What the processes of a run told, in memory that survives them. */
struct told {
  bool durable[STREAMS][SEQUENCES]; /* acknowledged, and an fsync covers it */
  bool acked[STREAMS][SEQUENCES];
  uint32_t content[STREAMS][SEQUENCES];
  bool power_lost;
  unsigned commits, faults, aborts, losses; /* over all runs */
};

struct worker {
  struct told *told;
  const bool *keep; /* of the steps of this process */
  uint64_t seed;
  uint64_t random;
  struct hb_shell shell;
  struct hb_fake_store mirror;
  struct naive_stream models[STREAMS];
  struct hb_test_batch *batches[BATCHES_MAX];
  size_t batches_count;
};

static uint64_t below(struct worker *worker, uint64_t end) {
  return hb_input_random(&worker->random) % end;
}

/* ---- what is sent */

static struct hb_test_event event_of(int64_t sequence, uint32_t variant) {
  uint32_t content = (uint32_t)sequence * 4 + variant;
  return (struct hb_test_event){
      .sequence = sequence, .content = content, .size = 4 + content * 37 % 900};
}

static void submit(struct worker *worker, uint64_t stream, const struct hb_test_event *events,
                   size_t count) {
  if (worker->batches_count == BATCHES_MAX) return;
  struct hb_test_batch *batch = hb_test_batch_create(stream, stream, events, count);
  worker->batches[worker->batches_count++] = batch;
  hb_ordering_submit(worker->shell.core, &batch->batch);
}

static void submit_random(struct worker *worker) {
  struct hb_test_event events[PER_BATCH];
  size_t count = 1 + below(worker, PER_BATCH);
  int64_t from = (int64_t)below(worker, SEQUENCES);
  for (size_t i = 0; i < count; i++) {
    int64_t sequence = below(worker, 3) ? from + (int64_t)i : (int64_t)below(worker, SEQUENCES);
    bool other = below(worker, 100) < 6;
    events[i] = event_of(sequence % SEQUENCES, other ? 1 + (uint32_t)below(worker, 3) : 0);
  }
  submit(worker, 1 + below(worker, STREAMS), events, count);
}

/* ---- after each commit */

static void learn(struct worker *worker, const struct hb_batch *batch) {
  for (uint32_t i = 0; i < batch->count; i++) {
    uint8_t outcome = batch->decisions[i].outcome;
    if (outcome != HB_OUTCOME_STORED && outcome != HB_OUTCOME_DUPLICATE) continue;
    int64_t sequence = batch->events[i].sequence;
    worker->told->acked[batch->stream - 1][sequence] = true;
    worker->told->content[batch->stream - 1][sequence] = hb_test_content(&batch->events[i]);
  }
}

static void judge(struct worker *worker, struct hb_test_batch **answered, size_t count,
                  const int64_t *frontiers) {
  uint64_t now_ms = worker->shell.now.served_ms;
  hb_mirror_load(&worker->shell, &worker->mirror);
  for (uint64_t id = 1; id <= STREAMS; id++) {
    struct hb_test_batch *mine[BATCHES_MAX];
    size_t mine_count = 0;
    for (size_t i = 0; i < count; i++) {
      if (answered[i]->batch.stream == id) mine[mine_count++] = answered[i];
    }
    const struct hb_fake_stream *stored = hb_fake_find(&worker->mirror, id);
    struct naive_stream *model = &worker->models[id - 1];
    struct hb_stream_status status;
    naive_commit(model, mine, mine_count, stored, frontiers[id - 1], false, now_ms);
    assert_true(hb_ordering_status(worker->shell.core, id, worker->shell.now, &status));
    naive_check(model, stored, &status);
    if (below(worker, 4) == 0) naive_check_stored(model, stored);
  }
  worker->told->commits++;
}

static void note_durable(struct worker *worker) {
  if (worker->shell.unsynced) return;
  struct told *told = worker->told;
  for (int k = 0; k < STREAMS; k++) {
    for (int i = 0; i < SEQUENCES; i++) told->durable[k][i] |= told->acked[k][i];
  }
}

/* One step of the shell, judged. False: nothing was to be done, or it failed (*out_code). */
static bool step(struct worker *worker, enum hb_code *out_code) {
  int64_t frontiers[STREAMS];
  for (uint64_t id = 1; id <= STREAMS; id++) {
    frontiers[id - 1] = hb_fake_find(&worker->mirror, id)->record.frontier;
  }
  bool worked = false;
  *out_code = hb_shell_step(&worker->shell, &worked, NULL);
  struct hb_test_batch *answered[BATCHES_MAX];
  size_t count = 0;
  struct hb_batch *batch;
  while ((batch = hb_ordering_take_answered(worker->shell.core))) {
    if (*out_code) { /* I6: nothing is acknowledged after it */
      assert_int_equal(batch->error.code, HB_UNAVAILABLE);
      continue;
    }
    assert_int_equal(batch->error.code, HB_OK);
    answered[count++] = (struct hb_test_batch *)batch;
    learn(worker, batch);
  }
  if (*out_code) return false;
  note_durable(worker);
  if (worked) judge(worker, answered, count, frontiers);
  return worked;
}

/* ---- a process */

static enum hb_code open_it(struct worker *worker, const char *path) {
  struct hb_err err = {0};
  enum hb_code code = hb_shell_open(&worker->shell, path, &err);
  if (code) {
    print_message("open: %s\n", err.message);
    return code;
  }
  hb_mirror_load(&worker->shell, &worker->mirror);
  for (uint64_t id = 1; id <= STREAMS; id++) {
    const struct hb_fake_stream *stored = hb_fake_find(&worker->mirror, id);
    naive_reload(&worker->models[id - 1], stored, worker->shell.now.served_ms);
    naive_check_stored(&worker->models[id - 1], stored);
  }
  return HB_OK;
}

static enum hb_code do_steps(struct worker *worker) {
  enum hb_code code = HB_OK;
  for (int i = 0; i < STEPS && !code; i++) {
    /* What a step does does not depend on the ones before it: they may be left out. */
    worker->random = worker->seed + (uint64_t)i * 1000003;
    if (!worker->keep[i]) continue;
    for (uint64_t n = below(worker, 4); n > 0; n--) submit_random(worker);
    (void)step(worker, &code);
    if (!code && below(worker, 8) == 0) code = hb_shell_sync(&worker->shell, NULL);
    if (!code) note_durable(worker);
  }
  return code;
}

static void close_it(struct worker *worker) {
  while (hb_ordering_take_answered(worker->shell.core)) continue;
  hb_shell_close(&worker->shell);
  for (size_t i = 0; i < worker->batches_count; i++) hb_test_batch_destroy(worker->batches[i]);
  for (int i = 0; i < STREAMS; i++) naive_done(&worker->models[i]);
  hb_fake_store_done(&worker->mirror);
}

static void until_a_fault(struct worker *worker, const char *path) {
  if (open_it(worker, path)) return;
  if (do_steps(worker)) hb_ordering_fail(worker->shell.core);
  while (hb_ordering_take_answered(worker->shell.core)) continue;
  hb_ordering_fail(worker->shell.core);
  close_it(worker);
}

/* Acknowledged: there, with the content that was acknowledged (I1). */
static void check_acknowledged(const struct worker *worker) {
  const struct told *told = worker->told;
  for (uint64_t id = 1; id <= STREAMS; id++) {
    const struct hb_fake_stream *stored = hb_fake_find((struct hb_fake_store *)&worker->mirror, id);
    bool only_durable = id == 2 && told->power_lost;
    for (int i = 0; i < SEQUENCES; i++) {
      uint32_t content = 0;
      if (!(only_durable ? told->durable[id - 1][i] : told->acked[id - 1][i])) continue;
      bool there = hb_fake_content(stored, i, &content);
      if (there && content == told->content[id - 1][i]) continue;
      fail_msg("stream %" PRIu64 ", sequence %d: acknowledged, and it is %s (I1)", id, i,
               there ? "there with other content" : "gone");
    }
  }
}

static void fill_all(struct worker *worker) {
  enum hb_code code = HB_OK;
  for (int64_t from = 0; from < SEQUENCES; from += PER_BATCH) {
    struct hb_test_event events[PER_BATCH];
    for (int64_t i = 0; i < PER_BATCH; i++) events[i] = event_of(from + i, 0);
    submit(worker, 1, events, PER_BATCH);
    submit(worker, 2, events, PER_BATCH);
  }
  while (step(worker, &code)) continue;
  assert_int_equal(code, HB_OK);
  for (uint64_t id = 1; id <= STREAMS; id++) {
    const struct hb_fake_stream *stored = hb_fake_find(&worker->mirror, id);
    assert_int_equal(stored->record.frontier, SEQUENCES);
    assert_int_equal(stored->bundles_count, 0);
    naive_check_stored(&worker->models[id - 1], stored);
  }
}

static void after_it(struct worker *worker, const char *path) {
  assert_int_equal(open_it(worker, path), HB_OK);
  check_acknowledged(worker);
  memset(worker->told->acked, 0, sizeof worker->told->acked); /* ASYNC: some may be gone */
  assert_int_equal(do_steps(worker), HB_OK);
  fill_all(worker);
  close_it(worker);
}

/* ---- runs */

typedef void process(struct worker *worker, const char *path);

/* The wait status. A failed assertion goes back to main in the child and ends it with 1. */
static int in_child(process *what, struct told *told, uint64_t seed, const bool *keep,
                    const char *path) {
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    static struct worker worker;
    alarm(SECONDS_MAX);
    worker.told = told;
    worker.keep = keep;
    worker.seed = worker.random = seed;
    what(&worker, path);
    _exit(0);
  }
  int status = 0;
  assert_true(child > 0 && waitpid(child, &status, 0) == child);
  return status;
}

static struct hb_fault_plan plan_of(uint64_t *random) {
  static const enum hb_fault FAULTS[] = {HB_FAULT_FAIL_ONCE,   HB_FAULT_FAIL_FROM,
                                         HB_FAULT_SHORT_WRITE, HB_FAULT_CRASH_BEFORE,
                                         HB_FAULT_CRASH_HALF,  HB_FAULT_CRASH_AFTER};
  static const int ERRORS[] = {EIO, ENOSPC};
  struct hb_fault_plan plan = {.fault = FAULTS[hb_input_random(random) % 6]};
  plan.error = ERRORS[hb_input_random(random) % 2];
  plan.at = FIRST_CALL + hb_input_random(random) % (LAST_CALL - FIRST_CALL);
  return plan;
}

static int remove_one(const char *path, const struct stat *stat_of, int kind, struct FTW *ftw) {
  (void)stat_of;
  (void)kind;
  (void)ftw;
  return remove(path);
}

/* An assertion of RocksDB's may end a process whose call failed (FAULTS.md). */
static void check_first(struct told *told, int status, struct hb_fault_plan plan) {
  bool crashed = WIFEXITED(status) && WEXITSTATUS(status) == HB_FAULT_EXIT;
  bool aborted = WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && hb_faultfs_hit();
  bool ended = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  told->faults += hb_faultfs_hit();
  told->aborts += aborted;
  if (ended || crashed || aborted) return;
  fail_msg("fault %d, errno %d, call %" PRIu64 " (%s): status %#x", plan.fault, plan.error, plan.at,
           hb_faultfs_hit_text(), (unsigned)status);
}

static void run_seed(uint64_t seed, struct told *told, const bool *keep) {
  char root[256];
  char path[300];
  const char *base = getenv("TEST_TMPDIR");
  uint64_t random = seed * 1000003;
  snprintf(root, sizeof root, "%.200s/hb-model.XXXXXX", base ? base : "/tmp");
  assert_non_null(mkdtemp(root));
  snprintf(path, sizeof path, "%s/data", root);
  hb_faultfs_start(root);
  struct hb_fault_plan plan = plan_of(&random);
  if (!keep[FAULT_STEP]) plan.fault = HB_FAULT_NONE;
  hb_faultfs_plan(plan);
  check_first(told, in_child(until_a_fault, told, hb_input_random(&random), keep, path), plan);
  told->power_lost = hb_input_random(&random) % 3 > 0 && keep[POWER_STEP];
  told->losses += told->power_lost;
  if (told->power_lost) hb_faultfs_power_loss(hb_input_random(&random));
  hb_faultfs_plan((struct hb_fault_plan){.fault = HB_FAULT_NONE});
  assert_int_equal(in_child(after_it, told, hb_input_random(&random), keep + STEPS, path), 0);
  hb_faultfs_stop();
  nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static uint64_t number_from(const char *name, uint64_t otherwise) {
  const char *text = getenv(name);
  return text ? strtoull(text, NULL, 10) : otherwise;
}

struct run {
  uint64_t seed;
  struct told *told; /* shared with children */
};

static int run_steps(void *context, const bool *keep, size_t count) {
  struct run *run = context;
  assert_int_equal(count, ALL_STEPS);
  memset(run->told->acked, 0, sizeof run->told->acked);
  memset(run->told->durable, 0, sizeof run->told->durable);
  run_seed(run->seed, run->told, keep);
  return 0;
}

static void shrink(struct run *run, bool *keep) {
  size_t kept = hbt_shrink(run_steps, run, keep, ALL_STEPS, TRIALS_MAX);
  printf("seed %" PRIu64 " fails with %zu of %d steps\n", run->seed, kept, ALL_STEPS);
  printf("again: HB_SEED=%" PRIu64 " HB_STEPS=%s ./bazelw run //tests/faults:stored_model_test\n",
         run->seed, hbt_steps_text(keep, ALL_STEPS));
}

/* Whatever fails, and whatever a power loss takes: core and store do what the model says. */
static void core_and_store_agree_with_the_model(void **state) {
  (void)state;
  static bool keep[ALL_STEPS];
  const char *steps = getenv("HB_STEPS");
  uint64_t one = number_from("HB_SEED", 0);
  uint64_t last = one ? one : number_from("HB_SEEDS", SEEDS);
  struct told *told =
      mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_true(told != MAP_FAILED);
  struct run run = {.told = told};
  for (run.seed = one ? one : 1; run.seed <= last; run.seed++) {
    printf("again: HB_SEED=%" PRIu64 " ./bazelw run //tests/faults:stored_model_test\n", run.seed);
    memset(keep, true, sizeof keep);
    if (steps) assert_true(hbt_steps_parse(steps, keep, ALL_STEPS));
    bool failed = hbt_trial_fails(run_steps, &run, keep, ALL_STEPS, false);
    if (failed && !steps) shrink(&run, keep);
    assert_false(failed);
  }
  printf("%u commits judged, %u faults, %u aborts of RocksDB, %u power losses\n", told->commits,
         told->faults, told->aborts, told->losses);
  if (!one && last >= SEEDS) {
    assert_true(told->commits > 1000 && told->faults > SEEDS / 2 && told->losses > 10);
  }
  munmap(told, sizeof *told);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(core_and_store_agree_with_the_model)};
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
