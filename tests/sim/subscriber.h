/* A subscriber that accepts nothing but the next event, with the content that others were told. */
#ifndef HB_TESTS_SIM_SUBSCRIBER_H
#define HB_TESTS_SIM_SUBSCRIBER_H

#include "tests/sim/truth.h"

enum hb_sim_reader {
  HB_SIM_FAST_READER,
  HB_SIM_SLOW_READER,
  HB_SIM_RECONNECTING_READER,
  HB_SIM_NO_READER /* subscribes and reads nothing */
};

struct hb_sim_subscriber {
  struct hb_sim_truth *truth;
  uint64_t stream;
  enum hb_sim_reader reader;
  struct hb_sim_conn *conn;
  int64_t position;
  struct hb_sim_seen seen;
};

void hb_subscriber_start(struct hb_sim_subscriber *subscriber, struct hb_sim_truth *truth,
                         uint64_t stream, enum hb_sim_reader reader);
/* It has every honest event. */
bool hb_subscriber_is_done(const struct hb_sim_subscriber *subscriber);

#endif
