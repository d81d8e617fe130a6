/* Decides what an event is, from its number alone, and keeps what was told about it. */
#include "tests/sim/truth.h"

#include <inttypes.h>

struct hb_test_event hb_truth_event(const struct hb_sim_truth *truth, uint64_t stream,
                                    int64_t index, uint32_t variant) {
  uint32_t content = (uint32_t)index * HB_SIM_VARIANTS + variant;
  return (struct hb_test_event){.sequence = truth->first[stream - 1] + index,
                                .content = content,
                                .size = 4 + content * 37 % 120,
                                .seconds = content % 3 ? 1 + content : 0};
}

void hb_truth_learn(struct hb_sim_truth *truth, uint64_t stream, int64_t sequence, uint32_t content,
                    const char *how) {
  uint64_t index = (uint64_t)sequence - (uint64_t)truth->first[stream - 1];
  if (index >= HB_SIM_EVENTS) return;
  struct hb_sim_fact *fact = &truth->facts[stream - 1][index];
  if (content / HB_SIM_VARIANTS != index || (fact->known && fact->content != content)) {
    hb_world_fail(truth->world,
                  "stream %" PRIu64 ", sequence %" PRId64 ": %s with content %" PRIu32
                  ", before it was %" PRIu32,
                  stream, sequence, how, content, fact->content);
  }
  *fact = (struct hb_sim_fact){true, content};
}

void hb_truth_see(struct hb_sim_truth *truth, struct hb_sim_seen *seen,
                  const struct hb_sim_message *message) {
  if (message->frontier > message->complete_to ||
      (seen->any &&
       (message->complete_to < seen->complete_to || message->frontier < seen->frontier))) {
    hb_world_fail(truth->world,
                  "stream %" PRIu64 ": frontier %" PRId64 ", complete_to %" PRId64
                  ", before %" PRId64 " and %" PRId64 " (I5)",
                  message->stream, message->frontier, message->complete_to, seen->frontier,
                  seen->complete_to);
  }
  *seen = (struct hb_sim_seen){true, message->complete_to, message->frontier};
}
