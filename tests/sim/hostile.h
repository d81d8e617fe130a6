/* Clients that do what no client should: other contents for sequences of others, sequences far
 * ahead and at the ends of the numbers, history again and again, answers that are never read. */
#ifndef HB_TESTS_SIM_HOSTILE_H
#define HB_TESTS_SIM_HOSTILE_H

#include "tests/sim/truth.h"

enum hb_sim_malice { HB_SIM_OTHER_CONTENT, HB_SIM_FAR_AHEAD, HB_SIM_NEVER_READS };

struct hb_sim_hostile {
  struct hb_sim_truth *truth;
  uint64_t stream;
  enum hb_sim_malice malice;
  struct hb_sim_conn *conn;
  uint64_t on_the_way; /* sent and not answered; HTTP/2 lets it send no more */
};

void hb_hostile_start(struct hb_sim_hostile *hostile, struct hb_sim_truth *truth, uint64_t stream,
                      enum hb_sim_malice malice);

#endif
