/* A processor for tests of what must come out the same whatever happens: 0 to 4 results per event,
 * a state by key, timers that emit and set timers, failures; each 500th event has more results than
 * a few small bundles hold. */
#ifndef HB_SERVER_ENGINE_TESTING_BURST_H
#define HB_SERVER_ENGINE_TESTING_BURST_H

#include "base/slice.h"
#include "processing/holdback/processor.h"
#include "server/engine/testing.h"

/* For hb_tuning.find_processor: "burst". */
const struct hbp_processor *burst_find(const char *name);

/* Appends the frames of all results of the processor; they must be there without a hole. */
void burst_read_all(struct rig *rig, struct hb_stream *stream, const char *name,
                    struct hb_buf *out);

#endif
