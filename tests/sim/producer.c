/* Decides what is sent next, and when an event needs no further copy: an answer of a durable
 * stream, or a complete_to past it. Whatever was not answered is sent again. */
#include "tests/sim/producer.h"

#include <inttypes.h>
#include <string.h>

enum { POLL_US = 300000, DISPLACED = 24 };

void hb_producer_init(struct hb_sim_producer *producer, struct hb_sim_truth *truth, uint64_t stream,
                      bool async, enum hb_sim_manner manner) {
  *producer =
      (struct hb_sim_producer){.truth = truth, .stream = stream, .async = async, .manner = manner};
}

void hb_producer_add(struct hb_sim_producer *producer, int64_t index) {
  producer->items[producer->count++].index = index;
}

static int64_t sequence_of(const struct hb_sim_producer *producer, size_t item) {
  return producer->truth->first[producer->stream - 1] + producer->items[item].index;
}

/* ---- what comes */

static void replace(struct hb_sim_producer *producer, enum hb_sim_state from,
                    enum hb_sim_state to) {
  for (size_t i = 0; i < producer->count; i++) {
    if (producer->items[i].state == from) producer->items[i].state = to;
  }
}

static void see(struct hb_sim_producer *producer, const struct hb_sim_message *message) {
  bool moved = !producer->seen.any || message->complete_to > producer->seen.complete_to;
  hb_truth_see(producer->truth, &producer->seen, message);
  if (moved) replace(producer, HB_SIM_REFUSED, HB_SIM_TO_SEND);
  for (size_t i = 0; i < producer->count; i++) {
    bool below = sequence_of(producer, i) < message->complete_to;
    if (producer->items[i].state == HB_SIM_WRITTEN && below) {
      producer->items[i].state = HB_SIM_SURE;
    }
  }
}

static void take_outcome(struct hb_sim_producer *producer, size_t item, uint8_t outcome) {
  struct hb_sim_truth *truth = producer->truth;
  struct hb_test_event event =
      hb_truth_event(truth, producer->stream, producer->items[item].index, 0);
  switch (outcome) {
    case HB_OUTCOME_STORED:
    case HB_OUTCOME_DUPLICATE:
      truth->acked++;
      if (!producer->async) {
        hb_truth_learn(truth, producer->stream, event.sequence, event.content, "acknowledged");
      }
      producer->items[item].state = producer->async ? HB_SIM_WRITTEN : HB_SIM_SURE;
      break;
    case HB_OUTCOME_CONFLICT: /* somebody else was first */
      truth->conflicts++;
      producer->items[item].state = producer->async ? HB_SIM_WRITTEN : HB_SIM_SURE;
      break;
    case HB_OUTCOME_WINDOW_FULL:
      producer->items[item].state = HB_SIM_REFUSED;
      break;
    default:
      hb_world_fail(truth->world, "stream %" PRIu64 ", sequence %" PRId64 ": outcome %u",
                    producer->stream, event.sequence, outcome);
  }
}

static void take_answer(struct hb_sim_producer *producer, const struct hb_sim_message *message) {
  const struct hb_sim_sent *sent = &producer->window[message->ordinal % HB_SIM_WINDOW];
  if (message->ordinal != producer->answered || message->count != sent->count) {
    hb_world_fail(producer->truth->world, "answer %" PRIu64 " instead of %" PRIu64 " (I9)",
                  message->ordinal, producer->answered);
  }
  producer->answered++;
  for (uint32_t i = 0; i < sent->count; i++) {
    take_outcome(producer, sent->items[i], message->decisions[i].outcome);
  }
}

/* ASYNC: what is not known to be durable may be gone with the server. */
static void lose(struct hb_sim_producer *producer) {
  producer->conn = NULL;
  producer->truth->reconnects++;
  replace(producer, HB_SIM_SENT, HB_SIM_TO_SEND);
  replace(producer, HB_SIM_WRITTEN, HB_SIM_TO_SEND);
}

static void receive(void *context, struct hb_sim_conn *conn, const struct hb_sim_message *message) {
  struct hb_sim_producer *producer = context;
  if (conn != producer->conn) return;
  if (message->kind == HB_SIM_CLOSE) {
    lose(producer);
    return;
  }
  if (message->kind == HB_SIM_ANSWER) take_answer(producer, message);
  see(producer, message);
  if (message->kind == HB_SIM_ANSWER) {
    hb_sim_to_server(conn, &(struct hb_sim_message){.kind = HB_SIM_READ});
  }
}

/* ---- what goes */

static void send_batch(struct hb_sim_producer *producer) {
  struct hb_world *world = producer->truth->world;
  struct hb_sim_sent *sent = &producer->window[producer->sent % HB_SIM_WINDOW];
  struct hb_sim_message message = {.kind = HB_SIM_APPEND, .stream = producer->stream};
  uint64_t count = hb_world_between(world, 1, HB_SIM_PER_BATCH + 1);
  sent->count = 0;
  for (size_t i = 0; i < producer->count && sent->count < count; i++) {
    struct hb_sim_item *item = &producer->items[i];
    if (item->state != HB_SIM_TO_SEND) continue;
    item->state = HB_SIM_SENT;
    message.events[sent->count] = hb_truth_event(producer->truth, producer->stream, item->index, 0);
    sent->items[sent->count++] = i;
  }
  if (!sent->count) return;
  message.count = sent->count;
  message.ordinal = producer->sent++;
  hb_sim_to_server(producer->conn, &message);
}

static bool has(const struct hb_sim_producer *producer, enum hb_sim_state state) {
  for (size_t i = 0; i < producer->count; i++) {
    if (producer->items[i].state == state) return true;
  }
  return false;
}

/* With nothing else to send: what was refused again, and where the stream is. */
static void poll(struct hb_sim_producer *producer) {
  struct hb_world *world = producer->truth->world;
  if (world->now_us < producer->polled_us + POLL_US) return;
  producer->polled_us = world->now_us;
  replace(producer, HB_SIM_REFUSED, HB_SIM_TO_SEND);
  hb_sim_to_server(producer->conn,
                   &(struct hb_sim_message){.kind = HB_SIM_POLL, .stream = producer->stream});
}

static void connect(struct hb_sim_producer *producer) {
  producer->sent = producer->answered = 0;
  producer->conn = hb_sim_connect(producer->truth->network, (struct hb_sim_end){receive, producer});
  hb_world_note(producer->truth->world, "a producer of stream %" PRIu64 " connects: %" PRIu64,
                producer->stream, producer->conn->id);
}

static uint64_t pause_us(struct hb_sim_producer *producer) {
  struct hb_world *world = producer->truth->world;
  if (!producer->truth->calm && producer->manner == HB_SIM_SLOW) {
    return hb_world_between(world, 50000, 400000);
  }
  return hb_world_between(world, 3000, 60000);
}

static bool says_nothing(struct hb_sim_producer *producer) {
  return producer->manner == HB_SIM_SILENT && !producer->truth->calm &&
         producer->truth->world->now_us > 200000;
}

static void work(void *context, uint64_t unused) {
  struct hb_sim_producer *producer = context;
  struct hb_world *world = producer->truth->world;
  (void)unused;
  if (!producer->conn) {
    connect(producer);
  } else if (producer->manner == HB_SIM_RECONNECTING && !producer->truth->calm &&
             hb_world_chance(world, 10)) {
    hb_sim_close_by_client(producer->conn);
    lose(producer);
  } else if (!says_nothing(producer)) {
    if (producer->sent < producer->answered + HB_SIM_WINDOW) send_batch(producer);
    if (!has(producer, HB_SIM_TO_SEND) && !hb_producer_is_sure(producer)) poll(producer);
  }
  hb_world_plan(world, pause_us(producer), work, producer, 0);
}

void hb_producer_start(struct hb_sim_producer *producer) {
  struct hb_world *world = producer->truth->world;
  for (size_t i = 0; i < producer->count; i++) {
    size_t to = i + hb_world_below(world, DISPLACED);
    if (to >= producer->count) continue;
    struct hb_sim_item kept = producer->items[i];
    producer->items[i] = producer->items[to];
    producer->items[to] = kept;
  }
  hb_world_plan(world, hb_world_below(world, 20000), work, producer, 0);
}

bool hb_producer_is_sure(const struct hb_sim_producer *producer) {
  for (size_t i = 0; i < producer->count; i++) {
    if (producer->items[i].state != HB_SIM_SURE) return false;
  }
  return true;
}
