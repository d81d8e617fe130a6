/* A producer with its part of the events: it sends each until it is sure that it is there. */
#ifndef HB_TESTS_SIM_PRODUCER_H
#define HB_TESTS_SIM_PRODUCER_H

#include "tests/sim/truth.h"

enum hb_sim_manner {
  HB_SIM_STEADY,
  HB_SIM_SLOW,
  HB_SIM_RECONNECTING,
  HB_SIM_SILENT /* says nothing for long stretches, with its connection open */
};

enum { HB_SIM_WINDOW = 4, HB_SIM_PER_BATCH = 8 };

enum hb_sim_state {
  HB_SIM_TO_SEND,
  HB_SIM_SENT,
  HB_SIM_REFUSED, /* WINDOW_FULL: again when complete_to moved, or after a while */
  HB_SIM_WRITTEN, /* acknowledged by an ASYNC stream: sure when complete_to is past it */
  HB_SIM_SURE
};

struct hb_sim_item {
  int64_t index;
  enum hb_sim_state state;
};

struct hb_sim_sent {
  uint32_t count;
  size_t items[HB_SIM_PER_BATCH];
};

struct hb_sim_producer {
  struct hb_sim_truth *truth;
  uint64_t stream;
  enum hb_sim_manner manner;
  bool async;
  struct hb_sim_item items[HB_SIM_EVENTS]; /* in the order of the first attempt */
  size_t count;
  struct hb_sim_conn *conn; /* NULL: none */
  uint64_t sent, answered;
  struct hb_sim_sent window[HB_SIM_WINDOW]; /* by ordinal */
  uint64_t polled_us;
  struct hb_sim_seen seen;
};

void hb_producer_init(struct hb_sim_producer *producer, struct hb_sim_truth *truth, uint64_t stream,
                      bool async, enum hb_sim_manner manner);
/* One more event to send; all of them before start. */
void hb_producer_add(struct hb_sim_producer *producer, int64_t index);
void hb_producer_start(struct hb_sim_producer *producer);
bool hb_producer_is_sure(const struct hb_sim_producer *producer);

#endif
