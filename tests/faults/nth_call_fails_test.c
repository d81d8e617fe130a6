/* The Nth call fails: once, or from then on; with EIO, ENOSPC or EINTR, or by writing half. N goes
 * through the calls of a run in steps, another offset each time: HB_FAULTS_STEP=1 takes each. The
 * argument `engine`: the calls of the whole engine, of which a run makes three times as many. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/faults/run.h"
#include "tests/lib/faultfs.h"

enum { DEFAULT_STEP = 24, ENGINE_STEP = 150 };

static const struct hb_subject *subject = &hb_subject_shell;

struct fixture {
  struct hb_input input;
  struct hb_told *told;
  char root[256];
  char path[300];
  bool begun;
  uint64_t failed;  /* runs that ended with an error */
  uint64_t aborted; /* runs that RocksDB ended by itself */
  uint64_t refused; /* see refused_for_lost_log */
};

static int remove_one(const char *path, const struct stat *stat_of, int kind, struct FTW *ftw) {
  (void)stat_of;
  (void)kind;
  (void)ftw;
  return remove(path);
}

static int setup(void **state) {
  struct fixture *fixture = calloc(1, sizeof *fixture);
  if (!fixture) return -1;
  hb_input_init(&fixture->input, 7);
  fixture->told = hb_told_create();
  *state = fixture;
  return 0;
}

static void end(struct fixture *fixture) {
  hb_faultfs_stop();
  nftw(fixture->root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
  fixture->begun = false;
}

static int teardown(void **state) {
  struct fixture *fixture = *state;
  if (fixture->begun) end(fixture);
  hb_told_destroy(fixture->told);
  free(fixture);
  return 0;
}

static void begin(struct fixture *fixture, struct hb_fault_plan plan) {
  const char *base = getenv("TEST_TMPDIR");
  snprintf(fixture->root, sizeof fixture->root, "%.200s/hb-nth.XXXXXX", base ? base : "/tmp");
  assert_non_null(mkdtemp(fixture->root));
  snprintf(fixture->path, sizeof fixture->path, "%s/data", fixture->root);
  hb_told_clear(fixture->told);
  hb_faultfs_start(fixture->root);
  fixture->begun = true;
  hb_faultfs_plan(plan);
}

static void print_where(struct hb_fault_plan plan) {
  print_message("fault %d, errno %d, call %" PRIu64 ": %s\n", plan.fault, plan.error, plan.at,
                hb_faultfs_hit_text());
}

/* What a failed run may say: a mapped code, and that it is over. */
static void check_failure(const struct fixture *fixture, struct hb_fault_plan plan) {
  enum hb_code code = fixture->told->code;
  bool expected = code == HB_IO || code == HB_NO_SPACE || code == HB_PERMISSION;
  if (!expected || fixture->told->wrote_after_failure) {
    print_where(plan);
    fail_msg("code %s, %s: %s", hb_code_text(code),
             fixture->told->wrote_after_failure ? "written after a failure (I6)" : "",
             fixture->told->message);
  }
  if (plan.error == ENOSPC && plan.fault == HB_FAULT_FAIL_FROM && code == HB_PERMISSION) {
    print_where(plan);
    fail_msg("a full disk is told as a missing permission");
  }
}

/* A log that was full before all of it was synced (ASYNC) is synced by the next commit and by a
 * flush. Where the commit's sync fails and that of the flush, of the same file, does not, the power
 * loss takes what RocksDB believes to be on the disk. Then the store is refused and says so
 * (docs/FAULTS.md). Only then: the file must be the one whose sync failed. */
static bool refused_for_lost_log(struct fixture *fixture, enum hb_end how, const char *where) {
  static const char sync[] = "fdatasync /data/";
  if (how != HB_END_OK || fixture->told->code != HB_CORRUPT) return false;
  if (strncmp(where, sync, sizeof sync - 1) != 0 || !strstr(where, ".log")) return false;
  if (!strstr(fixture->told->message, where + sizeof sync - 1)) return false;
  print_message("%s failed and the power went: %s\n", where, fixture->told->message);
  fixture->refused++;
  return true;
}

/* False: the run made fewer calls than that. */
static bool fail_at(struct fixture *fixture, struct hb_fault_plan plan) {
  begin(fixture, plan);
  enum hb_end how = subject->run(&fixture->input, fixture->path, fixture->told);
  bool hit = hb_faultfs_hit();
  /* Debian's RocksDB is built with its assertions, and some of them take an error for a mistake of
   * its own. The process ends then too, and nothing is acknowledged any more. */
  if (how == HB_END_ABORTED) {
    fixture->aborted++;
    print_where(plan);
  } else if (how != HB_END_OK) {
    print_where(plan);
    fail_msg("the run: %s", fixture->told->message);
  }
  if (fixture->told->code) {
    fixture->failed++;
    check_failure(fixture, plan);
  }
  char where[400];
  snprintf(where, sizeof where, "%s", hb_faultfs_hit_text());
  /* Whatever was not synced is lost: an ack for something that no sync covers would show. */
  hb_faultfs_power_loss(plan.at);
  hb_told_power_lost(fixture->told);
  how = subject->look(&fixture->input, fixture->path, fixture->told);
  if (refused_for_lost_log(fixture, how, where)) {
    end(fixture);
    return hit;
  }
  bool opened = how == HB_END_OK && !fixture->told->code;
  const char *what = opened ? hb_check_found(&fixture->input, fixture->told) : "it does not open";
  if (what) {
    print_message("failed: %s\n", where);
    print_where(plan);
    fail_msg("afterwards: %s: %s", what, fixture->told->message);
  }
  end(fixture);
  return hit;
}

static uint64_t step(void) {
  const char *text = getenv("HB_FAULTS_STEP");
  uint64_t value = text ? strtoull(text, NULL, 10) : 0;
  if (value) return value;
  return subject == &hb_subject_engine ? ENGINE_STEP : DEFAULT_STEP;
}

static void fail_each(struct fixture *fixture, enum hb_fault fault, int error, uint64_t offset) {
  uint64_t stride = step();
  uint64_t at = 1 + offset % stride;
  uint64_t runs = 0;
  while (fail_at(fixture, (struct hb_fault_plan){.fault = fault, .at = at, .error = error})) {
    at += stride;
    runs++;
  }
  print_message("%" PRIu64 " calls failed; %" PRIu64 " runs ended by it, %" PRIu64
                " by an abort of RocksDB; %" PRIu64 " stores refused\n",
                runs, fixture->failed, fixture->aborted, fixture->refused);
  assert_true(fixture->refused <= 1 + runs / 100);
  assert_true(runs >= 200 / stride);
}

/* Input/output errors, once: whatever was not written or synced is not acknowledged. */
static void one_io_error(void **state) {
  struct fixture *fixture = *state;
  fail_each(fixture, HB_FAULT_FAIL_ONCE, EIO, 0);
  assert_true(fixture->failed > 0);
}

static void io_errors_from_then_on(void **state) {
  struct fixture *fixture = *state;
  fail_each(fixture, HB_FAULT_FAIL_FROM, EIO, 5);
  assert_true(fixture->failed > 0);
}

static void one_full_disk(void **state) {
  struct fixture *fixture = *state;
  fail_each(fixture, HB_FAULT_FAIL_ONCE, ENOSPC, 10);
  assert_true(fixture->failed > 0);
}

static void a_full_disk_from_then_on(void **state) {
  struct fixture *fixture = *state;
  fail_each(fixture, HB_FAULT_FAIL_FROM, ENOSPC, 15);
  assert_true(fixture->failed > 0);
}

/* An interrupted write is done again; an interrupted sync may be told as a failure. */
static void an_interrupted_call(void **state) { fail_each(*state, HB_FAULT_FAIL_ONCE, EINTR, 20); }

/* Half a write is no error: the rest is written. */
static void a_short_write(void **state) {
  struct fixture *fixture = *state;
  for (uint64_t at = 1; at < 400; at += step()) {
    (void)fail_at(fixture, (struct hb_fault_plan){.fault = HB_FAULT_SHORT_WRITE, .at = at});
  }
  assert_int_equal(fixture->failed, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv) {
  if (argc > 1 && strcmp(argv[1], "engine") == 0) subject = &hb_subject_engine;
  const struct CMUnitTest tests[] = {
      TEST(one_io_error),        TEST(io_errors_from_then_on),
      TEST(one_full_disk),       TEST(a_full_disk_from_then_on),
      TEST(an_interrupted_call), TEST(a_short_write),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
