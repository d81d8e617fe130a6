/* Decides when calls are ended because messages that don't arrive whole fill gRPC's memory.
 *
 * gRPC keeps what has come of a message until it is whole, and lets each peer send all of a
 * message whose head it has seen. Its quota (grpc_memory_max) bounds the sum, but by resetting
 * calls at random, and it stops there: sixteen peers that stall at 15 of 16 MiB would keep it full
 * for ever, and everybody else at a trickle. Which calls are in the middle of a message it tells
 * nobody. So:
 *
 *  - The gauge: once a second a connection of our own is made, over a socket pair. Its first frame,
 *    SETTINGS, has the window that gRPC gives now, which it makes small as the quota fills.
 *  - The remedy: while the window is small, calls that have waited for a message for
 *    PATIENCE_MS end with UNAVAILABLE: those that never sent a whole one first, and only where
 *    there is none, all. Who merely had nothing to say opens the call again and has lost nothing.
 */
#include "server/rpc/pressure.h"

#include <inttypes.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "server/rpc/container.h"
#include "server/rpc/lane.h"
#include "server/rpc/rpc.h"

enum { LOOK_MS = 1000, PATIENCE_MS = 10000 };

/* Calm: 64 KiB and more. 1.51 begins to shrink it when some four fifths of the quota are used. */
enum { WINDOW_SMALL = 16384 };

/* Fewer calls than this can't fill the smallest quota. */
enum { CALLS_FEW = 2 };

/* HTTP/2 (RFC 9113): a frame's head, and the setting that matters. */
enum { HEAD_SIZE = 9, KIND_SETTINGS = 4, SETTING_SIZE = 6, SETTING_INITIAL_WINDOW = 4 };

enum hb_pressure hb_pressure_of(const uint8_t *bytes, size_t size) {
  if (size < HEAD_SIZE) return HB_PRESSURE_UNKNOWN;
  size_t length = (size_t)bytes[0] << 16 | (size_t)bytes[1] << 8 | bytes[2];
  if (bytes[3] != KIND_SETTINGS) return HB_PRESSURE_LOW;
  if (size - HEAD_SIZE < length) return HB_PRESSURE_UNKNOWN;
  for (size_t i = HEAD_SIZE; i + SETTING_SIZE <= HEAD_SIZE + length; i += SETTING_SIZE) {
    if ((bytes[i] << 8 | bytes[i + 1]) != SETTING_INITIAL_WINDOW) continue;
    uint32_t window = (uint32_t)bytes[i + 2] << 24 | (uint32_t)bytes[i + 3] << 16 |
                      (uint32_t)bytes[i + 4] << 8 | bytes[i + 5];
    return window < WINDOW_SMALL ? HB_PRESSURE_HIGH : HB_PRESSURE_LOW;
  }
  return HB_PRESSURE_LOW;
}

/* ---- the remedy */

static bool is_stale(const struct hb_call *call, uint64_t now_ms) {
  return call->reading && !call->parked && !call->over &&
         now_ms - call->read_since_ms >= PATIENCE_MS;
}

static uint64_t end_stale(struct hb_lane *lane, bool also_heard) {
  uint64_t now_ms = hb_clock_mono_ms();
  uint64_t ended = 0;
  struct hb_err err;
  hb_err_set(&err, HB_UNAVAILABLE, "RECEIVE_MEMORY",
             "grpc_memory_max (%" PRIu64
             " bytes) is nearly used up by messages that are not "
             "whole, and this call's did not come for %d s: send it again",
             lane->rpc->limits->grpc_memory_max, PATIENCE_MS / 1000);
  for (struct hb_call *call = lane->calls; call; call = call->next) {
    if (!is_stale(call, now_ms) || (call->heard && !also_heard)) continue;
    hb_call_end(call, &err);
    ended++;
  }
  return ended;
}

static void shed(struct hb_post *post) {
  struct hb_shedder *shedder = HB_CONTAINER_OF(post, struct hb_shedder, post);
  struct hb_lane *lane = HB_CONTAINER_OF(shedder, struct hb_lane, shedder);
  shedder->posted = false;
  uint64_t ended = end_stale(lane, false);
  if (ended == 0) ended = end_stale(lane, true);
  if (ended == 0) return;
  hb_count(&lane->rpc->counters, HB_COUNTER_calls_shed_total, ended);
  hb_log(HB_LOG_WARN, "shed",
         "calls=%" PRIu64 " grpc_memory_max=%" PRIu64
         " cause=\"messages that do not arrive whole fill gRPC's memory\"",
         ended, lane->rpc->limits->grpc_memory_max);
}

static void shed_all(struct hb_rpc *rpc) {
  for (uint32_t i = 0; i < rpc->lanes_count; i++) {
    struct hb_lane *lane = &rpc->lanes[i];
    if (atomic_exchange(&lane->shedder.posted, true)) continue;
    lane->shedder.post.fire = shed;
    hb_pump_post(lane->pump, &lane->shedder.post);
  }
}

/* ---- the gauge */

static void forget(struct hb_gauge *gauge) {
  if (gauge->has_fd) close(gauge->fd);
  gauge->has_fd = false;
}

static void begin_look(struct hb_gauge *gauge) {
  int ends[2];
  if (hb_counter_get(&gauge->rpc->counters, HB_COUNTER_calls_open) < CALLS_FEW) return;
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) return;
  gauge->fd = ends[0];
  gauge->has_fd = true;
  hb_rpc_add_connection(gauge->rpc, ends[1]);
}

/* Nothing yet means a slow machine, the end a connection that gRPC had no room for. */
static enum hb_pressure end_look(struct hb_gauge *gauge) {
  uint8_t bytes[128];
  if (!gauge->has_fd) return HB_PRESSURE_UNKNOWN;
  ssize_t size = recv(gauge->fd, bytes, sizeof bytes, MSG_DONTWAIT);
  forget(gauge);
  if (size == 0) return HB_PRESSURE_HIGH;
  return size < 0 ? HB_PRESSURE_UNKNOWN : hb_pressure_of(bytes, (size_t)size);
}

static void set_timer(struct hb_gauge *gauge) {
  hb_pump_set_timer(gauge->rpc->lanes[0].pump, &gauge->timer,
                    hb_clock_mono_ns() + LOOK_MS * UINT64_C(1000000));
}

static void look(struct hb_timer *timer) {
  struct hb_gauge *gauge = HB_CONTAINER_OF(timer, struct hb_gauge, timer);
  if (end_look(gauge) == HB_PRESSURE_HIGH) shed_all(gauge->rpc);
  if (gauge->rpc->draining) return;
  begin_look(gauge);
  set_timer(gauge);
}

static void start(struct hb_post *post) {
  struct hb_gauge *gauge = HB_CONTAINER_OF(post, struct hb_gauge, start_post);
  if (!gauge->rpc->draining) set_timer(gauge);
}

void hb_pressure_start(struct hb_rpc *rpc) {
  rpc->gauge.rpc = rpc;
  rpc->gauge.timer.fire = look;
  rpc->gauge.start_post.fire = start;
  hb_pump_post(rpc->lanes[0].pump, &rpc->gauge.start_post);
}

void hb_pressure_stop(struct hb_rpc *rpc) {
  if (!rpc->gauge.rpc) return;
  hb_pump_clear_timer(rpc->lanes[0].pump, &rpc->gauge.timer);
  forget(&rpc->gauge);
}
