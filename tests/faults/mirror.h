/* What is in a real store, read back row by row into the store in memory that the naive model knows
 * how to judge. */
#ifndef HB_TESTS_FAULTS_MIRROR_H
#define HB_TESTS_FAULTS_MIRROR_H

#include "tests/faults/shell.h"
#include "tests/model/fake_store.h"

/* `out` is zeroed, or an earlier mirror: it becomes what the store has now. Failures are cmocka's.
 */
void hb_mirror_load(struct hb_shell *shell, struct hb_fake_store *out);

#endif
