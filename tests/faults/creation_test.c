/* The process is killed while a store is being made, at each call of ours; the store is opened
 * again, everything is sent and acknowledged, and only then the power fails. What the killed run
 * had left unsynced must not take away what was built on it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/faults/run.h"
#include "tests/lib/faultfs.h"

enum { CALLS_MAX = 200, LOSSES = 3 };

struct place {
  char root[256];
  char path[300];
};

static int remove_one(const char *path, const struct stat *stat_of, int kind, struct FTW *ftw) {
  (void)stat_of;
  (void)kind;
  (void)ftw;
  return remove(path);
}

static void begin(struct place *place) {
  const char *base = getenv("TEST_TMPDIR");
  snprintf(place->root, sizeof place->root, "%.200s/hb-creation.XXXXXX", base ? base : "/tmp");
  assert_non_null(mkdtemp(place->root));
  snprintf(place->path, sizeof place->path, "%s/data", place->root);
  hb_faultfs_start(place->root);
}

static void end(const struct place *place) {
  hb_faultfs_stop();
  nftw(place->root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

struct killed {
  const struct hb_input *input;
  struct hb_told *told;
  uint64_t at;
  char where[400];
};

static void check(const struct killed *killed, bool good, const char *step) {
  if (good) return;
  fail_msg("call %" PRIu64 " (%s), %s: %s", killed->at, killed->where, step, killed->told->message);
}

static void run_again(const struct killed *killed, const struct place *place, uint64_t seed) {
  struct hb_told *told = killed->told;
  hb_faultfs_plan((struct hb_fault_plan){.fault = HB_FAULT_NONE});
  enum hb_end how = hb_subject_shell.run(killed->input, place->path, told);
  check(killed, how == HB_END_OK && !told->code, "opened again");
  hb_faultfs_power_loss(seed);
  hb_told_power_lost(told);
  hb_faultfs_plan((struct hb_fault_plan){.fault = HB_FAULT_NONE});
  how = hb_subject_shell.look(killed->input, place->path, told);
  check(killed, how == HB_END_OK && !told->code, "after the power loss");
  const char *what = hb_check_found(killed->input, told);
  if (!what) what = hb_check_finished(told);
  check(killed, !what, what);
}

/* What RocksDB does to its own files is for the sweep. */
static bool is_ours(const char *where) { return !strstr(where, "/db"); }

/* False: the store was made before this call. */
static bool kill_at(struct killed *killed, enum hb_fault fault, uint64_t loss) {
  struct place place;
  begin(&place);
  hb_told_clear(killed->told);
  hb_faultfs_plan((struct hb_fault_plan){.fault = fault, .at = killed->at});
  enum hb_end how = hb_subject_shell.run(killed->input, place.path, killed->told);
  snprintf(killed->where, sizeof killed->where, "%s", hb_faultfs_hit_text());
  check(killed, how == HB_END_CRASHED, "no crash");
  bool made = strstr(killed->where, "index-tmp");
  if (is_ours(killed->where)) run_again(killed, &place, killed->at * LOSSES + loss);
  end(&place);
  return !made;
}

/* After each call of ours, and in the middle of each of our writes. */
static void what_a_killed_start_left_is_made_durable(void **state) {
  (void)state;
  struct hb_input input;
  hb_input_init(&input, 11);
  struct killed killed = {.input = &input, .told = hb_told_create()};
  bool making = true;
  unsigned ours = 0;
  while (making) {
    assert_true(++killed.at < CALLS_MAX);
    making = kill_at(&killed, HB_FAULT_CRASH_AFTER, 0);
    if (!is_ours(killed.where)) continue;
    ours++;
    bool writes = strstr(killed.where, "write ") != NULL;
    for (uint64_t loss = 1; loss < LOSSES; loss++) {
      (void)kill_at(&killed, HB_FAULT_CRASH_AFTER, loss);
      if (writes) (void)kill_at(&killed, HB_FAULT_CRASH_HALF, loss);
    }
  }
  print_message("%u calls of ours, of %" PRIu64 "\n", ours, killed.at);
  assert_true(ours > 8);
  hb_told_destroy(killed.told);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(what_a_killed_start_left_is_made_durable)};
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
