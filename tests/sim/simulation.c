/* Decides who takes part and what goes wrong when; then waits for everything to be delivered. */
#include "tests/sim/simulation.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>
#include <inttypes.h>

#include "tests/sim/hostile.h"
#include "tests/sim/producer.h"
#include "tests/sim/subscriber.h"

enum {
  CALM_US = 2500000,      /* the safety phase ends */
  OVER_US = 120 * 1000000 /* nothing takes that long without faults */
};

struct stream {
  struct hb_sim_producer producers[5];
  struct hb_sim_hostile hostiles[3];
  struct hb_sim_subscriber subscribers[4];
};

struct simulation {
  struct hb_world world;
  struct hb_sim_network network;
  struct hb_sim_server server;
  struct hb_sim_truth truth;
  struct stream streams[HB_SIM_STREAMS];
};

/* ---- faults */

enum fault {
  FAULT_WRITE,
  FAULT_WRITE_STORED,
  FAULT_SYNC,
  FAULT_KILL,
  FAULT_POWER,
  FAULT_BREAK,
  FAULT_BREAK_ALL,
  FAULT_SLOW_DISK,
  FAULT_READS,
  FAULT_CLOCK,
  FAULT_COUNT
};

static void break_one(struct simulation *s) {
  size_t count = s->network.conns_count;
  size_t from = hb_world_below(&s->world, count ? count : 1);
  for (size_t i = 0; i < count; i++) {
    struct hb_sim_conn *conn = s->network.conns[(from + i) % count];
    if (!conn->client_open) continue;
    hb_sim_break(conn);
    return;
  }
}

static void break_all(struct simulation *s) {
  size_t count = s->network.conns_count; /* not those that are made meanwhile */
  for (size_t i = 0; i < count; i++) hb_sim_break(s->network.conns[i]);
}

static void go_wrong(void *context, uint64_t fault) {
  struct simulation *s = context;
  hb_world_note(&s->world, "fault %" PRIu64, fault);
  switch ((enum fault)fault) {
    case FAULT_WRITE:
    case FAULT_WRITE_STORED:
      s->server.trouble.fail_write = true;
      s->server.trouble.fail_write_stored = fault == FAULT_WRITE_STORED;
      break;
    case FAULT_SYNC:
      s->server.trouble.fail_sync = true;
      break;
    case FAULT_KILL:
    case FAULT_POWER:
      hb_sim_server_crash(&s->server, fault == FAULT_POWER);
      break;
    case FAULT_BREAK:
      break_one(s);
      break;
    case FAULT_BREAK_ALL:
      break_all(s);
      break;
    case FAULT_SLOW_DISK:
      s->server.trouble.slow_disk += 3;
      break;
    case FAULT_READS:
      s->server.trouble.fail_reads += 3;
      break;
    case FAULT_CLOCK:
      s->server.wall_step_ms += hb_world_chance(&s->world, 50) ? 3600000 : -3600000;
      break;
    case FAULT_COUNT:
      break;
  }
}

/* All are drawn, so that leaving one out changes no other. */
static void plan_faults(struct simulation *s, const bool *keep) {
  for (size_t i = 0; i < HB_SIM_FAULTS; i++) {
    uint64_t at = hb_world_below(&s->world, CALM_US);
    uint64_t fault = hb_world_below(&s->world, FAULT_COUNT);
    if (!keep[i]) continue;
    hb_world_plan(&s->world, at, go_wrong, s, fault);
  }
}

/* ---- who takes part */

/* What only the silent one has: without it the last third waits. */
static bool is_silent(int64_t index) { return index > HB_SIM_EVENTS * 2 / 3 && index % 17 == 3; }

static bool has(size_t producer, int64_t index) {
  if (is_silent(index)) return producer == 4;
  switch (producer) {
    case 0:
      return index < HB_SIM_EVENTS * 6 / 10;
    case 1:
      return index >= HB_SIM_EVENTS * 4 / 10;
    case 2:
      return index % 2 == 1;
    case 3:
      return index > HB_SIM_EVENTS / 5 && index < HB_SIM_EVENTS * 4 / 5;
    default:
      return false;
  }
}

static const enum hb_sim_manner MANNERS[] = {HB_SIM_STEADY, HB_SIM_STEADY, HB_SIM_SLOW,
                                             HB_SIM_RECONNECTING, HB_SIM_SILENT};

static void start_producer(struct simulation *s, uint64_t stream, size_t at) {
  struct hb_sim_producer *producer = &s->streams[stream - 1].producers[at];
  hb_producer_init(producer, &s->truth, stream, stream == 2, MANNERS[at]);
  for (int64_t i = 0; i < HB_SIM_EVENTS; i++) {
    if (has(at, i)) hb_producer_add(producer, i);
  }
  hb_producer_start(producer);
}

/* `extras`: eight flags. */
static void start_clients(struct simulation *s, uint64_t stream, const bool *extras) {
  struct stream *all = &s->streams[stream - 1];
  start_producer(s, stream, 0);
  start_producer(s, stream, 1);
  start_producer(s, stream, 4);
  for (size_t i = 0; i < 2; i++) {
    if (extras[i]) start_producer(s, stream, 2 + i);
  }
  for (size_t i = 0; i < 3; i++) {
    if (extras[2 + i]) {
      hb_hostile_start(&all->hostiles[i], &s->truth, stream, (enum hb_sim_malice)i);
    }
  }
  hb_subscriber_start(&all->subscribers[0], &s->truth, stream, HB_SIM_FAST_READER);
  for (size_t i = 1; i < 4; i++) {
    if (extras[4 + i]) {
      hb_subscriber_start(&all->subscribers[i], &s->truth, stream, (enum hb_sim_reader)i);
    }
  }
}

/* ---- the end */

static bool is_done(const struct simulation *s) {
  for (size_t k = 0; k < HB_SIM_STREAMS; k++) {
    const struct stream *stream = &s->streams[k];
    for (size_t i = 0; i < 5; i++) {
      if (!hb_producer_is_sure(&stream->producers[i])) return false;
    }
    for (size_t i = 0; i < 4; i++) {
      const struct hb_sim_subscriber *subscriber = &stream->subscribers[i];
      if (subscriber->truth && !hb_subscriber_is_done(subscriber)) return false;
    }
  }
  return hb_sim_server_is_idle(&s->server);
}

static void check_stored(struct simulation *s) {
  for (uint64_t k = 1; k <= HB_SIM_STREAMS; k++) {
    const struct hb_fake_stream *stream = hb_fake_find(&s->server.durable, k);
    hb_fake_check(stream);
    assert_int_equal(stream->record.complete_to, s->truth.first[k - 1] + HB_SIM_EVENTS);
    assert_int_equal(stream->record.frontier, stream->record.complete_to);
  }
}

static void calm_down(void *context, uint64_t unused) {
  struct simulation *s = context;
  (void)unused;
  hb_world_note(&s->world, "nothing goes wrong from now on");
  s->truth.calm = true;
  s->server.trouble = (struct hb_sim_trouble){0};
}

static void describe_lateness(const struct simulation *s) {
  for (size_t k = 0; k < HB_SIM_STREAMS; k++) {
    const struct hb_fake_stream *stream =
        hb_fake_find((struct hb_fake_store *)&s->server.durable, k + 1);
    print_message("stream %zu: first %" PRId64 ", complete_to %" PRId64 ", frontier %" PRId64 "\n",
                  k + 1, s->truth.first[k], stream->record.complete_to, stream->record.frontier);
  }
}

static void run(struct simulation *s) {
  while (!s->truth.calm || !is_done(s)) {
    if (s->world.now_us > OVER_US) {
      describe_lateness(s);
      hb_world_fail(&s->world, "not everything was delivered, though nothing goes wrong (I9)");
    }
    assert_true(hb_world_step(&s->world));
  }
}

static void count(struct hb_sim_tally *tally, const struct simulation *s) {
  tally->lives += s->server.lives;
  tally->failed_writes += s->server.failed_writes;
  tally->power_losses += s->server.power_losses;
  tally->refused += s->server.refused;
  tally->needs += s->server.needs;
  tally->fetches += s->server.fetches;
  tally->acked += s->truth.acked;
  tally->conflicts += s->truth.conflicts;
  tally->far += s->truth.far;
  tally->delivered += s->truth.delivered;
  tally->reconnects += s->truth.reconnects;
}

/* What is on its way at the end has to be taken in, by nobody. */
static void drain(struct simulation *s) {
  for (size_t i = 0; i < s->network.conns_count; i++) hb_sim_close_by_client(s->network.conns[i]);
  while (s->network.messages) assert_true(hb_world_step(&s->world));
}

uint64_t hb_simulate(uint64_t seed, const bool *keep, bool tell, struct hb_sim_tally *tally) {
  static struct simulation s;
  memset(&s, 0, sizeof s);
  hb_world_init(&s.world, seed, tell);
  hb_sim_network_init(&s.network, &s.world);
  hb_sim_server_init(&s.server, &s.network);
  s.truth.world = &s.world;
  s.truth.network = &s.network;
  for (size_t i = 0; i < HB_SIM_STREAMS; i++) {
    s.truth.first[i] = s.server.configs[i].first_sequence;
  }
  plan_faults(&s, keep);
  hb_world_plan(&s.world, CALM_US, calm_down, &s, 0);
  for (uint64_t k = 1; k <= HB_SIM_STREAMS; k++) {
    start_clients(&s, k, keep + HB_SIM_FAULTS + (k - 1) * (HB_SIM_EXTRAS / HB_SIM_STREAMS));
  }
  run(&s);
  check_stored(&s);
  count(tally, &s);
  uint64_t hash = s.world.hash;
  drain(&s);
  hb_sim_server_done(&s.server);
  hb_sim_network_done(&s.network);
  hb_world_done(&s.world);
  return hash;
}
