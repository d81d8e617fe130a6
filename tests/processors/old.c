/* A processor that was built for an interface of another version. */
#include "processing/holdback/processor.h"

HBP_EXPORT const struct hbp_processor holdback_processor = {
    HBP_ABI + 1, sizeof(struct hbp_processor), "old", "", NULL, NULL, NULL, NULL, NULL};
