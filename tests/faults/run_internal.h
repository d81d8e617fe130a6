/* What runs and looks of either kind share: the child they are in, and how they say what is wrong.
 */
#ifndef HB_TESTS_FAULTS_RUN_INTERNAL_H
#define HB_TESTS_FAULTS_RUN_INTERNAL_H

#include <stdint.h>

#include "base/err.h"
#include "storage/store.h"
#include "tests/faults/run.h"

typedef void hb_in_child(const struct hb_input *input, const char *path, struct hb_told *told);

enum hb_end hb_run_in_child(hb_in_child *what, const struct hb_input *input, const char *path,
                            struct hb_told *told);
/* Ends the child. */
_Noreturn void hb_run_wrong(struct hb_told *told, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void hb_run_stopped(struct hb_told *told, enum hb_code code, const struct hb_err *err);

/* Reads all events of the streams `ids` (0: it is not there) into told->found, each from where its
 * record says it must be. */
HB_MUST_CHECK enum hb_code hb_look_at_store(const struct hb_input *input, struct hb_told *told,
                                            struct hb_store *store,
                                            const uint64_t ids[HB_INPUT_STREAMS],
                                            struct hb_err *err);
/* Its part for the PER_KEY stream, whose frontier is in told->found. */
HB_MUST_CHECK enum hb_code hb_look_at_keyed(const struct hb_input *input, struct hb_told *told,
                                            struct hb_store *store, uint64_t id,
                                            struct hb_err *err);
/* Verification of the whole store: no finding, or it is wrong. */
void hb_look_verify(struct hb_told *told, struct hb_store *store);

#endif
