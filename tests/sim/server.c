/* Decides what the sequencer does next: submit what came, ask readers, decide, write, answer,
 * publish. One write or sync at a time; while it runs, the next commit gathers. */
#include "tests/sim/server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <inttypes.h>

#include "base/alloc.h"
#include "tests/model/driver.h"
#include "tests/sim/feed.h"

enum {
  UNREAD_MAX = 4, /* batches of a connection in the server, and answers that it does not read */
  MAILBOX_BYTES = 3000,
  IDLE_TICK_US = 250000,
  ASYNC_SYNC_US = 10000,
  FREE_AGAIN_US = 100000
};

static void plan_turn(struct hb_sim_server *server);
static void die(struct hb_sim_server *server);

static struct hb_now now_of(const struct hb_sim_server *server) {
  int64_t wall = INT64_C(1700000000000) + (int64_t)(server->world->now_us / 1000);
  return (struct hb_now){.served_ms = 1000 + server->world->now_us / 1000,
                         .wall_ms = (uint64_t)(wall + server->wall_step_ms)};
}

/* ---- answers */

static struct hb_sim_request take_request(struct hb_sim_server *server,
                                          const struct hb_batch *batch) {
  size_t at = 0;
  while (at < server->requests_count && &server->requests[at].batch->batch != batch) at++;
  assert_true(at < server->requests_count);
  struct hb_sim_request request = server->requests[at];
  server->requests_count--;
  memmove(server->requests + at, server->requests + at + 1,
          (server->requests_count - at) * sizeof *server->requests);
  return request;
}

/* I1: what the answer says is present is durable, with the content that it speaks of. */
static void check_answer(struct hb_sim_server *server, const struct hb_batch *batch) {
  const struct hb_fake_stream *durable = hb_fake_find(&server->durable, batch->stream);
  const struct hb_fake_stream *written = hb_fake_find(&server->written, batch->stream);
  bool async = durable->config.ack == HB_ACK_ASYNC;
  for (uint32_t i = 0; i < batch->count; i++) {
    uint8_t outcome = batch->decisions[i].outcome;
    server->refused += outcome == HB_OUTCOME_WINDOW_FULL;
    if (outcome > HB_OUTCOME_CONFLICT) continue;
    int64_t sequence = batch->events[i].sequence;
    uint32_t content = 0;
    bool there = hb_fake_content(async ? written : durable, sequence, &content);
    bool same = content == hb_test_content(&batch->events[i]);
    if (there && same == (outcome != HB_OUTCOME_CONFLICT)) continue;
    hb_world_fail(
        server->world,
        "stream %" PRIu64 ", sequence %" PRId64 ": outcome %u is answered, and it is %s (I1)",
        batch->stream, sequence, outcome, there ? "there with other content" : "not there");
  }
}

/* An error ends the call, as gRPC's status does; whoever is there sends all again. */
static void answer(struct hb_sim_server *server, const struct hb_sim_request *request) {
  const struct hb_batch *batch = &request->batch->batch;
  struct hb_sim_conn *conn = request->conn;
  hb_world_note(server->world, "answer %" PRIu64 " on connection %" PRIu64 ", code %d",
                request->ordinal, conn->id, batch->error.code);
  if (batch->error.code) {
    hb_sim_close_by_server(conn);
    return;
  }
  check_answer(server, batch);
  if (!conn->server_open) return; /* nobody is there any more */
  assert_int_equal(request->ordinal, conn->answered);
  conn->answered++;
  struct hb_sim_message message = {.kind = HB_SIM_ANSWER,
                                   .stream = batch->stream,
                                   .ordinal = request->ordinal,
                                   .count = batch->count};
  memcpy(message.decisions, batch->decisions, batch->count * sizeof *batch->decisions);
  hb_feed_numbers(server, batch->stream, &message);
  hb_sim_to_client(conn, &message);
}

static void send_answers(struct hb_sim_server *server) {
  struct hb_batch *batch;
  while ((batch = hb_ordering_take_answered(server->core))) {
    struct hb_sim_request request = take_request(server, batch);
    answer(server, &request);
    hb_test_batch_destroy(request.batch);
  }
}

/* ---- reading calls */

static void accept_append(struct hb_sim_server *server, struct hb_sim_conn *conn,
                          const struct hb_sim_message *message) {
  hb_reserve((void **)&server->requests, &server->requests_cap, server->requests_count + 1,
             sizeof *server->requests);
  struct hb_test_batch *batch =
      hb_test_batch_create(message->stream, conn->id, message->events, message->count);
  batch->number = server->batches++;
  server->requests[server->requests_count++] =
      (struct hb_sim_request){.batch = batch, .conn = conn, .ordinal = conn->accepted++};
  server->mailbox_bytes += batch->batch.bytes;
  if (server->mailbox_bytes > server->mailbox_max) server->mailbox_max = server->mailbox_bytes;
  conn->unread++;
}

/* Reads a call while there is room: for it, and in the mailbox. */
static void read_conn(struct hb_sim_server *server, struct hb_sim_conn *conn) {
  size_t at = 0;
  while (at < conn->inbox_count && conn->unread < UNREAD_MAX &&
         server->mailbox_bytes < MAILBOX_BYTES) {
    accept_append(server, conn, &conn->inbox[at++]);
  }
  conn->inbox_count -= at;
  if (at) memmove(conn->inbox, conn->inbox + at, conn->inbox_count * sizeof *conn->inbox);
}

static void read_conns(struct hb_sim_server *server) {
  size_t count = server->network->conns_count;
  for (size_t i = 0; i < count && server->core; i++) {
    struct hb_sim_conn *conn = server->network->conns[(server->first_conn + i) % count];
    if (conn->server_open && conn->inbox_count) read_conn(server, conn);
  }
  server->first_conn++;
  if (server->mailbox_bytes) plan_turn(server);
}

static void push_inbox(struct hb_sim_conn *conn, const struct hb_sim_message *message) {
  hb_reserve((void **)&conn->inbox, &conn->inbox_cap, conn->inbox_count + 1, sizeof *conn->inbox);
  conn->inbox[conn->inbox_count++] = *message;
}

static void receive(void *context, struct hb_sim_conn *conn, const struct hb_sim_message *message) {
  struct hb_sim_server *server = context;
  if (!server->core) {
    hb_sim_close_by_server(conn); /* nobody listens */
    return;
  }
  switch (message->kind) {
    case HB_SIM_APPEND:
      push_inbox(conn, message);
      read_conns(server);
      break;
    case HB_SIM_READ:
      conn->unread -= conn->unread > 0;
      conn->batch_out = false;
      hb_feed(server, conn);
      read_conns(server);
      break;
    case HB_SIM_POLL:
      hb_feed_status(server, conn, message->stream);
      break;
    case HB_SIM_SUBSCRIBE:
      hb_feed_subscribe(server, conn, message);
      break;
    case HB_SIM_ANSWER:
    case HB_SIM_STATUS:
    case HB_SIM_BATCH:
    case HB_SIM_CLOSE:
      hb_world_fail(server->world, "a client sent what only servers send");
  }
}

/* ---- readers */

static void finish_reading(struct hb_sim_server *server, size_t at) {
  struct hb_sim_reading reading = server->out[at];
  server->out[at] = server->out[--server->out_count];
  if (reading.need) {
    /* Some looked when they were asked, and had only the way back. */
    if (reading.need->items[0].verdict == HB_VERDICT_NONE && !reading.need->error.code) {
      hb_fake_answer(&server->written, reading.need);
    }
    hb_ordering_answer_need(server->core, reading.need);
  } else {
    struct hb_bytes *block = hb_fake_fetch(&server->written, reading.bundle);
    bool fails = server->trouble.fail_reads > 0;
    server->trouble.fail_reads -= fails;
    hb_ordering_fetched(server->core, reading.bundle, fails ? NULL : block);
  }
}

static void read_done(void *context, uint64_t id) {
  struct hb_sim_server *server = context;
  for (size_t i = 0; i < server->out_count; i++) {
    if (server->out[i].id != id) continue;
    hb_world_note(server->world, "a reader is done: %s", server->out[i].need ? "NEED" : "FETCH");
    finish_reading(server, i);
    plan_turn(server);
    return;
  }
}

static void start_reading(struct hb_sim_server *server, struct hb_sim_reading reading) {
  reading.id = ++server->readings;
  server->out[server->out_count++] = reading;
  uint64_t us =
      hb_world_between(server->world, 50, hb_world_chance(server->world, 10) ? 40000 : 2000);
  hb_world_plan(server->world, us, read_done, server, reading.id);
}

static void ask_readers(struct hb_sim_server *server) {
  struct hb_need *need;
  while (server->out_count < HB_SIM_OUT_MAX && (need = hb_ordering_take_need(server->core))) {
    if (hb_world_chance(server->world, 50)) hb_fake_answer(&server->written, need);
    start_reading(server, (struct hb_sim_reading){.need = need});
    server->needs++;
  }
  struct hb_bundle_id id;
  while (server->out_count < HB_SIM_OUT_MAX && hb_ordering_take_fetch(server->core, &id)) {
    start_reading(server, (struct hb_sim_reading){.bundle = id});
    server->fetches++;
  }
}

/* Of a core that is dead: needs go back, fetches are forgotten. */
static void drop_readings(struct hb_sim_server *server) {
  for (size_t i = 0; i < server->out_count; i++) {
    if (server->out[i].need) hb_ordering_answer_need(server->core, server->out[i].need);
  }
  server->out_count = 0;
}

/* ---- writing */

static void publish(struct hb_sim_server *server) {
  hb_fake_store_copy(&server->durable, &server->written);
  server->unsynced = false;
  hb_feed_all(server);
}

/* Exit code 74: whoever waits is told that the outcome is not known, then it is over. */
static void fail_server(struct hb_sim_server *server, const char *what, bool stored) {
  hb_world_note(server->world, "%s fails%s", what, stored ? ", but is there" : "");
  if (stored && server->commit) hb_fake_apply(&server->written, server->commit);
  server->commit = NULL;
  server->failed_writes++;
  hb_ordering_fail(server->core);
  drop_readings(server);
  send_answers(server);
  die(server);
}

static void sync_due(void *context, uint64_t life) {
  struct hb_sim_server *server = context;
  if (life != server->life) return;
  server->sync_wanted = server->unsynced;
  plan_turn(server);
}

static void finish_commit(struct hb_sim_server *server) {
  const struct hb_commit *commit = server->commit;
  bool empty = hb_commit_is_empty(commit);
  bool durable = commit->durable;
  server->commit = NULL;
  hb_fake_apply(&server->written, commit);
  if (durable && !empty) publish(server);
  hb_ordering_committed(server->core, commit);
  if (!durable && !empty) {
    if (!server->unsynced)
      hb_world_plan(server->world, ASYNC_SYNC_US, sync_due, server, server->life);
    server->unsynced = true;
  }
  send_answers(server);
  plan_turn(server);
}

static void write_done(void *context, uint64_t life) {
  struct hb_sim_server *server = context;
  if (life != server->life) return;
  if (server->trouble.fail_write) {
    bool stored = server->trouble.fail_write_stored;
    server->trouble.fail_write = false;
    fail_server(server, "a write", stored);
    return;
  }
  hb_world_note(server->world, "commit %" PRIu64 " is written", server->commit->number);
  finish_commit(server);
}

static void sync_done(void *context, uint64_t life) {
  struct hb_sim_server *server = context;
  if (life != server->life) return;
  server->syncing = server->sync_wanted = false;
  if (server->trouble.fail_sync) {
    server->trouble.fail_sync = false;
    fail_server(server, "a sync", false);
    return;
  }
  hb_world_note(server->world, "synced");
  publish(server);
  plan_turn(server);
}

static uint64_t disk_us(struct hb_sim_server *server) {
  bool slow = server->trouble.slow_disk > 0;
  server->trouble.slow_disk -= slow;
  return slow ? hb_world_between(server->world, 50000, 400000)
              : hb_world_between(server->world, 200, 1500);
}

/* ---- the sequencer */

static void submit_all(struct hb_sim_server *server) {
  for (size_t i = 0; i < server->requests_count; i++) {
    struct hb_sim_request *request = &server->requests[i];
    if (request->in_core) continue;
    request->in_core = true;
    hb_ordering_submit(server->core, &request->batch->batch);
  }
  server->mailbox_bytes = 0;
}

static void decide(struct hb_sim_server *server) {
  const struct hb_commit *commit = hb_ordering_decide(server->core, now_of(server));
  if (!commit) {
    ask_readers(server); /* a decide that gave nothing may have found what must be asked */
    return;
  }
  server->commit = commit;
  hb_world_note(server->world, "commit %" PRIu64 ": %zu blocks, %zu bundles, %zu drained%s",
                commit->number, commit->blocks_count, commit->bundles_count, commit->drained_count,
                commit->durable ? "" : ", no sync");
  send_answers(server); /* of batches that did not wait for the write: there are none */
  if (hb_commit_is_empty(commit)) {
    finish_commit(server);
  } else {
    hb_world_plan(server->world, disk_us(server), write_done, server, server->life);
  }
}

static void turn(void *context, uint64_t life) {
  struct hb_sim_server *server = context;
  if (life != server->life) return;
  server->turn_planned = false;
  if (server->commit || server->syncing) return;
  if (server->sync_wanted) {
    server->syncing = true;
    hb_world_plan(server->world, disk_us(server), sync_done, server, server->life);
    return;
  }
  submit_all(server);
  ask_readers(server);
  send_answers(server);
  if (hb_ordering_has_work(server->core)) decide(server);
  read_conns(server);
}

static void plan_turn(struct hb_sim_server *server) {
  if (server->turn_planned || !server->core) return;
  server->turn_planned = true;
  hb_world_plan(server->world, hb_world_between(server->world, 1, 60), turn, server, server->life);
}

/* Rows of gaps are due from time to time, whether something comes or not. */
static void tick(void *context, uint64_t life) {
  struct hb_sim_server *server = context;
  if (life != server->life) return;
  if (!server->commit && !server->syncing) decide(server);
  hb_world_plan(server->world, IDLE_TICK_US, tick, server, life);
}

/* ---- its lives */

static void start(void *context, uint64_t life) {
  struct hb_sim_server *server = context;
  if (life != server->life || server->core) return;
  server->options.last_commit = server->written.last_commit;
  server->core = hb_ordering_create(&server->options);
  struct hb_err err;
  if (hb_fake_recover(&server->written, server->core, now_of(server), &err)) {
    hb_world_fail(server->world, "it does not start: %s", err.message);
  }
  hb_world_note(server->world, "the server is up, last commit %" PRIu64,
                server->written.last_commit);
  server->lives++;
  publish(server); /* what was found is made durable before the first answer */
  hb_world_plan(server->world, IDLE_TICK_US, tick, server, server->life);
  plan_turn(server);
}

static void check_bounds(const struct hb_sim_server *server) {
  const struct hb_sim_conn *const *conns =
      (const struct hb_sim_conn *const *)server->network->conns;
  assert_true(server->mailbox_max < MAILBOX_BYTES + 2000); /* I8: one batch over it at most */
  for (size_t i = 0; i < server->network->conns_count; i++) {
    assert_true(conns[i]->unread <= UNREAD_MAX + 1);
  }
}

static void die(struct hb_sim_server *server) {
  server->life++;
  for (size_t i = 0; i < server->network->conns_count; i++) {
    struct hb_sim_conn *conn = server->network->conns[i];
    hb_sim_close_by_server(conn);
    conn->inbox_count = 0;
  }
  check_bounds(server);
  for (size_t i = 0; i < server->requests_count; i++) {
    hb_test_batch_destroy(server->requests[i].batch);
  }
  hb_ordering_destroy(server->core);
  server->core = NULL;
  server->requests_count = server->mailbox_bytes = 0;
  server->syncing = server->sync_wanted = server->turn_planned = false;
  uint64_t us = hb_world_between(server->world, 1000, FREE_AGAIN_US);
  hb_world_plan(server->world, us, start, server, server->life);
}

static void drop_core(struct hb_sim_server *server) {
  server->commit = NULL;
  hb_ordering_fail(server->core);
  drop_readings(server);
  while (hb_ordering_take_answered(server->core)) continue;
}

void hb_sim_server_crash(struct hb_sim_server *server, bool power) {
  if (!server->core) return;
  bool lost = power && hb_world_chance(server->world, 50);
  bool whole = server->commit && hb_world_chance(server->world, 50);
  hb_world_note(server->world, "a crash%s%s", lost ? ", unsynced is lost" : "",
                whole && !lost ? ", the write is there" : "");
  server->power_losses += lost;
  if (lost) hb_fake_store_copy(&server->written, &server->durable);
  if (whole && !lost) hb_fake_apply(&server->written, server->commit);
  drop_core(server);
  die(server);
}

bool hb_sim_server_is_idle(const struct hb_sim_server *server) {
  return server->core && !server->commit && !server->syncing && !server->requests_count &&
         !server->out_count && !server->unsynced && !hb_ordering_has_work(server->core);
}

static struct hb_stream_config config_of(struct hb_world *world, int at) {
  static const int64_t FIRSTS[] = {0, -200, INT64_C(1) << 62, INT64_MIN, INT64_MAX - 5000};
  struct hb_stream_config config = hb_driver_config(FIRSTS[hb_world_below(world, 5)]);
  config.ack = at == 0 ? HB_ACK_DURABLE : HB_ACK_ASYNC;
  if (hb_world_chance(world, 50)) config.limits.ahead_max = hb_world_between(world, 30, 300);
  if (hb_world_chance(world, 50)) config.limits.held_events_max = hb_world_between(world, 20, 100);
  if (hb_world_chance(world, 50)) config.limits.gaps_max = hb_world_between(world, 3, 40);
  return config;
}

void hb_sim_server_init(struct hb_sim_server *server, struct hb_sim_network *network) {
  memset(server, 0, sizeof *server);
  server->world = network->world;
  server->network = network;
  network->server = (struct hb_sim_end){receive, server};
  struct hb_world *world = server->world;
  server->options =
      (struct hb_ordering_options){.limits = hb_limits_default(),
                                   .commit_bytes = hb_world_between(world, 500, 6000),
                                   .release_stream_bytes = hb_world_between(world, 300, 4000),
                                   .block_bytes = hb_world_between(world, 60, 900),
                                   .bundle_bytes = hb_world_between(world, 100, 2000),
                                   .fetch_ahead_bytes = hb_world_between(world, 300, 4000)};
  server->options.release_bytes = server->options.release_stream_bytes * 2;
  server->options.limits.held_memory_max = hb_world_between(world, 1000, 20000);
  for (int i = 0; i < HB_SIM_STREAMS; i++) {
    server->configs[i] = config_of(world, i);
    hb_fake_add_stream(&server->written, (uint64_t)i + 1, &server->configs[i]);
  }
  start(server, 0);
}

void hb_sim_server_done(struct hb_sim_server *server) {
  if (server->core) {
    drop_core(server);
    die(server);
  }
  hb_fake_store_done(&server->written);
  hb_fake_store_done(&server->durable);
  free(server->requests);
}
