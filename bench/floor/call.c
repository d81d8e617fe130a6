/* Decides what a call of each of the three methods does.
 *
 *   AppendStream: every message is a job; its answer goes when the job is written, in order.
 *   Subscribe: a cursor over what was relayed; one answer in flight, up to 256 KiB of entries.
 *   anything else: an empty answer (the clients ping with GetServer).
 *
 * Calls live until the process ends: it serves one measurement. */
#include <grpc/byte_buffer_reader.h>
#include <grpc/slice.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/frame/wire.h"
#include "base/handoff.h"
#include "bench/floor/floor.h"

enum { ANSWER_BYTES = 256 << 10, ANSWER_ENTRIES = 64 };
enum { REQUEST_BATCH = 2, EVENT_SEQUENCE = 1 };
enum { RESPONSE_ORDINAL = 1, RESPONSE_RESULT = 2, RESULT_STORED = 1, RESULT_RUNS = 2 };
enum { RUN_COUNT = 2, RUN_SEQUENCE = 3, RUN_OUTCOME = 4, STORED = 1 };
enum { ANSWER_BATCH = 1, ANSWER_PROGRESS = 2, BATCH_FIRST = 2, BATCH_NEXT = 4 };

struct hb_floor_call {
  struct hb_floor_pump *pump;
  grpc_call *call;
  grpc_call_details details;
  grpc_metadata_array metadata;
  struct hb_floor_tag accepted, opened, received, sent, ended;
  int cancelled;
  grpc_byte_buffer *message;
  bool sending, over;
  /* AppendStream: answers that wait for the one in flight */
  struct hb_node *answers;
  struct hb_node **answers_end;
  uint64_t ordinal;
  /* Subscribe */
  bool subscribed;
  size_t next;                /* entry */
  struct hb_floor_call *idle; /* the next one in pump->readers */
  bool is_idle;
};

#define CALL_OF(tag, member) \
  ((struct hb_floor_call *)(void *)((char *)(tag)-offsetof(struct hb_floor_call, member)))

static bool is_method(const struct hb_floor_call *call, const char *name) {
  return grpc_slice_str_cmp(call->details.method, name) == 0;
}

static void send(struct hb_floor_call *call, grpc_byte_buffer *message) {
  grpc_op op = {.op = GRPC_OP_SEND_MESSAGE, .data.send_message.send_message = message};
  call->sending = true;
  hb_floor_batch(call->call, &op, 1, &call->sent);
  grpc_byte_buffer_destroy(message);
}

static void send_bytes(struct hb_floor_call *call, const struct hb_buf *bytes) {
  grpc_slice slice = grpc_slice_from_copied_buffer((const char *)bytes->data, bytes->size);
  grpc_byte_buffer *message = grpc_raw_byte_buffer_create(&slice, 1);
  grpc_slice_unref(slice);
  send(call, message);
}

static void receive(struct hb_floor_call *call) {
  grpc_op op = {.op = GRPC_OP_RECV_MESSAGE, .data.recv_message.recv_message = &call->message};
  hb_floor_batch(call->call, &op, 1, &call->received);
}

/* ---- AppendStream */

static void release_slice(void *context) {
  grpc_slice *slice = context;
  grpc_slice_unref(*slice);
  free(slice);
}

/* The frames of the batch within the message, which stays where gRPC put it. */
static struct hb_bytes *frames_of(grpc_byte_buffer *message) {
  grpc_byte_buffer_reader reader;
  int made = grpc_byte_buffer_reader_init(&reader, message);
  HB_ASSERT(made);
  grpc_slice *all = hb_alloc(sizeof *all);
  *all = grpc_byte_buffer_reader_readall(&reader);
  grpc_byte_buffer_reader_destroy(&reader);
  grpc_byte_buffer_destroy(message);
  struct hb_wire_reader fields = {GRPC_SLICE_START_PTR(*all), GRPC_SLICE_END_PTR(*all)};
  struct hb_wire_field field;
  while (hb_wire_next(&fields, &field) == HB_WIRE_FIELD) {
    if (field.number != REQUEST_BATCH || field.type != HB_WIRE_LEN) continue;
    return hb_bytes_wrap(field.bytes.data, field.bytes.size, release_slice, all);
  }
  return hb_bytes_wrap(NULL, 0, release_slice, all);
}

static int64_t sequence_of(struct hb_slice event) {
  struct hb_wire_reader fields = {event.data, event.data + event.size};
  struct hb_wire_field field;
  while (hb_wire_next(&fields, &field) == HB_WIRE_FIELD) {
    if (field.number == EVENT_SEQUENCE) return (int64_t)field.number_value;
  }
  return 0;
}

static struct hb_floor_job *make_job(struct hb_floor_call *call) {
  struct hb_floor_job *job = hb_calloc(1, sizeof *job);
  job->call = call;
  job->frames = frames_of(call->message);
  call->message = NULL;
  struct hb_wire_reader frames = {job->frames->data, job->frames->data + job->frames->size};
  struct hb_wire_field field;
  while (hb_wire_next(&frames, &field) == HB_WIRE_FIELD) {
    if (job->count++ == 0) job->first_sequence = sequence_of(field.bytes);
  }
  return job;
}

static void send_answer(struct hb_floor_call *call) {
  struct hb_floor_job *job = (struct hb_floor_job *)call->answers;
  call->answers = job->node.next;
  if (!call->answers) call->answers_end = &call->answers;
  struct hb_buf run = {0};
  struct hb_buf result = {0};
  struct hb_buf response = {0};
  hb_wire_append_varint(&run, RUN_COUNT, job->count);
  hb_wire_append_varint(&run, RUN_SEQUENCE, (uint64_t)job->first_sequence);
  hb_wire_append_varint(&run, RUN_OUTCOME, STORED);
  hb_wire_append_varint(&result, RESULT_STORED, job->count);
  hb_wire_append_bytes(&result, RESULT_RUNS, hb_buf_view(&run));
  hb_wire_append_varint(&response, RESPONSE_ORDINAL, call->ordinal++);
  hb_wire_append_bytes(&response, RESPONSE_RESULT, hb_buf_view(&result));
  send_bytes(call, &response);
  hb_buf_done(&response);
  hb_buf_done(&result);
  hb_buf_done(&run);
  free(job);
}

/* The writer's thread. */
void hb_floor_job_written(struct hb_floor_job *job) {
  hb_mailbox_post(job->call->pump->written, &job->node);
}

void hb_floor_job_answer(struct hb_floor_job *job) {
  struct hb_floor_call *call = job->call;
  job->node.next = NULL;
  *call->answers_end = &job->node;
  call->answers_end = &job->node.next;
  if (!call->sending && !call->over) send_answer(call);
}

/* ---- Subscribe */

static void release_frames(void *frames) {
  hb_handoff_take(frames);
  hb_bytes_unref(frames);
}

static grpc_slice slice_of(struct hb_bytes *frames) {
  hb_handoff_give(frames);
  return grpc_slice_new_with_user_data((void *)(uintptr_t)frames->data, frames->size,
                                       release_frames, frames);
}

static void send_entries(struct hb_floor_call *call, const struct hb_floor_entry *entries,
                         size_t count, size_t bytes) {
  const struct hb_floor_entry *last = &entries[count - 1];
  struct hb_buf tail = {0};
  struct hb_buf head = {0};
  hb_wire_append_varint(&tail, BATCH_FIRST, (uint64_t)entries[0].position);
  hb_wire_append_varint(&tail, BATCH_NEXT, (uint64_t)(last->position + last->count));
  uint8_t *at = hb_buf_reserve(&head, 1 + HB_VARINT_MAX);
  *at = ANSWER_BATCH << 3 | HB_WIRE_LEN;
  head.size += 1 + hb_wire_put_varint(at + 1, bytes + tail.size);
  grpc_slice slices[ANSWER_ENTRIES + 2];
  slices[0] = grpc_slice_from_copied_buffer((const char *)head.data, head.size);
  for (size_t i = 0; i < count; i++) slices[i + 1] = slice_of(entries[i].frames);
  slices[count + 1] = grpc_slice_from_copied_buffer((const char *)tail.data, tail.size);
  grpc_byte_buffer *message = grpc_raw_byte_buffer_create(slices, count + 2);
  for (size_t i = 0; i < count + 2; i++) grpc_slice_unref(slices[i]);
  hb_buf_done(&head);
  hb_buf_done(&tail);
  send(call, message);
}

static void relay(struct hb_floor_call *call) {
  struct hb_floor_entry entries[ANSWER_ENTRIES];
  size_t found = hb_floor_take(call->pump->floor, call->next, entries, ANSWER_ENTRIES);
  size_t taken = 0;
  size_t bytes = 0;
  while (taken < found && (taken == 0 || bytes + entries[taken].frames->size <= ANSWER_BYTES)) {
    bytes += entries[taken++].frames->size;
  }
  for (size_t i = taken; i < found; i++) hb_bytes_unref(entries[i].frames);
  if (taken) {
    call->next += taken;
    send_entries(call, entries, taken, bytes);
    return;
  }
  call->is_idle = true;
  call->idle = call->pump->readers;
  call->pump->readers = call;
}

void hb_floor_go_on(struct hb_floor_pump *pump) {
  struct hb_floor_call *call = pump->readers;
  pump->readers = NULL;
  while (call) {
    struct hb_floor_call *next = call->idle;
    call->is_idle = false;
    if (!call->over) relay(call);
    call = next;
  }
}

/* An empty Progress tells the client that it is connected. */
static void begin_relay(struct hb_floor_call *call) {
  struct hb_buf progress = {0};
  call->subscribed = true;
  hb_wire_append_bytes(&progress, ANSWER_PROGRESS, hb_slice_of(NULL, 0));
  send_bytes(call, &progress);
  hb_buf_done(&progress);
}

/* ---- any call */

static void answer_unary(struct hb_floor_call *call) {
  grpc_slice nothing = grpc_empty_slice();
  grpc_byte_buffer *message = grpc_raw_byte_buffer_create(&nothing, 1);
  grpc_op ops[2] = {
      {.op = GRPC_OP_SEND_MESSAGE, .data.send_message.send_message = message},
      {.op = GRPC_OP_SEND_STATUS_FROM_SERVER,
       .data.send_status_from_server = {.status = GRPC_STATUS_OK}},
  };
  call->sending = true;
  call->over = true;
  hb_floor_batch(call->call, ops, 2, &call->sent);
  grpc_byte_buffer_destroy(message);
}

static void end(struct hb_floor_call *call) {
  if (call->over) return;
  call->over = true;
  grpc_op op = {.op = GRPC_OP_SEND_STATUS_FROM_SERVER,
                .data.send_status_from_server = {.status = GRPC_STATUS_OK}};
  hb_floor_batch(call->call, &op, 1, &call->opened);
}

static void on_received(struct hb_floor_tag *tag, bool ok) {
  struct hb_floor_call *call = CALL_OF(tag, received);
  if (!ok || !call->message) {
    if (is_method(call, "/holdback.v1.IngestService/AppendStream")) end(call);
    return;
  }
  if (is_method(call, "/holdback.v1.IngestService/AppendStream")) {
    hb_floor_submit(call->pump->floor, make_job(call));
    receive(call);
    return;
  }
  grpc_byte_buffer_destroy(call->message);
  call->message = NULL;
  if (is_method(call, "/holdback.v1.DeliveryService/Subscribe")) {
    begin_relay(call);
  } else {
    answer_unary(call);
  }
}

static void on_sent(struct hb_floor_tag *tag, bool ok) {
  struct hb_floor_call *call = CALL_OF(tag, sent);
  call->sending = false;
  if (!ok || call->over) {
    call->over = true;
  } else if (call->subscribed) {
    relay(call);
  } else if (call->answers) {
    send_answer(call);
  }
}

static void on_opened(struct hb_floor_tag *tag, bool ok) {
  (void)tag;
  (void)ok;
}

static void on_ended(struct hb_floor_tag *tag, bool ok) {
  (void)ok;
  CALL_OF(tag, ended)->over = true;
}

static void open_call(struct hb_floor_call *call) {
  grpc_op close = {.op = GRPC_OP_RECV_CLOSE_ON_SERVER,
                   .data.recv_close_on_server.cancelled = &call->cancelled};
  hb_floor_batch(call->call, &close, 1, &call->ended);
  grpc_op metadata = {.op = GRPC_OP_SEND_INITIAL_METADATA};
  hb_floor_batch(call->call, &metadata, 1, &call->opened);
  receive(call);
}

static void on_accepted(struct hb_floor_tag *tag, bool ok) {
  struct hb_floor_call *call = CALL_OF(tag, accepted);
  if (!ok) return;
  hb_floor_accept(call->pump);
  open_call(call);
}

void hb_floor_accept(struct hb_floor_pump *pump) {
  struct hb_floor_call *call = hb_calloc(1, sizeof *call);
  call->pump = pump;
  call->answers_end = &call->answers;
  call->accepted.fire = on_accepted;
  call->opened.fire = on_opened;
  call->received.fire = on_received;
  call->sent.fire = on_sent;
  call->ended.fire = on_ended;
  grpc_call_details_init(&call->details);
  grpc_metadata_array_init(&call->metadata);
  grpc_call_error error =
      grpc_server_request_call(pump->floor->server, &call->call, &call->details, &call->metadata,
                               pump->queue, pump->queue, &call->accepted);
  HB_ASSERT(error == GRPC_CALL_OK);
}
