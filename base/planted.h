/* Bugs that are there on purpose, to see that the tests find them.
 *
 * They exist only in a build with --//bazel:planted_bugs=on; in any other one HB_PLANTED is the
 * constant 0 and what it guards is never reached. In such a build the environment's HB_PLANTED_BUG
 * names the one that is active; without it there is none. */
#ifndef HB_BASE_PLANTED_H
#define HB_BASE_PLANTED_H

#ifdef HB_PLANTED_BUGS

#include <stdbool.h>

/* name here, name in HB_PLANTED_BUG */
#define HB_PLANTED_TABLE(X)                                                               \
  X(ACK_BEFORE_SYNC, "ack_before_sync")                /* a synced write is not synced */ \
  X(FRONTIER_AHEAD, "frontier_ahead_of_data")          /* the record, of the log */       \
  X(DIRECTORY_SYNC, "skipped_directory_sync")          /* a new name is not synced */     \
  X(GAP_EDGE, "off_by_one_at_gap_edge")                /* a gap of one is none */         \
  X(FAILED_WRITE, "presence_from_failed_write")        /* later batches believe it */     \
  X(EARLY_DUPLICATE, "duplicate_before_first_durable") /* answered before the write */    \
  X(ANSWER_IN_FLIGHT, "answer_in_flight")              /* answered beside the write */

#define HB_PLANTED_ENUM(name, text) HB_PLANTED_##name,
enum hb_planted_bug { HB_PLANTED_TABLE(HB_PLANTED_ENUM) HB_PLANTED_COUNT };
#undef HB_PLANTED_ENUM

/* Any thread. A name in HB_PLANTED_BUG that is none of the table ends the process. */
bool hb_planted(enum hb_planted_bug bug);

#define HB_PLANTED(bug) hb_planted(HB_PLANTED_##bug)

#else

#define HB_PLANTED(bug) 0

#endif

#endif
