/* A file system that fails when a test says so.
 *
 * This library defines write, fsync, rename and the other calls that change files. Linked into a
 * test, its definitions win over libc's for the whole program, RocksDB included (shared or static).
 * Calls on files below one folder are numbered; one of them can fail, or end the process. What was
 * synced is kept in memory that survives the process, so that its parent can then take away what a
 * power loss may take away.
 *
 * Not seen: what goes through stdio (RocksDB's text log LOG), mmap, and calls by number.
 *
 * A test forks its workers and never opens RocksDB itself: a process with threads can't be forked
 * and go on. Use: start; then for each run: plan, fork, wait, power_loss, look; stop. */
#ifndef HB_TESTS_LIB_FAULTFS_H
#define HB_TESTS_LIB_FAULTFS_H

#include <stdbool.h>
#include <stdint.h>

enum hb_fault {
  HB_FAULT_NONE,
  HB_FAULT_FAIL_ONCE,    /* the call returns an error and does nothing */
  HB_FAULT_FAIL_FROM,    /* so do all from it on */
  HB_FAULT_SHORT_WRITE,  /* a write writes half of it and says so; others are not touched */
  HB_FAULT_CRASH_BEFORE, /* the process ends, exit code HB_FAULT_EXIT */
  HB_FAULT_CRASH_HALF,   /* after half of a write; other calls: before */
  HB_FAULT_CRASH_AFTER
};

enum { HB_FAULT_EXIT = 86 };

struct hb_fault_plan {
  enum hb_fault fault;
  uint64_t at; /* number of the call, from 1 */
  int error;   /* errno of a failing call */
};

/* Watch `root`, a folder that exists. Kept beside it until stop: "root.undo". */
void hb_faultfs_start(const char *root);
/* Everything in the folder counts as durable, nothing fails. */
void hb_faultfs_reset(void);
void hb_faultfs_stop(void);

/* Counting starts anew. Before fork. */
void hb_faultfs_plan(struct hb_fault_plan plan);
/* Calls since then; whether the planned one came; what it was ("fsync db/000004.log"). */
uint64_t hb_faultfs_calls(void);
bool hb_faultfs_hit(void);
const char *hb_faultfs_hit_text(void);

/* When no process works in the folder: what was not synced is lost, in part. Files go back to their
 * last synced size plus a part of what follows it, or keep their size with zeros or garbage in it;
 * creations, renames and removals whose folder was not synced are undone, the last ones first. Then
 * everything counts as durable. */
void hb_faultfs_power_loss(uint64_t seed);

#endif
