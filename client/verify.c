/* Decides how the answers of a verification come to its caller: one at a time, the next one is read
 * when the caller has taken this one, so that the server goes no faster than it is listened to. */
#include <pthread.h>

#include "client/bytebuf.h"
#include "client/call.h"
#include "client/error.h"
#include "holdback/v1/server.pb-c.h"

#define OWNER(part, member) \
  ((struct verifying *)(void *)((char *)(part)-offsetof(struct verifying, member)))

struct verifying {
  struct holdback_client *client;
  const struct holdback_verify_options *options;
  /* client's thread only */
  struct hbc_call call;
  struct hbc_task open;
  struct hbc_task go_on;
  struct hbc_task stop;
  struct hbc_task last;

  pthread_mutex_t mutex;
  pthread_cond_t changed;
  /* protected by mutex */
  grpc_byte_buffer *answer; /* owned; NULL = none yet */
  bool ended;
  bool gone; /* nothing of this is in the client's hands any more */
  struct holdback_error error;
};

/* ---- the client's thread */

static void on_sent(struct hbc_call *call) { hbc_call_send_end(call); }

static void on_answer(struct hbc_call *call, grpc_byte_buffer *owned) {
  struct verifying *self = OWNER(call, call);
  pthread_mutex_lock(&self->mutex);
  self->answer = owned;
  pthread_cond_signal(&self->changed);
  pthread_mutex_unlock(&self->mutex);
}

static void on_ended(struct hbc_call *call, const struct holdback_error *error) {
  struct verifying *self = OWNER(call, call);
  pthread_mutex_lock(&self->mutex);
  self->ended = true;
  self->error = *error;
  pthread_cond_signal(&self->changed);
  pthread_mutex_unlock(&self->mutex);
}

static const struct hbc_call_handler handler = {
    .sent = on_sent, .message = on_answer, .ended = on_ended};

static void run_open(struct hbc_task *task) {
  struct verifying *self = OWNER(task, open);
  Holdback__V1__VerifyStoreRequest request = HOLDBACK__V1__VERIFY_STORE_REQUEST__INIT;
  if (self->options->stream) request.stream = (char *)(uintptr_t)self->options->stream;
  hbc_call_start(&self->call, self->client, "/holdback.v1.ServerService/VerifyStore", &handler);
  hbc_call_send(&self->call, hbc_bytebuf_pack(&request.base));
  hbc_call_read(&self->call);
}

static void run_go_on(struct hbc_task *task) { hbc_call_read(&OWNER(task, go_on)->call); }

static void run_stop(struct hbc_task *task) { hbc_call_cancel(&OWNER(task, stop)->call); }

static void run_last(struct hbc_task *task) {
  struct verifying *self = OWNER(task, last);
  pthread_mutex_lock(&self->mutex);
  self->gone = true;
  pthread_cond_signal(&self->changed);
  pthread_mutex_unlock(&self->mutex);
}

/* ---- the caller's */

/* Tasks run in order: after this one none is left that was posted before. */
static void wait_until_gone(struct verifying *self) {
  hbc_client_post(self->client, &self->last);
  pthread_mutex_lock(&self->mutex);
  while (!self->gone) pthread_cond_wait(&self->changed, &self->mutex);
  pthread_mutex_unlock(&self->mutex);
}

/* The next answer, the caller's; NULL: the call has ended. */
static grpc_byte_buffer *wait_for_answer(struct verifying *self) {
  pthread_mutex_lock(&self->mutex);
  while (!self->answer && !self->ended) pthread_cond_wait(&self->changed, &self->mutex);
  grpc_byte_buffer *answer = self->answer;
  self->answer = NULL;
  pthread_mutex_unlock(&self->mutex);
  return answer;
}

static bool tell_finding(const struct holdback_verify_options *options,
                         const Holdback__V1__VerifyFinding *from) {
  struct holdback_finding finding = {.stream_id = from->stream_id,
                                     .stream = from->stream,
                                     .family = from->family,
                                     .has_range = from->range != NULL,
                                     .text = from->text};
  if (from->range) {
    finding.start = from->range->start;
    finding.end = from->range->end;
  }
  return !options->on_finding || options->on_finding(options->context, &finding);
}

static void take_progress(const Holdback__V1__VerifyProgress *from,
                          struct holdback_verify_progress *out) {
  *out = (struct holdback_verify_progress){.streams = from->streams,
                                           .blocks = from->blocks,
                                           .events = from->events,
                                           .bundles = from->bundles,
                                           .held_events = from->held_events,
                                           .index_entries = from->index_entries,
                                           .rows = from->rows,
                                           .bytes = from->bytes,
                                           .findings = from->findings,
                                           .done = from->done,
                                           .total = from->total,
                                           .elapsed_ms = from->elapsed_ms};
}

enum told { GO_ON, FINISHED, STOPPED, MALFORMED };

static enum told tell(const struct holdback_verify_options *options, grpc_byte_buffer *owned,
                      struct holdback_verify_progress *progress) {
  ProtobufCMessage *message =
      hbc_bytebuf_unpack(&holdback__v1__verify_store_response__descriptor, owned);
  grpc_byte_buffer_destroy(owned);
  const Holdback__V1__VerifyStoreResponse *answer = (Holdback__V1__VerifyStoreResponse *)message;
  if (!answer) return MALFORMED;
  bool more = true;
  for (size_t i = 0; more && i < answer->n_findings; i++) {
    more = tell_finding(options, answer->findings[i]);
  }
  if (answer->progress) take_progress(answer->progress, progress);
  if (more && options->on_progress) more = options->on_progress(options->context, progress);
  enum told told = answer->finished ? FINISHED : more ? GO_ON : STOPPED;
  protobuf_c_message_free_unpacked(message, NULL);
  return told;
}

/* Until the call has ended, whatever was told. */
static enum told tell_all(struct verifying *self, struct holdback_verify_progress *progress) {
  enum told told = GO_ON;
  grpc_byte_buffer *answer;
  while ((answer = wait_for_answer(self)) != NULL) {
    if (told != GO_ON) {
      grpc_byte_buffer_destroy(answer);
      continue;
    }
    told = tell(self->options, answer, progress);
    if (told == STOPPED || told == MALFORMED) {
      hbc_client_post(self->client, &self->stop);
    } else {
      hbc_client_post(self->client, &self->go_on);
    }
  }
  return told;
}

static int result_of(const struct verifying *self, enum told told, struct holdback_error *error) {
  const char *server = self->client->server;
  switch (told) {
    case FINISHED:
      return HOLDBACK_OK;
    case STOPPED:
      return hbc_error_set(error, HOLDBACK_CANCELLED, NULL, "%s: VerifyStore: stopped", server);
    case MALFORMED:
      return hbc_error_set(error, HOLDBACK_INTERNAL, NULL,
                           "%s: VerifyStore: an answer is malformed", server);
    case GO_ON:
      break;
  }
  if (self->error.status) return hbc_error_copy(error, &self->error);
  return hbc_error_set(error, HOLDBACK_INTERNAL, NULL,
                       "%s: VerifyStore: it ended before everything was looked at", server);
}

int holdback_verify(struct holdback_client *client, const struct holdback_verify_options *options,
                    struct holdback_verify_progress *out, struct holdback_error *error) {
  struct holdback_server server;
  int status = holdback_ping(client, &server, error); /* knows how long to wait for a connection */
  if (status) return status;
  struct verifying self = {.client = client,
                           .options = options,
                           .open = {.run = run_open},
                           .go_on = {.run = run_go_on},
                           .stop = {.run = run_stop},
                           .last = {.run = run_last}};
  struct holdback_verify_progress progress = {0};
  pthread_mutex_init(&self.mutex, NULL);
  pthread_cond_init(&self.changed, NULL);
  hbc_client_post(client, &self.open);
  enum told told = tell_all(&self, &progress);
  wait_until_gone(&self);
  status = result_of(&self, told, error);
  pthread_cond_destroy(&self.changed);
  pthread_mutex_destroy(&self.mutex);
  if (!status && out) *out = progress;
  return status;
}
