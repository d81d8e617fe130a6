/* Decides what may be delivered: the next sequence, once (I3). */
#include "tests/sim/subscriber.h"

#include <inttypes.h>

static void take_batch(struct hb_sim_subscriber *subscriber, const struct hb_sim_message *message) {
  struct hb_sim_truth *truth = subscriber->truth;
  for (uint32_t i = 0; i < message->count; i++) {
    const struct hb_test_event *event = &message->events[i];
    if (event->sequence != subscriber->position) {
      hb_world_fail(truth->world,
                    "stream %" PRIu64 ": %" PRId64 " is delivered where %" PRId64 " was next (I3)",
                    subscriber->stream, event->sequence, subscriber->position);
    }
    hb_truth_learn(truth, subscriber->stream, event->sequence, event->content, "delivered");
    subscriber->position++;
    truth->delivered++;
  }
  if (message->position != subscriber->position) {
    hb_world_fail(truth->world, "next_position %" PRId64 " after %" PRId64, message->position,
                  subscriber->position - 1);
  }
}

static void say_read(void *context, uint64_t id) {
  struct hb_sim_subscriber *subscriber = context;
  if (!subscriber->conn || subscriber->conn->id != id) return;
  hb_sim_to_server(subscriber->conn, &(struct hb_sim_message){.kind = HB_SIM_READ});
}

static void receive(void *context, struct hb_sim_conn *conn, const struct hb_sim_message *message) {
  struct hb_sim_subscriber *subscriber = context;
  struct hb_world *world = subscriber->truth->world;
  if (conn != subscriber->conn) return;
  if (message->kind == HB_SIM_CLOSE) {
    subscriber->conn = NULL;
    return;
  }
  if (subscriber->reader == HB_SIM_NO_READER) return;
  take_batch(subscriber, message);
  hb_truth_see(subscriber->truth, &subscriber->seen, message);
  bool slow = subscriber->reader == HB_SIM_SLOW_READER && !subscriber->truth->calm;
  uint64_t us = slow ? hb_world_between(world, 50000, 500000) : hb_world_between(world, 10, 3000);
  hb_world_plan(world, us, say_read, subscriber, conn->id);
}

static void work(void *context, uint64_t unused) {
  struct hb_sim_subscriber *subscriber = context;
  struct hb_sim_truth *truth = subscriber->truth;
  (void)unused;
  if (!subscriber->conn) {
    subscriber->conn = hb_sim_connect(truth->network, (struct hb_sim_end){receive, subscriber});
    hb_world_note(truth->world, "a subscriber of stream %" PRIu64 " connects: %" PRIu64,
                  subscriber->stream, subscriber->conn->id);
    struct hb_sim_message message = {
        .kind = HB_SIM_SUBSCRIBE, .stream = subscriber->stream, .position = subscriber->position};
    hb_sim_to_server(subscriber->conn, &message);
  } else if (subscriber->reader == HB_SIM_RECONNECTING_READER && !truth->calm &&
             hb_world_chance(truth->world, 20)) {
    hb_sim_close_by_client(subscriber->conn);
    subscriber->conn = NULL;
  }
  hb_world_plan(truth->world, hb_world_between(truth->world, 5000, 60000), work, subscriber, 0);
}

void hb_subscriber_start(struct hb_sim_subscriber *subscriber, struct hb_sim_truth *truth,
                         uint64_t stream, enum hb_sim_reader reader) {
  *subscriber = (struct hb_sim_subscriber){
      .truth = truth, .stream = stream, .reader = reader, .position = truth->first[stream - 1]};
  hb_world_plan(truth->world, hb_world_below(truth->world, 100000), work, subscriber, 0);
}

bool hb_subscriber_is_done(const struct hb_sim_subscriber *subscriber) {
  int64_t end = subscriber->truth->first[subscriber->stream - 1] + HB_SIM_EVENTS;
  return subscriber->reader == HB_SIM_NO_READER || subscriber->position >= end;
}
