/* Decides how the server starts and in which order it stops.
 *
 * Start: server, pumps, listeners, accept. Stop: each pump tells its calls, new ones are refused;
 * when the last has ended, the listeners close and connections are told
 * (grpc_server_shutdown_and_notify); when the last call, acceptor and the server's own shutdown
 * have come back (rpc->open is 0) the pumps can go. Peers that don't
 * read, or don't do anything at all, are not waited for longer than half of the time. */
#include "server/rpc/rpc.h"

#include <grpc/grpc.h>
#include <grpc/grpc_posix.h>
#include <grpc/grpc_security.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/handoff.h"
#include "base/log.h"
#include "server/rpc/container.h"
#include "server/rpc/lane.h"
#include "server/rpc/listener.h"

enum { PUMPS_DEFAULT = 2 };

/* Batches over batch_bytes_max are answered by us, after the batches before them, with the limit
 * in the message. What is far larger is refused by gRPC, which ends the call at once. It looks only
 * when a message is whole: what bounds those that never are is its quota, and pressure.c. */
enum { RECEIVE_BYTES_MAX = 32 << 20 };

/* Calls over calls_max are answered by us too, with the limit in the message; a peer that opens
 * far more at once is held back by gRPC. */
enum { STREAMS_PER_CALL_MAX = 2 };

/* A peer that vanished without a word (its machine lost power) holds a call and one answer: after
 * a minute of silence it is asked, and given up when it does not answer. */
enum { KEEPALIVE_MS = 60000, KEEPALIVE_TIMEOUT_MS = 20000 };

/* Clients may ping each 10 s; a little less, for clocks differ. */
enum { PING_INTERVAL_MIN_MS = 9000 };

/* How often it is looked whether the last call has gone: before the farewell, and once the peers
 * were cut off. */
enum { FAREWELL_LOOK_MS = 20, CLOSE_LOOK_MS = 50 };

static grpc_arg int_arg(const char *key, int value) {
  return (grpc_arg){
      .type = GRPC_ARG_INTEGER, .key = (char *)(uintptr_t)key, .value.integer = value};
}

static grpc_server *create_server(const struct hb_limits *limits) {
  grpc_resource_quota *quota = grpc_resource_quota_create("holdbackd");
  grpc_resource_quota_resize(quota, limits->grpc_memory_max);
  grpc_arg args[] = {
      int_arg(GRPC_ARG_ALLOW_REUSEPORT, 0),
      int_arg(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, RECEIVE_BYTES_MAX),
      int_arg(GRPC_ARG_MAX_CONCURRENT_STREAMS, (int)limits->calls_max * STREAMS_PER_CALL_MAX),
      int_arg(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, PING_INTERVAL_MIN_MS),
      int_arg(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1),
      int_arg(GRPC_ARG_KEEPALIVE_TIME_MS, KEEPALIVE_MS),
      int_arg(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, KEEPALIVE_TIMEOUT_MS),
      {.type = GRPC_ARG_POINTER,
       .key = (char *)(uintptr_t)GRPC_ARG_RESOURCE_QUOTA,
       .value.pointer = {.p = quota, .vtable = grpc_resource_quota_arg_vtable()}},
  };
  grpc_channel_args all = {.num_args = sizeof args / sizeof args[0], .args = args};
  grpc_server *server = grpc_server_create(&all, NULL);
  grpc_resource_quota_unref(quota);
  return server;
}

/* ---- farewell */

/* Any thread; the first time counts. The listeners close, idle connections with them, and every
 * other connection with its last call. */
static void say_farewell(struct hb_rpc *rpc) {
  if (atomic_exchange(&rpc->farewell_said, true)) return;
  hb_handoff_give(&rpc->shutdown_tag);
  grpc_server_shutdown_and_notify(rpc->server, hb_pump_queue(rpc->lanes[0].pump),
                                  &rpc->shutdown_tag);
}

static void set_farewell_timer(struct hb_lane *lane) {
  hb_pump_set_timer(lane->pump, &lane->farewell_timer,
                    hb_clock_mono_ns() + FAREWELL_LOOK_MS * UINT64_C(1000000));
}

/* Not before the calls have ended, and a moment after: said earlier, gRPC closes a connection in
 * the moment that its last call ends, and a client that writes just then (C core's pings, say) gets
 * EPIPE and drops the answers that it has not read yet. */
static void look_for_farewell(struct hb_timer *timer) {
  struct hb_lane *lane = HB_CONTAINER_OF(timer, struct hb_lane, farewell_timer);
  bool quiet = hb_counter_get(&lane->rpc->counters, HB_COUNTER_calls_open) == 0;
  if (quiet && lane->was_quiet) {
    say_farewell(lane->rpc);
  } else {
    lane->was_quiet = quiet;
    set_farewell_timer(lane);
  }
}

/* ---- messages to the lanes */

static void set_cut_timer(struct hb_lane *lane, void (*fire)(struct hb_timer *), uint64_t in_ms) {
  lane->cut_timer.fire = fire;
  hb_pump_set_timer(lane->pump, &lane->cut_timer, hb_clock_mono_ns() + in_ms * UINT64_C(1000000));
}

/* gRPC closes a connection when its peer has answered to the farewell; one that stands still (a
 * stopped process, a lost network) would be waited for. Once no call is open nothing can be lost.
 */
static void close_connections(struct hb_timer *timer) {
  struct hb_lane *lane = HB_CONTAINER_OF(timer, struct hb_lane, cut_timer);
  if (hb_counter_get(&lane->rpc->counters, HB_COUNTER_calls_open) == 0) {
    grpc_server_cancel_all_calls(lane->rpc->server);
  } else {
    set_cut_timer(lane, close_connections, CLOSE_LOOK_MS);
  }
}

static void cut(struct hb_timer *timer) {
  struct hb_lane *lane = HB_CONTAINER_OF(timer, struct hb_lane, cut_timer);
  for (struct hb_call *call = lane->calls; call; call = call->next) hb_call_cut(call);
  say_farewell(lane->rpc);
  if (lane == lane->rpc->lanes) set_cut_timer(lane, close_connections, CLOSE_LOOK_MS);
}

static void drain_lane(struct hb_post *post) {
  struct hb_lane *lane = HB_CONTAINER_OF(post, struct hb_lane, drain_post);
  if (lane == lane->rpc->lanes) {
    hb_pressure_stop(lane->rpc);
    set_farewell_timer(lane);
  }
  for (struct hb_call *call = lane->calls; call; call = call->next) {
    if (!call->over && call->method->drain) call->method->drain(call);
  }
  set_cut_timer(lane, cut, lane->rpc->cut_ms);
}

static void sweep_lane(struct hb_post *post) {
  struct hb_lane *lane = HB_CONTAINER_OF(post, struct hb_lane, sweep_post);
  lane->sweep_posted = false; /* before looking: a deletion from now on posts again */
  for (struct hb_call *call = lane->calls; call; call = call->next) {
    if (!call->over && call->method->sweep) call->method->sweep(call);
  }
}

static void room_came(struct hb_post *post) {
  struct hb_lane *lane = HB_CONTAINER_OF(post, struct hb_lane, room_post);
  lane->room_posted = false;
  hb_call_unpark(lane);
}

void hb_rpc_sweep(struct hb_rpc *rpc) {
  for (uint32_t i = 0; i < rpc->lanes_count; i++) {
    struct hb_lane *lane = &rpc->lanes[i];
    if (!atomic_exchange(&lane->sweep_posted, true)) hb_pump_post(lane->pump, &lane->sweep_post);
  }
}

/* The sequencer's thread. */
static void ingest_changed(void *context) { hb_rpc_sweep(context); }

/* ---- start */

static void start_lanes(struct hb_rpc *rpc, uint32_t count) {
  rpc->lanes = hb_calloc(count, sizeof *rpc->lanes);
  rpc->lanes_count = count;
  for (uint32_t i = 0; i < count; i++) {
    struct hb_lane *lane = &rpc->lanes[i];
    lane->rpc = rpc;
    lane->drain_post.fire = drain_lane;
    lane->sweep_post.fire = sweep_lane;
    lane->room_post.fire = room_came;
    lane->farewell_timer.fire = look_for_farewell;
    lane->pump = hb_pump_create();
    grpc_server_register_completion_queue(rpc->server, hb_pump_queue(lane->pump), NULL);
  }
}

static enum hb_code bind_all(struct hb_rpc *rpc, const struct hb_rpc_options *options,
                             struct hb_err *err) {
  grpc_server_credentials *insecure = grpc_insecure_server_credentials_create();
  enum hb_code code = HB_OK;
  for (size_t i = 0; !code && i < options->listen_count; i++) {
    struct hb_listener listener = {.address = options->listen[i], .credentials = insecure};
    code = hb_listener_bind(rpc->server, &listener, &rpc->bound, err);
  }
  grpc_server_credentials_release(insecure);
  hb_buf_append_u8(&rpc->bound, '\0');
  return code;
}

static void shutdown_came(struct hb_tag *tag, bool ok) {
  (void)ok;
  hb_rpc_closed(HB_CONTAINER_OF(tag, struct hb_rpc, shutdown_tag));
}

enum hb_code hb_rpc_start(const struct hb_rpc_options *options, struct hb_rpc **out,
                          struct hb_err *err) {
  struct hb_rpc *rpc = hb_calloc(1, sizeof *rpc);
  uint32_t pumps = options->pumps ? options->pumps : PUMPS_DEFAULT;
  HB_ASSERT(pumps <= HB_LANES_MAX);
  pthread_mutex_init(&rpc->mutex, NULL);
  pthread_cond_init(&rpc->all_closed, NULL);
  rpc->engine = options->engine;
  rpc->limits = hb_engine_limits(options->engine);
  rpc->drained = options->drained;
  rpc->context = options->context;
  rpc->shutdown_tag.fire = shutdown_came;
  rpc->open = 1; /* the server itself */
  rpc->server = create_server(rpc->limits);
  start_lanes(rpc, pumps);
  enum hb_code code = bind_all(rpc, options, err);
  if (code) {
    rpc->drained = NULL;
    hb_rpc_drain(rpc, 0);
    hb_rpc_stop(rpc);
    return code;
  }
  hb_engine_on_ingest(rpc->engine, ingest_changed, rpc);
  grpc_server_start(rpc->server);
  for (uint32_t i = 0; i < pumps; i++) hb_lane_accept(&rpc->lanes[i]);
  hb_pressure_start(rpc);
  *out = rpc;
  return HB_OK;
}

const char *hb_rpc_bound(const struct hb_rpc *rpc) { return (const char *)rpc->bound.data; }

void hb_rpc_add_connection(struct hb_rpc *rpc, int fd) {
  grpc_server_credentials *insecure = grpc_insecure_server_credentials_create();
  grpc_server_add_channel_from_fd(rpc->server, fd, insecure);
  grpc_server_credentials_release(insecure);
}

/* ---- stop */

void hb_rpc_closed(struct hb_rpc *rpc) {
  if (atomic_fetch_sub(&rpc->open, 1) != 1) return;
  if (rpc->drained) rpc->drained(rpc->context);
  pthread_mutex_lock(&rpc->mutex);
  rpc->is_closed = true;
  pthread_cond_signal(&rpc->all_closed);
  pthread_mutex_unlock(&rpc->mutex);
}

void hb_rpc_drain(struct hb_rpc *rpc, uint64_t timeout_ms) {
  rpc->draining = true;
  rpc->cut_ms = timeout_ms / 2;
  for (uint32_t i = 0; i < rpc->lanes_count; i++) {
    hb_pump_post(rpc->lanes[i].pump, &rpc->lanes[i].drain_post);
  }
}

void hb_rpc_cancel(struct hb_rpc *rpc) {
  say_farewell(rpc); /* gRPC cancels only what it has said farewell to */
  grpc_server_cancel_all_calls(rpc->server);
}

static void stop_lane(struct hb_post *post) {
  struct hb_lane *lane = HB_CONTAINER_OF(post, struct hb_lane, stop_post);
  hb_pump_clear_timer(lane->pump, &lane->cut_timer);
  hb_pump_clear_timer(lane->pump, &lane->farewell_timer);
  struct hb_rpc *rpc = lane->rpc;
  pthread_mutex_lock(&rpc->mutex);
  rpc->lanes_stopped++;
  pthread_cond_signal(&rpc->all_closed);
  pthread_mutex_unlock(&rpc->mutex);
}

/* The pumps run until each has seen that it has nothing left to do. */
static void wait_until_closed(struct hb_rpc *rpc) {
  pthread_mutex_lock(&rpc->mutex);
  while (!rpc->is_closed) pthread_cond_wait(&rpc->all_closed, &rpc->mutex);
  pthread_mutex_unlock(&rpc->mutex);
  for (uint32_t i = 0; i < rpc->lanes_count; i++) {
    rpc->lanes[i].stop_post.fire = stop_lane;
    hb_pump_post(rpc->lanes[i].pump, &rpc->lanes[i].stop_post);
  }
  pthread_mutex_lock(&rpc->mutex);
  while (rpc->lanes_stopped < rpc->lanes_count) pthread_cond_wait(&rpc->all_closed, &rpc->mutex);
  pthread_mutex_unlock(&rpc->mutex);
}

void hb_rpc_stop(struct hb_rpc *rpc) {
  hb_engine_on_ingest(rpc->engine, NULL, NULL); /* before the pumps go */
  wait_until_closed(rpc);
  const char *alive = hb_counters_find_live(&rpc->counters);
  if (alive) hb_log(HB_LOG_ERROR, "leak", "counter=%s", alive);
  HB_ASSERT(!alive);
  grpc_server_destroy(rpc->server);
  for (uint32_t i = 0; i < rpc->lanes_count; i++) {
    HB_ASSERT(!rpc->lanes[i].calls);
    hb_pump_destroy(rpc->lanes[i].pump);
    hb_append_pool_done(&rpc->lanes[i].appends);
  }
  free(rpc->lanes);
  hb_buf_done(&rpc->bound);
  pthread_cond_destroy(&rpc->all_closed);
  pthread_mutex_destroy(&rpc->mutex);
  free(rpc);
}
