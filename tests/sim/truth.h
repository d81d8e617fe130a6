/* What all clients together know: which events there are, and what somebody was told about each. */
#ifndef HB_TESTS_SIM_TRUTH_H
#define HB_TESTS_SIM_TRUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/sim/server.h"

enum { HB_SIM_EVENTS = 240, HB_SIM_VARIANTS = 4 };

struct hb_sim_fact {
  bool known;
  uint32_t content;
};

struct hb_sim_truth {
  struct hb_world *world;
  struct hb_sim_network *network;
  int64_t first[HB_SIM_STREAMS];
  struct hb_sim_fact facts[HB_SIM_STREAMS][HB_SIM_EVENTS];
  bool calm; /* no more faults; nobody is silent or hostile any more */
  unsigned acked, conflicts, far, delivered, reconnects; /* tally */
};

/* Event `index` of a stream; variant 0 is what honest producers send. */
struct hb_test_event hb_truth_event(const struct hb_sim_truth *truth, uint64_t stream,
                                    int64_t index, uint32_t variant);
/* Somebody was told for good that the stream has this content there: it never has another. Events
 * beyond the honest ones are only checked to be possible. */
void hb_truth_learn(struct hb_sim_truth *truth, uint64_t stream, int64_t sequence, uint32_t content,
                    const char *how);

/* Numbers that a client saw: they never go back, whatever happens to the server (I5). */
struct hb_sim_seen {
  bool any;
  int64_t complete_to;
  int64_t frontier;
};
void hb_truth_see(struct hb_sim_truth *truth, struct hb_sim_seen *seen,
                  const struct hb_sim_message *message);

#endif
