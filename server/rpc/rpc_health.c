/* grpc.health.v1.Health: SERVING from the first call on, NOT_SERVING once the server drains.
 *
 * The server as a whole is the name "". Each service of ours is known by its full name and by a
 * short one ("ingest"); all of them go up and down together, but for "processing": that is
 * NOT_SERVING also while a processor's code does not come back. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

#include "grpc/health/v1/health.pb-c.h"
#include "server/engine/processors.h"
#include "server/rpc/container.h"
#include "server/rpc/lane.h"
#include "server/rpc/methods.h"
#include "server/rpc/pb.h"
#include "server/rpc/unary.h"

#define STATUS(name) GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__##name

static const char *const services[] = {
    "",
    "holdback.v1.DeliveryService",
    "holdback.v1.IngestService",
    "delivery",
    "holdback.v1.ProcessorService",
    "holdback.v1.ServerService",
    "holdback.v1.StreamService",
    "ingest",
    "processing",
    "server",
    "stream",
};

static bool is_known(const char *service) {
  for (size_t i = 0; i < sizeof services / sizeof services[0]; i++) {
    if (strcmp(services[i], service) == 0) return true;
  }
  return false;
}

/* Only its own service suffers from a processor that does not come back. */
static bool is_serving(struct hb_call *call, const char *service) {
  bool processing =
      strcmp(service, "processing") == 0 || strcmp(service, "holdback.v1.ProcessorService") == 0;
  if (processing && hb_engine_processing_is_stuck(call->rpc->engine)) return false;
  return !call->rpc->draining;
}

static grpc_byte_buffer *response(Grpc__Health__V1__HealthCheckResponse__ServingStatus status) {
  Grpc__Health__V1__HealthCheckResponse message = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__INIT;
  message.status = status;
  return hb_pb_pack(&message.base);
}

/* ---- Check */

static void check(struct hb_call *call, const grpc_slice *message) {
  Grpc__Health__V1__HealthCheckRequest *request =
      hb_unary_unpack(call, &grpc__health__v1__health_check_request__descriptor, message);
  if (!request) return;
  if (is_known(request->service)) {
    bool serving = is_serving(call, request->service);
    hb_call_answer(call, response(serving ? STATUS(SERVING) : STATUS(NOT_SERVING)));
  } else {
    struct hb_err err;
    hb_err_set(&err, HB_NOT_FOUND, "SERVICE_UNKNOWN", "service '%.128s' is not one of this server",
               request->service);
    hb_call_end(call, &err);
  }
  grpc__health__v1__health_check_request__free_unpacked(request, NULL);
}

const struct hb_method hb_method_health_check = {
    .path = "/grpc.health.v1.Health/Check",
    .size = sizeof(struct hb_call),
    .request_bytes_max = HB_REQUEST_BYTES_MAX,
    .opened = hb_unary_opened,
    .received = check,
    .drain = hb_unary_drain,
};

/* ---- Watch: the status now, when it changes (looked at each second), and when the server drains
 */

enum { LOOK_MS = 1000 };

struct watch {
  struct hb_call call; /* first */
  char service[64];
  struct hb_timer timer;
  bool known;
  bool serving; /* as told last */
  bool ending;
  bool told_last;
};

static void end_watch(struct watch *self) {
  if (self->call.sending) return; /* again when it was sent */
  if (self->known && !self->told_last) {
    self->told_last = true;
    (void)hb_call_send(&self->call, response(STATUS(NOT_SERVING)), false);
    return;
  }
  struct hb_err err;
  hb_err_set(&err, HB_UNAVAILABLE, "SERVER_STOPS", "server stops");
  hb_call_end(&self->call, &err);
}

static void look_later(struct watch *self);

static void look(struct hb_timer *timer) {
  struct watch *self = HB_CONTAINER_OF(timer, struct watch, timer);
  bool serving = is_serving(&self->call, self->service);
  if (!self->ending && !self->call.sending && serving != self->serving) {
    self->serving = serving;
    (void)hb_call_send(&self->call, response(serving ? STATUS(SERVING) : STATUS(NOT_SERVING)),
                       false);
  }
  look_later(self);
}

static void look_later(struct watch *self) {
  if (!self->known || self->ending) return;
  self->timer.fire = look;
  hb_pump_set_timer(self->call.lane->pump, &self->timer,
                    hb_clock_mono_ns() + LOOK_MS * UINT64_C(1000000));
}

static void watch_stopped(struct hb_call *call) {
  hb_pump_clear_timer(call->lane->pump, &((struct watch *)call)->timer);
}

static void watch(struct hb_call *call, const grpc_slice *message) {
  struct watch *self = (struct watch *)call;
  Grpc__Health__V1__HealthCheckRequest *request =
      hb_unary_unpack(call, &grpc__health__v1__health_check_request__descriptor, message);
  if (!request) return;
  self->known = is_known(request->service);
  if (self->known) (void)snprintf(self->service, sizeof self->service, "%s", request->service);
  grpc__health__v1__health_check_request__free_unpacked(request, NULL);
  if (self->ending) {
    end_watch(self);
  } else {
    self->serving = self->known && is_serving(call, self->service);
    (void)hb_call_send(call,
                       response(!self->known    ? STATUS(SERVICE_UNKNOWN)
                                : self->serving ? STATUS(SERVING)
                                                : STATUS(NOT_SERVING)),
                       false);
    look_later(self);
  }
}

static void watch_sent(struct hb_call *call) {
  struct watch *self = (struct watch *)call;
  if (self->ending) end_watch(self);
}

static void watch_drain(struct hb_call *call) {
  struct watch *self = (struct watch *)call;
  self->ending = true;
  end_watch(self);
}

const struct hb_method hb_method_health_watch = {
    .path = "/grpc.health.v1.Health/Watch",
    .size = sizeof(struct watch),
    .request_bytes_max = HB_REQUEST_BYTES_MAX,
    .opened = hb_unary_opened,
    .received = watch,
    .sent = watch_sent,
    .stopped = watch_stopped,
    .drain = watch_drain,
};
