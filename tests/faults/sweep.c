/* Decides what is done at each point, by its number and the seed alone:
 *
 *   run until the crash
 *   half of the time also the power fails; or, an eighth of the time, all is sent again,
 *     acknowledged and delivered, and the power fails only then: the end
 *   recover, in a third of the cases until a second crash (the power may fail only then: what was
 *     written before the first one is still unsynced if nobody synced it)
 *   look
 *   in a quarter of the cases: send everything again, sometimes the power fails, look: all of it
 *     came out */
#include "tests/faults/sweep.h"

#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/faults/run.h"
#include "tests/lib/faultfs.h"

struct point {
  struct hb_sweep *sweep;
  uint64_t number;
  uint64_t random;
  const struct hb_input *input;
  struct hb_told *told;
  char root[256];
  char path[300];
  bool power_lost;
  struct hb_fault_plan plan;
  char crashed_at[500]; /* each crash */
};

static int remove_one(const char *path, const struct stat *stat_of, int kind, struct FTW *ftw) {
  (void)stat_of;
  (void)kind;
  (void)ftw;
  return remove(path);
}

static void begin(struct point *point) {
  const char *base = getenv("TEST_TMPDIR");
  snprintf(point->root, sizeof point->root, "%.200s/hb-sweep.XXXXXX", base ? base : "/tmp");
  if (!mkdtemp(point->root)) abort();
  snprintf(point->path, sizeof point->path, "%s/data", point->root);
  hb_faultfs_start(point->root);
  hb_told_clear(point->told);
}

static void end(struct point *point) {
  hb_faultfs_stop();
  nftw(point->root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static bool fail(const struct point *point, const char *step, const char *what) {
  printf("seed %" PRIu64 ", point %" PRIu64
         ", %s: %s%s%s (crashed at:%s)\n"
         "again: ./bazelw run //tests/faults:crash_sweep -- --subject=%s --seed=%" PRIu64
         " --point=%" PRIu64 " --calls=%" PRIu64 "\n",
         point->sweep->seed, point->number, step, what, point->told->message[0] ? ": " : "",
         point->told->message, point->crashed_at, point->sweep->subject->name, point->sweep->seed,
         point->number, point->sweep->calls);
  if (point->sweep->keep) printf("kept: %s.kept\n", point->root);
  return false;
}

static const char *const END_TEXT[] = {[HB_END_OK] = "it ended",
                                       [HB_END_CRASHED] = "it crashed",
                                       [HB_END_ABORTED] = "it aborted",
                                       [HB_END_WRONG] = "wrong",
                                       [HB_END_STUCK] = "it is stuck or died"};

static void lose_power(struct point *point) {
  hb_faultfs_power_loss(hb_input_random(&point->random));
  point->power_lost = true;
  hb_told_power_lost(point->told);
  point->sweep->power_losses++;
}

static void plan_crash(struct point *point, uint64_t calls) {
  uint64_t how = hb_input_random(&point->random) % 3;
  point->plan = (struct hb_fault_plan){.fault = how == 0   ? HB_FAULT_CRASH_BEFORE
                                                : how == 1 ? HB_FAULT_CRASH_HALF
                                                           : HB_FAULT_CRASH_AFTER,
                                       .at = 1 + hb_input_random(&point->random) % calls};
  hb_faultfs_plan(point->plan);
}

static void plan_nothing(void) { hb_faultfs_plan((struct hb_fault_plan){.fault = HB_FAULT_NONE}); }

/* Not a copy that the model of the file system sees. */
static void keep_copy(const struct point *point) {
  char command[1000];
  snprintf(command, sizeof command, "rm -rf '%s.kept' && cp -a '%s' '%s.kept'", point->root,
           point->path, point->root);
  if (system(command)) printf("no copy is kept\n");
}

static void drop_copy(const struct point *point) {
  char kept[300];
  snprintf(kept, sizeof kept, "%s.kept", point->root);
  nftw(kept, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static bool look(struct point *point, const char *step) {
  plan_nothing();
  if (point->sweep->keep) keep_copy(point);
  enum hb_end how = point->sweep->subject->look(point->input, point->path, point->told);
  if (how != HB_END_OK) return fail(point, step, END_TEXT[how]);
  if (point->told->code) return fail(point, step, "opening or reading failed");
  const char *what = hb_check_found(point->input, point->told);
  return what ? fail(point, step, what) : true;
}

/* Runs the input; a crash may be planned. */
static bool run(struct point *point, const char *step, bool *out_crashed) {
  enum hb_end how = point->sweep->subject->run(point->input, point->path, point->told);
  *out_crashed = how == HB_END_CRASHED;
  if (*out_crashed) {
    static const char *const WHERE[] = {[HB_FAULT_CRASH_BEFORE] = "before",
                                        [HB_FAULT_CRASH_HALF] = "in",
                                        [HB_FAULT_CRASH_AFTER] = "after"};
    size_t used = strlen(point->crashed_at);
    snprintf(point->crashed_at + used, sizeof point->crashed_at - used, " %s call %" PRIu64 " %s",
             WHERE[point->plan.fault], point->plan.at, hb_faultfs_hit_text());
  }
  if (how != HB_END_OK && how != HB_END_CRASHED) return fail(point, step, END_TEXT[how]);
  if (how == HB_END_OK && point->told->code) return fail(point, step, "it failed without a fault");
  return true;
}

static bool first_crash(struct point *point) {
  bool crashed = false;
  plan_crash(point, point->sweep->calls);
  if (!run(point, "first run", &crashed)) return false;
  point->sweep->crashes += crashed;
  if (hb_input_random(&point->random) % 2) lose_power(point);
  return true;
}

/* Recovery makes fewer calls than a run: most of them are met by small numbers. */
static bool second_crash(struct point *point) {
  if (hb_input_random(&point->random) % 3) return true;
  bool crashed = false;
  plan_crash(point, hb_input_random(&point->random) % 2 ? 150 : point->sweep->calls);
  if (!run(point, "second run", &crashed)) return false;
  point->sweep->crashes += crashed;
  point->sweep->second += crashed;
  if (hb_input_random(&point->random) % 2) lose_power(point);
  return true;
}

/* What a killed process had written unsynced is sent again, acknowledged and delivered by the next
 * one; only then the power fails, for everything that nobody synced since before the kill. */
static bool deliver_then_lose(struct point *point) {
  bool crashed = false;
  plan_nothing();
  if (!run(point, "sent again at once", &crashed)) return false;
  lose_power(point);
  if (!look(point, "power lost after delivery")) return false;
  const char *what = hb_check_finished(point->told);
  return what ? fail(point, "power lost after delivery", what) : true;
}

static bool steps(struct point *point) {
  bool crashed = false;
  if (!first_crash(point)) return false;
  if (!point->power_lost && hb_input_random(&point->random) % 4 == 0) {
    return deliver_then_lose(point);
  }
  if (!second_crash(point)) return false;
  if (!look(point, "after the crash")) return false;
  if (hb_input_random(&point->random) % 4) return true; /* the rest takes as long as all before */
  plan_nothing();
  if (!run(point, "sent again", &crashed)) return false;
  if (hb_input_random(&point->random) % 2) lose_power(point);
  if (!look(point, "after all was sent again")) return false;
  const char *what = hb_check_finished(point->told);
  return what ? fail(point, "in the end", what) : true;
}

static bool run_point(struct hb_sweep *sweep, uint64_t number, const struct hb_input *input,
                      struct hb_told *told) {
  struct point point = {.sweep = sweep,
                        .number = number,
                        .random = sweep->seed * 1000003 + number,
                        .input = input,
                        .told = told};
  begin(&point);
  bool good = steps(&point);
  if (sweep->verbose) {
    printf("point %" PRIu64 ": %s (%s)\n", number, good ? "good" : "FAILED", point.crashed_at);
    fflush(stdout);
  }
  if (good && sweep->keep) drop_copy(&point);
  end(&point);
  return good;
}

/* A run without a fault: how many calls there are to crash at. */
static bool count_calls(struct hb_sweep *sweep, const struct hb_input *input,
                        struct hb_told *told) {
  struct point point = {.sweep = sweep, .input = input, .told = told};
  bool crashed = false;
  begin(&point);
  plan_nothing();
  bool good = run(&point, "without a fault", &crashed);
  sweep->calls = hb_faultfs_calls();
  if (good) good = look(&point, "without a fault");
  const char *what = good ? hb_check_finished(told) : NULL;
  if (what) good = fail(&point, "without a fault", what);
  end(&point);
  return good;
}

static bool sweep_points(struct hb_sweep *sweep, uint64_t from, uint64_t to) {
  struct hb_input input;
  hb_input_init(&input, sweep->seed);
  struct hb_told *told = hb_told_create();
  bool good = sweep->calls || count_calls(sweep, &input, told);
  for (uint64_t point = from; good && point < to; point++) {
    good = run_point(sweep, point, &input, told);
  }
  hb_told_destroy(told);
  return good;
}

bool hb_sweep_crashes(struct hb_sweep *sweep) { return sweep_points(sweep, 0, sweep->points); }

bool hb_sweep_one(struct hb_sweep *sweep, uint64_t point) {
  return sweep_points(sweep, point, point + 1);
}
