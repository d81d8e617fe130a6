/* The smallest shell around core and store: what server/engine does with threads, here step by
 * step, so that each run of one input makes the same calls on files. */
#ifndef HB_TESTS_FAULTS_SHELL_H
#define HB_TESTS_FAULTS_SHELL_H

#include "base/err.h"
#include "ordering/ordering.h"
#include "storage/read.h"
#include "storage/store.h"
#include "storage/write.h"

struct hb_shell {
  struct hb_store *store;
  struct hb_write *write;
  struct hb_ordering *core;
  struct hb_now now;
  bool unsynced; /* something was written that is not known to be durable */
};

/* Opens the store, makes the streams 1 (durable acks), 2 (ASYNC) and 3 (PER_KEY) where they are not
 * there, and recovers the core, with the checks that every start makes. */
HB_MUST_CHECK enum hb_code hb_shell_open(struct hb_shell *shell, const char *path,
                                         struct hb_err *err);
/* Batches that were not answered come out of the core by take_answered before. */
void hb_shell_close(struct hb_shell *shell);
/* One round: needs and fetches are read, a commit is decided and written. *out_worked false: there
 * is nothing to do. After an error nothing may be done but closing. */
HB_MUST_CHECK enum hb_code hb_shell_step(struct hb_shell *shell, bool *out_worked,
                                         struct hb_err *err);
HB_MUST_CHECK enum hb_code hb_shell_sync(struct hb_shell *shell, struct hb_err *err);

#endif
