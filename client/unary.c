/* Decides how long a call with one answer may take, and what its failure is called.
 *
 * Before anything ever came from the server, a connection that is refused fails the call at once:
 * the address is wrong or nobody listens. Afterwards the server is known to exist, and a call made
 * while it restarts waits for it, up to connect_timeout_ms. */
#include "client/unary.h"

#include <grpc/support/time.h>

#include "base/assert.h"
#include "client/bytebuf.h"
#include "client/error.h"
#include "client/status.h"

#define OWNER(tag_) ((struct hbc_unary *)(void *)((char *)(tag_)-offsetof(struct hbc_unary, tag)))

/* Time ran out without a connection: that is what the caller wants to hear. */
static void name_timeout(struct hbc_unary *unary, struct holdback_error *error) {
  if (error->status != HOLDBACK_DEADLINE_EXCEEDED || hbc_client_is_connected(unary->client)) return;
  (void)hbc_error_set(error, HOLDBACK_UNAVAILABLE, NULL, "%s: no connection within %u ms",
                      unary->client->server, (unsigned)unary->client->timeout_ms);
}

static void on_done(struct hbc_tag *tag, bool ok) {
  (void)ok;
  struct hbc_unary *unary = OWNER(tag);
  struct holdback_error error;
  hbc_status_read(unary->code, &unary->text, &unary->trailing, unary->client->server, &error);
  name_timeout(unary, &error);
  grpc_byte_buffer *answer = unary->answer;
  if (!error.status && !answer)
    (void)hbc_error_set(&error, HOLDBACK_INTERNAL, NULL, "%s: answered without a message",
                        unary->client->server);
  if (!error.status) atomic_store(&unary->client->was_connected, true);
  grpc_call_unref(unary->call);
  unary->call = NULL;
  grpc_metadata_array_destroy(&unary->initial);
  grpc_metadata_array_destroy(&unary->trailing);
  grpc_slice_unref(unary->text);
  unary->done(unary, error.status ? NULL : answer, &error); /* may free `unary` */
  if (answer) grpc_byte_buffer_destroy(answer);
}

static void start_ops(struct hbc_unary *unary) {
  uint32_t flags = atomic_load(&unary->client->was_connected)
                       ? GRPC_INITIAL_METADATA_WAIT_FOR_READY |
                             GRPC_INITIAL_METADATA_WAIT_FOR_READY_EXPLICITLY_SET
                       : 0;
  grpc_op ops[6] = {{.op = GRPC_OP_SEND_INITIAL_METADATA, .flags = flags},
                    {.op = GRPC_OP_SEND_MESSAGE},
                    {.op = GRPC_OP_SEND_CLOSE_FROM_CLIENT},
                    {.op = GRPC_OP_RECV_INITIAL_METADATA},
                    {.op = GRPC_OP_RECV_MESSAGE},
                    {.op = GRPC_OP_RECV_STATUS_ON_CLIENT}};
  ops[1].data.send_message.send_message = unary->request;
  ops[3].data.recv_initial_metadata.recv_initial_metadata = &unary->initial;
  ops[4].data.recv_message.recv_message = &unary->answer;
  ops[5].data.recv_status_on_client.trailing_metadata = &unary->trailing;
  ops[5].data.recv_status_on_client.status = &unary->code;
  ops[5].data.recv_status_on_client.status_details = &unary->text;
  grpc_call_error started = grpc_call_start_batch(unary->call, ops, 6, &unary->tag, NULL);
  HB_ASSERT(started == GRPC_CALL_OK);
}

void hbc_unary_start(struct hbc_unary *unary) {
  struct holdback_client *client = unary->client;
  unary->tag.done = on_done;
  unary->answer = NULL;
  unary->text = grpc_empty_slice();
  grpc_metadata_array_init(&unary->initial);
  grpc_metadata_array_init(&unary->trailing);
  grpc_slice path = grpc_slice_from_static_string(unary->method);
  gpr_timespec deadline = gpr_inf_future(GPR_CLOCK_MONOTONIC);
  if (!unary->patient)
    deadline = gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                            gpr_time_from_millis(client->timeout_ms, GPR_TIMESPAN));
  unary->call = grpc_channel_create_call(client->channel, NULL, GRPC_PROPAGATE_DEFAULTS,
                                         client->queue, path, NULL, deadline, NULL);
  start_ops(unary);
  grpc_byte_buffer_destroy(unary->request);
  unary->request = NULL;
}

void hbc_unary_cancel(struct hbc_unary *unary) {
  if (unary->call) (void)grpc_call_cancel(unary->call, NULL);
}

/* ---- waiting for one */

struct wait {
  struct hbc_unary unary;
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  bool done;
  grpc_slice answer;
  struct holdback_error error;
};

static void start_task(struct hbc_task *task) { hbc_unary_start((struct hbc_unary *)task); }

static void on_answer(struct hbc_unary *unary, grpc_byte_buffer *answer,
                      const struct holdback_error *error) {
  struct wait *wait = (struct wait *)unary;
  pthread_mutex_lock(&wait->mutex);
  wait->error = *error;
  if (answer) wait->answer = hbc_bytebuf_flatten(answer);
  wait->done = true;
  pthread_cond_signal(&wait->changed);
  pthread_mutex_unlock(&wait->mutex);
}

static int call_bytes(struct holdback_client *client, const char *method,
                      const ProtobufCMessage *request, bool patient, grpc_slice *out,
                      struct holdback_error *error) {
  struct wait wait = {.unary = {.task = {.run = start_task},
                                .client = client,
                                .method = method,
                                .request = hbc_bytebuf_pack(request),
                                .patient = patient,
                                .done = on_answer}};
  pthread_mutex_init(&wait.mutex, NULL);
  pthread_cond_init(&wait.changed, NULL);
  hbc_client_post(client, &wait.unary.task);
  pthread_mutex_lock(&wait.mutex);
  while (!wait.done) pthread_cond_wait(&wait.changed, &wait.mutex);
  pthread_mutex_unlock(&wait.mutex);
  pthread_cond_destroy(&wait.changed);
  pthread_mutex_destroy(&wait.mutex);
  if (wait.error.status) return hbc_error_copy(error, &wait.error);
  *out = wait.answer;
  return HOLDBACK_OK;
}

int hbc_unary_call_bytes(struct holdback_client *client, const char *method,
                         const ProtobufCMessage *request, grpc_slice *out,
                         struct holdback_error *error) {
  return call_bytes(client, method, request, false, out, error);
}

static int call(struct holdback_client *client, const char *method, const ProtobufCMessage *request,
                const ProtobufCMessageDescriptor *type, bool patient, ProtobufCMessage **out,
                struct holdback_error *error) {
  grpc_slice bytes;
  int status = call_bytes(client, method, request, patient, &bytes, error);
  if (status) return status;
  ProtobufCMessage *answer =
      protobuf_c_message_unpack(type, NULL, GRPC_SLICE_LENGTH(bytes), GRPC_SLICE_START_PTR(bytes));
  grpc_slice_unref(bytes);
  if (!answer)
    return hbc_error_set(error, HOLDBACK_INTERNAL, NULL, "%s: %s: the answer is malformed",
                         client->server, method);
  *out = answer;
  return HOLDBACK_OK;
}

int hbc_unary_call(struct holdback_client *client, const char *method,
                   const ProtobufCMessage *request, const ProtobufCMessageDescriptor *type,
                   ProtobufCMessage **out, struct holdback_error *error) {
  return call(client, method, request, type, false, out, error);
}

int hbc_unary_call_patiently(struct holdback_client *client, const char *method,
                             const ProtobufCMessage *request,
                             const ProtobufCMessageDescriptor *type, ProtobufCMessage **out,
                             struct holdback_error *error) {
  return call(client, method, request, type, true, out, error);
}
