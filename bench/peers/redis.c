/* Decides how Redis Streams are used: XADD in pipelines as large as Holdback's batches, as many of
 * them unanswered; one consumer with blocking XREAD.
 *
 * The append-only file is the only persistence (--save ""), and it is not rewritten meanwhile,
 * which would only cost Redis time. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/load.h"
#include "bench/peers/peers.h"
#include "bench/peers/resp.h"
#include "bench/port.h"

enum { READY_MS = 20000, STOP_MS = 30000 };
static const char KEY[] = "events";
static const char READ_COUNT[] = "1000";
static const char BLOCK_MS[] = "200";

const char *hb_find_program(const char *const *paths) {
  for (size_t i = 0; paths[i]; i++) {
    if (access(paths[i], X_OK) == 0) return paths[i];
  }
  return NULL;
}

static const char *const programs[] = {"/usr/bin/redis-server", "/usr/local/bin/redis-server",
                                       NULL};

const char *hb_redis_missing(void) {
  return hb_find_program(programs) ? NULL : "redis-server is not installed: see bench/install.sh";
}

static bool start(struct hb_run *run, const char *fsync) {
  char port[8];
  (void)snprintf(port, sizeof port, "%" PRIu16, hb_free_port());
  (void)snprintf(run->address, sizeof run->address, "%s", port);
  const char *arguments[] = {hb_find_program(programs),
                             "--port",
                             port,
                             "--bind",
                             "127.0.0.1",
                             "--dir",
                             run->dir.path,
                             "--save",
                             "",
                             "--appendonly",
                             "yes",
                             "--appendfsync",
                             fsync,
                             "--auto-aof-rewrite-percentage",
                             "0",
                             NULL};
  run->child = hbt_child_start(arguments, NULL, 0);
  char line[256];
  return hbt_child_wait_line(run->child, HBT_OUT, "Ready to accept connections", READY_MS, line,
                             sizeof line);
}

static bool start_always(struct hb_run *run) { return start(run, "always"); }
static bool start_everysec(struct hb_run *run) { return start(run, "everysec"); }

static bool connect_to(const struct hb_bench_setting *setting, struct hb_resp *resp) {
  uint16_t port = (uint16_t)strtoul(setting->address, NULL, 10);
  if (hb_resp_connect(resp, port)) return true;
  hb_gate_fail(setting->gate, "redis: %s", resp->problem);
  return false;
}

/* ---- the producer */

static void put_event(struct hb_buf *out, const struct holdback_event *event) {
  hb_resp_put_array(out, 7);
  hb_resp_put(out, "XADD", 4);
  hb_resp_put(out, KEY, sizeof KEY - 1);
  hb_resp_put(out, "*", 1);
  hb_resp_put(out, "k", 1);
  hb_resp_put(out, event->key.data, event->key.size);
  hb_resp_put(out, "p", 1);
  hb_resp_put(out, event->payload.data, event->payload.size);
}

struct sender {
  struct hb_bench_thread *thread;
  struct hb_resp resp;
  struct hb_load load;
  struct hb_buf out;
  uint64_t sent; /* of the producer's share */
};

/* *out_more false: there was nothing left to send. */
static bool send_batch(struct sender *sender, bool *out_more) {
  uint64_t index;
  int64_t sequence;
  uint64_t batch = sender->thread->setting->options->batch;
  sender->out.size = 0;
  uint64_t count = 0;
  for (; count < batch; count++) {
    if (!hb_bench_share(sender->thread, sender->sent, &index, &sequence)) break;
    struct holdback_event event;
    hb_load_make(&sender->load, sequence, &event);
    put_event(&sender->out, &event);
    sender->sent++;
  }
  *out_more = count > 0;
  return hb_resp_send(&sender->resp, &sender->out);
}

static bool take_answers(struct sender *sender) {
  uint64_t batch = sender->thread->setting->options->batch;
  uint64_t left = sender->sent - sender->thread->stored;
  for (uint64_t i = 0; i < batch && i < left; i++) {
    if (!hb_resp_skip(&sender->resp)) return false;
    sender->thread->stored++;
  }
  return true;
}

static bool send_all(struct sender *sender) {
  uint64_t batch = sender->thread->setting->options->batch;
  uint64_t window = batch * sender->thread->setting->options->in_flight;
  bool more = true;
  while (more || sender->sent > sender->thread->stored) {
    while (more && sender->sent - sender->thread->stored + batch <= window) {
      if (!send_batch(sender, &more)) return false;
    }
    if (!take_answers(sender)) return false;
  }
  return true;
}

static void *produce(void *context) {
  struct hb_bench_thread *thread = context;
  struct hb_gate *gate = thread->setting->gate;
  struct sender sender = {.thread = thread};
  if (!connect_to(thread->setting, &sender.resp)) return NULL;
  hb_load_init(&sender.load, thread->setting->options);
  if (hb_gate_wait_ready(gate, thread->setting->options->subscribers)) {
    (void)hb_gate_first_send(gate);
    if (send_all(&sender)) {
      hb_gate_answered(gate);
    } else {
      hb_gate_fail(gate, "redis: %s", sender.resp.problem);
    }
  }
  hb_buf_done(&sender.out);
  hb_load_done(&sender.load);
  hb_resp_done(&sender.resp);
  return NULL;
}

/* ---- the consumer */

struct reader {
  struct hb_bench_thread *thread;
  struct hb_resp resp;
  struct hb_load load;
  char last[48]; /* id of the last entry */
  uint64_t done;
};

static bool ask(struct reader *reader) {
  struct hb_buf out = {0};
  hb_resp_put_array(&out, 8);
  hb_resp_put(&out, "XREAD", 5);
  hb_resp_put(&out, "COUNT", 5);
  hb_resp_put(&out, READ_COUNT, sizeof READ_COUNT - 1);
  hb_resp_put(&out, "BLOCK", 5);
  hb_resp_put(&out, BLOCK_MS, sizeof BLOCK_MS - 1);
  hb_resp_put(&out, "STREAMS", 7);
  hb_resp_put(&out, KEY, sizeof KEY - 1);
  hb_resp_put(&out, reader->last, strlen(reader->last));
  bool good = hb_resp_send(&reader->resp, &out);
  hb_buf_done(&out);
  return good;
}

/* One entry: its id, then "k", key, "p", payload, compared as they come. */
static bool take_entry(struct reader *reader) {
  struct hb_resp *resp = &reader->resp;
  int64_t count;
  struct hb_slice text;
  if (!hb_resp_array(resp, &count) || !hb_resp_string(resp, &text)) return false;
  if (text.size >= sizeof reader->last) return false;
  memcpy(reader->last, text.data, text.size);
  reader->last[text.size] = 0;
  struct holdback_event due;
  hb_load_make(&reader->load, (int64_t)reader->done + 1, &due);
  const struct holdback_bytes fields[] = {{"k", 1}, due.key, {"p", 1}, due.payload};
  if (!hb_resp_array(resp, &count) || count != 4) return false;
  for (size_t i = 0; i < 4; i++) {
    if (!hb_resp_string(resp, &text)) return false;
    if (text.size == fields[i].size && memcmp(text.data, fields[i].data, text.size) == 0) continue;
    (void)snprintf(resp->problem, sizeof resp->problem, "event %" PRIu64 ": not what was sent",
                   reader->done + 1);
    return false;
  }
  reader->done++;
  return true;
}

/* All that one XREAD brings: nil when nothing came in time. */
static bool take_entries(struct reader *reader) {
  int64_t streams;
  int64_t pair;
  int64_t entries;
  struct hb_slice name;
  if (!ask(reader) || !hb_resp_array(&reader->resp, &streams)) return false;
  if (streams < 0) return true;
  if (!hb_resp_array(&reader->resp, &pair) || !hb_resp_string(&reader->resp, &name) ||
      !hb_resp_array(&reader->resp, &entries)) {
    return false;
  }
  for (int64_t i = 0; i < entries; i++) {
    if (!take_entry(reader)) return false;
  }
  return true;
}

static void read_all(struct reader *reader) {
  const struct hb_bench_setting *setting = reader->thread->setting;
  hb_gate_ready(setting->gate);
  while (reader->done < setting->read_to) {
    if (!take_entries(reader)) {
      hb_gate_fail(setting->gate, "redis consumer: %s", reader->resp.problem);
      return;
    }
    if (reader->thread->first) hb_gate_received(setting->gate, reader->done);
    struct hb_counts counts = hb_gate_look(setting->gate);
    if (counts.failed || counts.stopped) return;
  }
  hb_gate_finished(setting->gate);
}

static void *consume(void *context) {
  struct hb_bench_thread *thread = context;
  struct reader reader = {.thread = thread, .last = "0-0"};
  if (!connect_to(thread->setting, &reader.resp)) return NULL;
  hb_load_init(&reader.load, thread->setting->options);
  read_all(&reader);
  hb_load_done(&reader.load);
  hb_resp_done(&reader.resp);
  return NULL;
}

static bool settle(struct hb_run *run) { return !hb_gate_look(&run->gate).failed; }

static bool stop(struct hb_run *run) {
  int code = -1;
  hbt_child_signal(run->child, SIGTERM);
  return hbt_child_wait(run->child, STOP_MS, &code) && code == 0;
}

const struct hb_system hb_system_redis_always = {.name = "redis-always",
                                                 .start = start_always,
                                                 .produce = produce,
                                                 .read = consume,
                                                 .settle = settle,
                                                 .stop = stop,
                                                 .counts_syncs = true};

const struct hb_system hb_system_redis_everysec = {.name = "redis-everysec",
                                                   .start = start_everysec,
                                                   .produce = produce,
                                                   .read = consume,
                                                   .settle = settle,
                                                   .stop = stop,
                                                   .counts_syncs = true};
