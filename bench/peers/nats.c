/* Decides how NATS JetStream is used: one stream with file storage, asynchronous publishing with as
 * many unanswered as Holdback has events in flight, one ordered consumer.
 *
 * The server's default is to sync its files every two minutes, so an acknowledgement means less
 * than Holdback's; it is compared as it comes. The key travels in front of the payload: a subject
 * per key would only cost NATS time. Built without libnats, it says so. */
#include "bench/peers/peers.h"

#ifndef HB_HAVE_NATS

static bool refuse(struct hb_run *run) {
  hb_gate_fail(&run->gate, "nats: %s", hb_nats_missing());
  return false;
}

const char *hb_nats_missing(void) { return "built without libnats: see bench/install.sh"; }

const struct hb_system hb_system_nats = {.name = "nats", .start = refuse};

#else

#include <inttypes.h>
#include <nats/nats.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/slice.h"
#include "bench/load.h"
#include "bench/port.h"

enum { READY_MS = 20000, STOP_MS = 30000, WAIT_MS = 200, STALL_MS = 30000 };
static const char STREAM[] = "EVENTS";
static const char SUBJECT[] = "events";

static const char *const programs[] = {"/usr/sbin/nats-server", "/usr/bin/nats-server",
                                       "/usr/local/bin/nats-server", NULL};

const char *hb_nats_missing(void) {
  return hb_find_program(programs) ? NULL : "nats-server is not installed: see bench/install.sh";
}

struct connection {
  natsConnection *nats;
  jsCtx *stream;
};

static void disconnect(struct connection *connection) {
  jsCtx_Destroy(connection->stream);
  natsConnection_Destroy(connection->nats);
}

static natsStatus connect_to(const char *address, jsOptions *options,
                             struct connection *connection) {
  *connection = (struct connection){.nats = NULL};
  natsStatus status = natsConnection_ConnectTo(&connection->nats, address);
  if (status == NATS_OK) {
    status = natsConnection_JetStream(&connection->stream, connection->nats, options);
  }
  return status;
}

static bool make_stream(struct hb_run *run) {
  struct connection connection;
  const char *subjects[] = {SUBJECT};
  jsErrCode code = 0;
  jsStreamConfig config;
  (void)jsStreamConfig_Init(&config);
  config.Name = STREAM;
  config.Subjects = subjects;
  config.SubjectsLen = 1;
  config.Storage = js_FileStorage;
  natsStatus status = connect_to(run->address, NULL, &connection);
  if (status == NATS_OK) status = js_AddStream(NULL, connection.stream, &config, NULL, &code);
  if (status != NATS_OK) {
    hb_gate_fail(&run->gate, "nats: making the stream: %s", natsStatus_GetText(status));
  }
  disconnect(&connection);
  return status == NATS_OK;
}

static bool start(struct hb_run *run) {
  char port[8];
  (void)snprintf(port, sizeof port, "%" PRIu16, hb_free_port());
  (void)snprintf(run->address, sizeof run->address, "nats://127.0.0.1:%s", port);
  const char *arguments[] = {
      hb_find_program(programs), "-a", "127.0.0.1", "-p", port, "-js", "-sd", run->dir.path, NULL};
  run->child = hbt_child_start(arguments, NULL, 0);
  char line[256];
  return hbt_child_wait_line(run->child, HBT_ERR, "Server is ready", READY_MS, line, sizeof line) &&
         make_stream(run);
}

/* ---- the producer */

static void on_ack(jsCtx *js, natsMsg *message, jsPubAck *ack, jsPubAckErr *error, void *closure) {
  (void)js;
  struct hb_bench_thread *thread = closure;
  if (error) {
    hb_gate_fail(thread->setting->gate, "nats: publishing: %s", error->ErrText);
  } else if (ack && !ack->Duplicate) {
    thread->stored++;
  }
  natsMsg_Destroy(message);
}

static natsStatus publish_all(struct hb_bench_thread *thread, jsCtx *stream) {
  struct hb_load load;
  struct hb_buf bytes = {0};
  uint64_t index;
  int64_t sequence;
  natsStatus status = NATS_OK;
  hb_load_init(&load, thread->setting->options);
  for (uint64_t i = 0; status == NATS_OK && hb_bench_share(thread, i, &index, &sequence); i++) {
    struct holdback_event event;
    hb_load_make(&load, sequence, &event);
    bytes.size = 0;
    hb_buf_append(&bytes, event.key.data, event.key.size);
    hb_buf_append(&bytes, event.payload.data, event.payload.size);
    status = js_PublishAsync(stream, SUBJECT, bytes.data, (int)bytes.size, NULL);
  }
  jsPubOptions wait;
  (void)jsPubOptions_Init(&wait);
  wait.MaxWait = STALL_MS;
  if (status == NATS_OK) status = js_PublishAsyncComplete(stream, &wait);
  hb_buf_done(&bytes);
  hb_load_done(&load);
  return status;
}

static void *produce(void *context) {
  struct hb_bench_thread *thread = context;
  const struct hb_bench_setting *setting = thread->setting;
  jsOptions options;
  (void)jsOptions_Init(&options);
  options.PublishAsync.MaxPending =
      (int64_t)(setting->options->batch * setting->options->in_flight);
  options.PublishAsync.StallWait = STALL_MS;
  options.PublishAsync.AckHandler = on_ack;
  options.PublishAsync.AckHandlerClosure = thread;
  struct connection connection;
  natsStatus status = connect_to(setting->address, &options, &connection);
  if (status == NATS_OK && hb_gate_wait_ready(setting->gate, setting->options->subscribers)) {
    (void)hb_gate_first_send(setting->gate);
    status = publish_all(thread, connection.stream);
  }
  if (status == NATS_OK) {
    hb_gate_answered(setting->gate);
  } else {
    hb_gate_fail(setting->gate, "nats: %s", natsStatus_GetText(status));
  }
  disconnect(&connection);
  return NULL;
}

/* ---- the consumer */

static bool is_due(struct hb_load *load, uint64_t done, natsMsg *message) {
  struct holdback_event due;
  hb_load_make(load, (int64_t)done + 1, &due);
  const char *data = natsMsg_GetData(message);
  return (size_t)natsMsg_GetDataLength(message) == due.key.size + due.payload.size &&
         memcmp(data, due.key.data, due.key.size) == 0 &&
         memcmp(data + due.key.size, due.payload.data, due.payload.size) == 0;
}

static void read_all(struct hb_bench_thread *thread, natsSubscription *subscription) {
  const struct hb_bench_setting *setting = thread->setting;
  struct hb_load load;
  uint64_t done = 0;
  hb_load_init(&load, setting->options);
  hb_gate_ready(setting->gate);
  while (done < setting->read_to) {
    natsMsg *message = NULL;
    natsStatus status = natsSubscription_NextMsg(&message, subscription, WAIT_MS);
    if (status == NATS_TIMEOUT) {
      struct hb_counts counts = hb_gate_look(setting->gate);
      if (counts.failed || counts.stopped) break;
      continue;
    }
    bool good = status == NATS_OK && is_due(&load, done, message);
    natsMsg_Destroy(message);
    if (!good) {
      hb_gate_fail(setting->gate, "nats consumer: event %" PRIu64 ": %s", done + 1,
                   status == NATS_OK ? "not what was sent" : natsStatus_GetText(status));
      break;
    }
    done++;
    if (thread->first && done % 1000 == 0) hb_gate_received(setting->gate, done);
  }
  if (done == setting->read_to) hb_gate_finished(setting->gate);
  hb_load_done(&load);
}

static void *consume(void *context) {
  struct hb_bench_thread *thread = context;
  const struct hb_bench_setting *setting = thread->setting;
  struct connection connection;
  natsSubscription *subscription = NULL;
  jsErrCode code = 0;
  jsSubOptions options;
  (void)jsSubOptions_Init(&options);
  options.Ordered = true;
  natsStatus status = connect_to(setting->address, NULL, &connection);
  if (status == NATS_OK) {
    status = js_SubscribeSync(&subscription, connection.stream, SUBJECT, NULL, &options, &code);
  }
  if (status == NATS_OK) status = natsSubscription_SetPendingLimits(subscription, -1, -1);
  if (status == NATS_OK) {
    read_all(thread, subscription);
  } else {
    hb_gate_fail(setting->gate, "nats: subscribing: %s", natsStatus_GetText(status));
  }
  natsSubscription_Destroy(subscription);
  disconnect(&connection);
  return NULL;
}

static bool settle(struct hb_run *run) { return !hb_gate_look(&run->gate).failed; }

/* It ends with 1 after SIGTERM, which its documentation calls a shutdown in good order. */
static bool stop(struct hb_run *run) {
  int code = -1;
  hbt_child_signal(run->child, SIGTERM);
  return hbt_child_wait(run->child, STOP_MS, &code) && code >= 0 && code <= 1;
}

const struct hb_system hb_system_nats = {.name = "nats",
                                         .start = start,
                                         .produce = produce,
                                         .read = consume,
                                         .settle = settle,
                                         .stop = stop};

#endif
