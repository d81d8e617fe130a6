/* A check of what is listed of gaps, by plain means; the rig's own. */
#ifndef HB_TESTS_MODEL_PER_KEY_GAPS_H
#define HB_TESTS_MODEL_PER_KEY_GAPS_H

#include "tests/model/per_key_rig.h"

/* `events` by key, then sequence. Checks are cmocka's. */
void hb_rig_check_gaps(struct hb_per_key_rig *rig, const struct hb_rig_event *events, size_t count);

#endif
