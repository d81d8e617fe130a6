/* Decides what somebody sends who means no good. */
#include "tests/sim/hostile.h"

enum { ON_THE_WAY_MAX = 16 };

static void receive(void *context, struct hb_sim_conn *conn, const struct hb_sim_message *message) {
  struct hb_sim_hostile *hostile = context;
  if (conn != hostile->conn) return;
  if (message->kind == HB_SIM_CLOSE) {
    hostile->conn = NULL;
  } else if (hostile->malice != HB_SIM_NEVER_READS) {
    hostile->on_the_way--;
    hb_sim_to_server(conn, &(struct hb_sim_message){.kind = HB_SIM_READ});
  }
}

static struct hb_test_event far_ahead(struct hb_sim_hostile *hostile) {
  static const int64_t FAR[] = {INT64_MAX, INT64_MAX - 1, INT64_MIN, 0, INT64_C(1) << 40};
  struct hb_sim_truth *truth = hostile->truth;
  struct hb_test_event event = hb_truth_event(truth, hostile->stream, 0, 1);
  truth->far++;
  if (hb_world_chance(truth->world, 60)) {
    event.sequence += HB_SIM_EVENTS + 1 + (int64_t)hb_world_below(truth->world, 1000);
  } else {
    event.sequence = FAR[hb_world_below(truth->world, 5)];
  }
  uint64_t index = (uint64_t)event.sequence - (uint64_t)truth->first[hostile->stream - 1];
  if (index < HB_SIM_EVENTS) return hb_truth_event(truth, hostile->stream, (int64_t)index, 1);
  return event;
}

static struct hb_test_event next_event(struct hb_sim_hostile *hostile) {
  struct hb_world *world = hostile->truth->world;
  if (hostile->malice == HB_SIM_FAR_AHEAD) return far_ahead(hostile);
  /* The same low ones again and again, some of them with content of its own. */
  uint64_t to = 1 + hb_world_below(world, HB_SIM_EVENTS);
  int64_t index = (int64_t)hb_world_below(world, to);
  bool other = hostile->malice == HB_SIM_OTHER_CONTENT && hb_world_chance(world, 30);
  uint32_t variant = other ? 1 + (uint32_t)hb_world_below(world, HB_SIM_VARIANTS - 1) : 0;
  return hb_truth_event(hostile->truth, hostile->stream, index, variant);
}

static void work(void *context, uint64_t unused) {
  struct hb_sim_hostile *hostile = context;
  struct hb_world *world = hostile->truth->world;
  (void)unused;
  if (hostile->truth->calm) {
    if (hostile->conn) hb_sim_close_by_client(hostile->conn);
    return;
  }
  if (!hostile->conn) {
    hostile->conn = hb_sim_connect(hostile->truth->network, (struct hb_sim_end){receive, hostile});
    hostile->on_the_way = 0;
  } else if (hostile->on_the_way < ON_THE_WAY_MAX) {
    struct hb_sim_message message = {.kind = HB_SIM_APPEND, .stream = hostile->stream};
    message.count = (uint32_t)hb_world_between(world, 1, HB_SIM_EVENTS_MAX + 1);
    for (uint32_t i = 0; i < message.count; i++) message.events[i] = next_event(hostile);
    hostile->on_the_way++;
    hb_sim_to_server(hostile->conn, &message);
  }
  hb_world_plan(world, hb_world_between(world, 2000, 120000), work, hostile, 0);
}

void hb_hostile_start(struct hb_sim_hostile *hostile, struct hb_sim_truth *truth, uint64_t stream,
                      enum hb_sim_malice malice) {
  *hostile = (struct hb_sim_hostile){.truth = truth, .stream = stream, .malice = malice};
  hb_world_plan(truth->world, hb_world_below(truth->world, 400000), work, hostile, 0);
}
