/* grpc.health.v1.Health: SERVING from the first call on, NOT_SERVING once the server drains.
 *
 * The server as a whole is the name "". Each service of ours is known by its full name and by a
 * short one ("ingest"). All of them go up and down together, but for two: ingest is NOT_SERVING too
 * while the disk is so full that nothing is written, processing while a processor's code does not
 * come back. Who reads is served on, so the server as a whole is well. */
#include <stdbool.h>
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

typedef Grpc__Health__V1__HealthCheckResponse__ServingStatus health_status;

static const struct service {
  const char *name;
  bool writes;
  bool processes;
} services[] = {
    {"", false, false},
    {"holdback.v1.DeliveryService", false, false},
    {"holdback.v1.IngestService", true, false},
    {"holdback.v1.ProcessorService", false, true},
    {"holdback.v1.ServerService", false, false},
    {"holdback.v1.StreamService", false, false},
    {"delivery", false, false},
    {"ingest", true, false},
    {"processing", false, true},
    {"server", false, false},
    {"stream", false, false},
};

static const struct service *find(const char *name) {
  for (size_t i = 0; i < sizeof services / sizeof services[0]; i++) {
    if (strcmp(services[i].name, name) == 0) return &services[i];
  }
  return NULL;
}

static health_status status_of(const struct hb_rpc *rpc, const struct service *service) {
  if (!service) return STATUS(SERVICE_UNKNOWN);
  bool stopped = service->writes && !hb_engine_is_ingesting(rpc->engine);
  bool stuck = service->processes && hb_engine_processing_is_stuck(rpc->engine);
  return rpc->draining || stopped || stuck ? STATUS(NOT_SERVING) : STATUS(SERVING);
}

static grpc_byte_buffer *response(health_status status) {
  Grpc__Health__V1__HealthCheckResponse message = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__INIT;
  message.status = status;
  return hb_pb_pack(&message.base);
}

/* ---- Check */

static void check(struct hb_call *call, const grpc_slice *message) {
  Grpc__Health__V1__HealthCheckRequest *request =
      hb_unary_unpack(call, &grpc__health__v1__health_check_request__descriptor, message);
  if (!request) return;
  const struct service *service = find(request->service);
  if (service) {
    hb_call_answer(call, response(status_of(call->rpc, service)));
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

/* ---- Watch: the status now and after each change; the server's drain is the last. Whether user
 * code comes back is looked at each second. */

enum { LOOK_MS = 1000 };

struct watch {
  struct hb_call call;           /* first */
  const struct service *service; /* NULL: not known */
  struct hb_timer timer;
  bool asked;
  bool ending;
  bool told_any;
  health_status told;
};

static void tell(struct watch *self) {
  if (!self->asked || self->call.over || self->call.sending) return; /* again when it was sent */
  health_status status = status_of(self->call.rpc, self->service);
  if (self->told_any && self->told == status) return;
  self->told_any = true;
  self->told = status;
  (void)hb_call_send(&self->call, response(status), false);
}

static void end_watch(struct watch *self) {
  tell(self);
  if (self->call.sending) return;
  struct hb_err err;
  hb_err_set(&err, HB_UNAVAILABLE, "SERVER_STOPS", "server stops");
  hb_call_end(&self->call, &err);
}

static void look(struct hb_timer *timer);

static void look_later(struct watch *self) {
  if (!self->service || !self->service->processes || self->ending) return;
  self->timer.fire = look;
  hb_pump_set_timer(self->call.lane->pump, &self->timer,
                    hb_clock_mono_ns() + LOOK_MS * UINT64_C(1000000));
}

static void look(struct hb_timer *timer) {
  struct watch *self = HB_CONTAINER_OF(timer, struct watch, timer);
  tell(self);
  look_later(self);
}

static void watch_stopped(struct hb_call *call) {
  hb_pump_clear_timer(call->lane->pump, &((struct watch *)call)->timer);
}

static void watch(struct hb_call *call, const grpc_slice *message) {
  struct watch *self = (struct watch *)call;
  Grpc__Health__V1__HealthCheckRequest *request =
      hb_unary_unpack(call, &grpc__health__v1__health_check_request__descriptor, message);
  if (!request) return;
  self->service = find(request->service);
  self->asked = true;
  grpc__health__v1__health_check_request__free_unpacked(request, NULL);
  tell(self);
  look_later(self);
}

static void watch_sent(struct hb_call *call) {
  struct watch *self = (struct watch *)call;
  if (self->ending) {
    end_watch(self);
  } else {
    tell(self);
  }
}

static void watch_sweep(struct hb_call *call) { tell((struct watch *)call); }

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
    .sweep = watch_sweep,
};
