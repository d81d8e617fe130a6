/* A processor that waits at a gate before each result, and, where a test wants that, in its create;
 * and a look at any processor. One gate for a process: one test at a time. */
#ifndef HB_SERVER_ENGINE_TESTING_GATE_H
#define HB_SERVER_ENGINE_TESTING_GATE_H

#include <stdbool.h>

#include "server/engine/processors.h"
#include "server/engine/testing.h"

/* For tuning.find_processor: "gate". It emits each payload and keeps the last one of a key. */
const struct hbp_processor *gate_find(const char *name);
void gate_set(bool open);
/* `create` waits, too. */
void gate_set_creates(bool wait);
/* Until the processor waits there. */
void gate_wait(void);

/* Without parameters, which stay nobody's. */
struct hb_processor_info rig_processor_info(struct rig *rig, struct hb_stream *stream,
                                            const char *name);

#endif
