/* Decides how a peer goes on: what it received is checked, then the next message is asked for or
 * sent. Everything happens on one thread, which ends when the queue is shut down and empty. */
#include "bench/raw.h"

#include <grpc/byte_buffer_reader.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/slice.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/frame/wire.h"
#include "bench/load.h"

enum { REQUEST_STREAM = 1, REQUEST_BATCH = 2, SUBSCRIBE_AT = 2, EARLIEST = 1 };
enum { BATCH_EVENTS = 1, EVENT_SEQUENCE = 1, EVENT_KEY = 2, EVENT_PAYLOAD = 5 };
enum { ANSWER_BATCH = 1, APPENDED_RESULT = 2, RESULT_STORED = 1 };

struct peer;
struct tag {
  struct peer *peer;
  void (*fire)(struct peer *peer, bool ok);
};

struct peer {
  struct hb_raw *raw;
  grpc_channel *channel;
  grpc_call *call;
  grpc_metadata_array metadata;
  grpc_metadata_array trailing;
  grpc_status_code status;
  grpc_slice details;
  grpc_byte_buffer *message;
  struct tag opened, sent, received, ended;
  uint64_t done; /* events received, or answers */
  bool ready;
};

struct hb_raw {
  const struct hb_bench_setting *setting;
  bool appends;
  uint64_t count;
  struct peer *peers; /* owned */
  grpc_completion_queue *queue;
  pthread_t thread;
  struct hb_load load;
  uint64_t sent; /* events, over all peers */
  uint64_t answered;
  uint64_t open; /* calls that have not ended */
  grpc_channel *lame;
  grpc_call *bell; /* an empty batch on it wakes the thread: it is to stop */
  struct tag bell_tag;
};

static void start_batch(struct peer *peer, const grpc_op *ops, size_t count, struct tag *tag) {
  grpc_call_error error = grpc_call_start_batch(peer->call, ops, count, tag, NULL);
  HB_ASSERT(error == GRPC_CALL_OK);
}

static void receive(struct peer *peer) {
  grpc_op op = {.op = GRPC_OP_RECV_MESSAGE, .data.recv_message.recv_message = &peer->message};
  start_batch(peer, &op, 1, &peer->received);
}

static void send_bytes(struct peer *peer, const struct hb_buf *bytes) {
  grpc_slice slice = grpc_slice_from_copied_buffer((const char *)bytes->data, bytes->size);
  grpc_byte_buffer *message = grpc_raw_byte_buffer_create(&slice, 1);
  grpc_op op = {.op = GRPC_OP_SEND_MESSAGE, .data.send_message.send_message = message};
  start_batch(peer, &op, 1, &peer->sent);
  grpc_byte_buffer_destroy(message);
  grpc_slice_unref(slice);
}

static void fail(struct peer *peer, const char *what) {
  hb_gate_fail(peer->raw->setting->gate, "peer %zu: %s", (size_t)(peer - peer->raw->peers), what);
}

/* The first length-delimited field with this number. */
static bool find(struct hb_slice bytes, uint32_t number, struct hb_wire_field *out) {
  struct hb_wire_reader reader = {bytes.data, bytes.data + bytes.size};
  while (hb_wire_next(&reader, out) == HB_WIRE_FIELD) {
    if (out->number == number) return true;
  }
  return false;
}

/* ---- appending */

static void send_next(struct peer *peer) {
  struct hb_raw *raw = peer->raw;
  if (raw->sent == raw->setting->options->events) return;
  struct holdback_event event;
  struct hb_buf frame = {0};
  struct hb_buf batch = {0};
  struct hb_buf request = {0};
  hb_load_make(&raw->load, (int64_t)++raw->sent, &event);
  hb_wire_append_varint(&frame, EVENT_SEQUENCE, (uint64_t)event.sequence);
  hb_wire_append_bytes(&frame, EVENT_KEY, hb_slice_of(event.key.data, event.key.size));
  hb_wire_append_bytes(&frame, EVENT_PAYLOAD, hb_slice_of(event.payload.data, event.payload.size));
  hb_wire_append_bytes(&batch, BATCH_EVENTS, hb_buf_view(&frame));
  if (peer->done == 0) {
    hb_wire_append_bytes(&request, REQUEST_STREAM, hb_slice_text(raw->setting->stream));
  }
  hb_wire_append_bytes(&request, REQUEST_BATCH, hb_buf_view(&batch));
  send_bytes(peer, &request);
  hb_buf_done(&request);
  hb_buf_done(&batch);
  hb_buf_done(&frame);
}

static bool take_answer(struct peer *peer, struct hb_slice bytes) {
  struct hb_raw *raw = peer->raw;
  struct hb_wire_field result;
  struct hb_wire_field stored;
  if (!find(bytes, APPENDED_RESULT, &result) || !find(result.bytes, RESULT_STORED, &stored) ||
      stored.number_value != 1) {
    fail(peer, "an event was not stored");
    return false;
  }
  peer->done++;
  if (++raw->answered == raw->setting->options->events) hb_gate_answered(raw->setting->gate);
  send_next(peer);
  return true;
}

/* ---- subscribing */

static void send_subscribe(struct peer *peer) {
  struct hb_buf request = {0};
  hb_wire_append_bytes(&request, REQUEST_STREAM, hb_slice_text(peer->raw->setting->stream));
  hb_wire_append_varint(&request, SUBSCRIBE_AT, EARLIEST);
  send_bytes(peer, &request);
  hb_buf_done(&request);
}

static bool take_events(struct peer *peer, struct hb_slice batch) {
  const struct hb_bench_setting *setting = peer->raw->setting;
  struct hb_wire_reader reader = {batch.data, batch.data + batch.size};
  struct hb_wire_field frame;
  struct hb_wire_field sequence;
  while (hb_wire_next(&reader, &frame) == HB_WIRE_FIELD) {
    if (frame.number != BATCH_EVENTS) continue;
    int64_t due = hb_bench_expected(setting, peer->done++);
    if (!find(frame.bytes, EVENT_SEQUENCE, &sequence) || (int64_t)sequence.number_value != due) {
      fail(peer, "another sequence came than was due");
      return false;
    }
  }
  if (peer->done == setting->read_to) hb_gate_finished(setting->gate);
  return true;
}

static bool take_message(struct peer *peer, struct hb_slice bytes) {
  struct hb_wire_field batch;
  if (!peer->ready) hb_gate_ready(peer->raw->setting->gate);
  peer->ready = true;
  return !find(bytes, ANSWER_BATCH, &batch) || take_events(peer, batch.bytes);
}

/* ---- any peer */

static void on_received(struct peer *peer, bool ok) {
  if (!ok || !peer->message) return;
  grpc_byte_buffer_reader reader;
  int made = grpc_byte_buffer_reader_init(&reader, peer->message);
  HB_ASSERT(made);
  grpc_slice all = grpc_byte_buffer_reader_readall(&reader);
  struct hb_slice bytes = hb_slice_of(GRPC_SLICE_START_PTR(all), GRPC_SLICE_LENGTH(all));
  bool good = peer->raw->appends ? take_answer(peer, bytes) : take_message(peer, bytes);
  grpc_slice_unref(all);
  grpc_byte_buffer_reader_destroy(&reader);
  grpc_byte_buffer_destroy(peer->message);
  peer->message = NULL;
  if (good) receive(peer);
}

static void on_opened(struct peer *peer, bool ok) {
  if (!ok) return;
  if (peer->raw->appends) {
    send_next(peer);
  } else {
    send_subscribe(peer);
  }
}

static void on_sent(struct peer *peer, bool ok) {
  (void)peer;
  (void)ok;
}

static void on_ended(struct peer *peer, bool ok) {
  (void)ok;
  if (peer->status != GRPC_STATUS_CANCELLED && !hb_gate_look(peer->raw->setting->gate).stopped) {
    fail(peer, "the call ended");
  }
  peer->raw->open--;
}

static void on_bell(struct peer *peer, bool ok) {
  (void)ok;
  struct hb_raw *raw = peer->raw;
  for (uint64_t i = 0; i < raw->count; i++) grpc_call_cancel(raw->peers[i].call, NULL);
}

static void *run(void *context) {
  struct hb_raw *raw = context;
  while (raw->open) {
    grpc_event event =
        grpc_completion_queue_next(raw->queue, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
    if (event.type != GRPC_OP_COMPLETE) continue;
    struct tag *tag = event.tag;
    tag->fire(tag->peer, event.success != 0);
  }
  return NULL;
}

/* ---- life */

static grpc_channel *open_channel(const char *address, int number) {
  grpc_arg args[] = {
      {.type = GRPC_ARG_INTEGER,
       .key = (char *)(uintptr_t)GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL,
       .value.integer = 1},
      {.type = GRPC_ARG_INTEGER, .key = (char *)(uintptr_t) "hb.peer", .value.integer = number},
      {.type = GRPC_ARG_INTEGER,
       .key = (char *)(uintptr_t)GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH,
       .value.integer = 64 << 20},
  };
  grpc_channel_args all = {.num_args = sizeof args / sizeof args[0], .args = args};
  grpc_channel_credentials *insecure = grpc_insecure_credentials_create();
  grpc_channel *channel = grpc_channel_create(address, insecure, &all);
  grpc_channel_credentials_release(insecure);
  return channel;
}

static void open_call(struct peer *peer, const char *method) {
  struct hb_raw *raw = peer->raw;
  grpc_slice path = grpc_slice_from_static_string(method);
  peer->call = grpc_channel_create_call(peer->channel, NULL, GRPC_PROPAGATE_DEFAULTS, raw->queue,
                                        path, NULL, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
  grpc_metadata_array_init(&peer->metadata);
  grpc_metadata_array_init(&peer->trailing);
  grpc_op status = {.op = GRPC_OP_RECV_STATUS_ON_CLIENT,
                    .data.recv_status_on_client = {.trailing_metadata = &peer->trailing,
                                                   .status = &peer->status,
                                                   .status_details = &peer->details}};
  start_batch(peer, &status, 1, &peer->ended);
  grpc_op open[2] = {{.op = GRPC_OP_SEND_INITIAL_METADATA},
                     {.op = GRPC_OP_RECV_INITIAL_METADATA,
                      .data.recv_initial_metadata.recv_initial_metadata = &peer->metadata}};
  start_batch(peer, open, 1, &peer->opened);
  start_batch(peer, open + 1, 1, &peer->sent);
  receive(peer);
}

static void create_bell(struct hb_raw *raw) {
  raw->lame = grpc_lame_client_channel_create("bell", GRPC_STATUS_UNAVAILABLE, "");
  raw->bell = grpc_channel_create_call(raw->lame, NULL, GRPC_PROPAGATE_DEFAULTS, raw->queue,
                                       grpc_slice_from_static_string("/bell"), NULL,
                                       gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
  raw->bell_tag = (struct tag){.peer = raw->peers, .fire = on_bell};
}

static struct hb_raw *create(const struct hb_bench_setting *setting, uint64_t count,
                             const char *method, bool appends) {
  struct hb_raw *raw = hb_calloc(1, sizeof *raw);
  grpc_init();
  *raw = (struct hb_raw){.setting = setting, .appends = appends, .count = count, .open = count};
  hb_load_init(&raw->load, setting->options);
  raw->queue = grpc_completion_queue_create_for_next(NULL);
  raw->peers = hb_calloc(count, sizeof *raw->peers);
  create_bell(raw);
  if (appends) (void)hb_gate_first_send(setting->gate);
  for (uint64_t i = 0; i < count; i++) {
    struct peer *peer = &raw->peers[i];
    peer->raw = raw;
    peer->opened = (struct tag){.peer = peer, .fire = on_opened};
    peer->sent = (struct tag){.peer = peer, .fire = on_sent};
    peer->received = (struct tag){.peer = peer, .fire = on_received};
    peer->ended = (struct tag){.peer = peer, .fire = on_ended};
    peer->channel = open_channel(setting->address, (int)i);
    open_call(peer, method);
  }
  int failed = pthread_create(&raw->thread, NULL, run, raw);
  HB_ASSERT(!failed);
  return raw;
}

struct hb_raw *hb_raw_subscribe(const struct hb_bench_setting *setting, uint64_t count) {
  return create(setting, count, "/holdback.v1.DeliveryService/Subscribe", false);
}

struct hb_raw *hb_raw_append(const struct hb_bench_setting *setting, uint64_t count) {
  return create(setting, count, "/holdback.v1.IngestService/AppendStream", true);
}

static void drain(struct hb_raw *raw) {
  grpc_completion_queue_shutdown(raw->queue);
  while (grpc_completion_queue_next(raw->queue, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL).type !=
         GRPC_QUEUE_SHUTDOWN) {
  }
  grpc_completion_queue_destroy(raw->queue);
}

void hb_raw_destroy(struct hb_raw *raw) {
  if (!raw) return;
  grpc_call_error error = grpc_call_start_batch(raw->bell, NULL, 0, &raw->bell_tag, NULL);
  HB_ASSERT(error == GRPC_CALL_OK);
  (void)pthread_join(raw->thread, NULL);
  grpc_call_unref(raw->bell);
  drain(raw);
  for (uint64_t i = 0; i < raw->count; i++) {
    struct peer *peer = &raw->peers[i];
    if (peer->message) grpc_byte_buffer_destroy(peer->message);
    grpc_slice_unref(peer->details);
    grpc_metadata_array_destroy(&peer->metadata);
    grpc_metadata_array_destroy(&peer->trailing);
    grpc_call_unref(peer->call);
    grpc_channel_destroy(peer->channel);
  }
  grpc_channel_destroy(raw->lame);
  hb_load_done(&raw->load);
  free(raw->peers);
  free(raw);
  grpc_shutdown_blocking();
}
