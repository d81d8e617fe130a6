/* Decides what user code may do while it runs, and undoes it when the call fails or is cut. */
#include <string.h>

#include "base/alloc.h"
#include "base/frame/wire.h"
#include "processing/host_internal.h"

static struct hb_slice slice(struct hbp_bytes bytes) { return hb_slice_of(bytes.data, bytes.size); }

static struct hb_host *host_of(const struct hbp_host *calls) { return calls->context; }

static int fail_text(struct hb_host *host, const char *text) {
  if (host->call.failed) return HBP_FAILED; /* the first reason is the reason */
  host->call.failed = true;
  hb_buf_clear(&host->explanation);
  hb_buf_append(&host->explanation, text, strnlen(text, HB_EXPLANATION_MAX));
  return HBP_FAILED;
}

static int give_up(const struct hbp_host *calls, const char *text) {
  return fail_text(host_of(calls), text ? text : "");
}

static bool is_name(struct hb_host *host, struct hbp_bytes name) {
  if (name.size <= HBP_STATE_NAME_MAX) return true;
  (void)fail_text(host, "the name of a state or timer is above 4096 bytes");
  return false;
}

/* ---- states */

static int state_get(const struct hbp_host *calls, struct hbp_bytes name,
                     struct hbp_bytes *out_value, int *out_found) {
  struct hb_host *host = host_of(calls);
  *out_found = 0;
  *out_value = (struct hbp_bytes){NULL, 0};
  if (!is_name(host, name) || host->broken.code != HB_OK) return HBP_FAILED;
  struct hb_state *state;
  if (hb_cache_get(&host->cache, host->call.key, slice(name), &state, &host->broken) != HB_OK) {
    return HBP_FAILED;
  }
  if (!state->present) return HBP_OK;
  *out_found = 1;
  struct hb_slice held = hb_state_value(state);
  *out_value = (struct hbp_bytes){held.data, held.size};
  return HBP_OK;
}

static int state_put(const struct hbp_host *calls, struct hbp_bytes name, struct hbp_bytes value) {
  struct hb_host *host = host_of(calls);
  if (!is_name(host, name)) return HBP_FAILED;
  if (value.size > HBP_STATE_VALUE_MAX) {
    return fail_text(host, "the value of a state is above 4194304 bytes");
  }
  hb_cache_put(&host->cache, host->call.key, slice(name), true, slice(value));
  return HBP_OK;
}

static int state_clear(const struct hbp_host *calls, struct hbp_bytes name) {
  struct hb_host *host = host_of(calls);
  if (!is_name(host, name)) return HBP_FAILED;
  hb_cache_put(&host->cache, host->call.key, slice(name), false, (struct hb_slice){0});
  return HBP_OK;
}

/* ---- results */

static size_t time_size(struct hb_time time) {
  if (!time.present) return 0;
  size_t size = 0;
  if (time.seconds) size += 1 + hb_wire_varint_size((uint64_t)time.seconds);
  if (time.nanos) size += 1 + hb_wire_varint_size((uint64_t)time.nanos);
  return size;
}

static size_t bytes_field_size(size_t size) {
  return size ? 1 + hb_wire_varint_size(size) + size : 0;
}

static size_t number_field_size(uint64_t number) {
  return number ? 1 + hb_wire_varint_size(number) : 0;
}

/* Fields below 16: their tags are one byte. */
static uint8_t *put_number(uint8_t *at, uint32_t field, uint64_t number) {
  if (!number) return at;
  *at++ = (uint8_t)(field << 3);
  return at + hb_wire_put_varint(at, number);
}

static uint8_t *put_size(uint8_t *at, uint32_t field, size_t size) {
  *at++ = (uint8_t)(field << 3 | HB_WIRE_LEN);
  return at + hb_wire_put_varint(at, size);
}

static uint8_t *put_bytes(uint8_t *at, uint32_t field, struct hb_slice bytes) {
  if (!bytes.size) return at;
  at = put_size(at, field, bytes.size);
  memcpy(at, bytes.data, bytes.size);
  return at + bytes.size;
}

static uint8_t *put_time(uint8_t *at, uint32_t field, struct hb_time time, size_t size) {
  if (!time.present) return at;
  at = put_size(at, field, size);
  at = put_number(at, 1, (uint64_t)time.seconds);
  return put_number(at, 2, (uint64_t)time.nanos);
}

/* A frame as in holdback.v1.ResultBatch: its fields have the numbers that an Event's have, so that
 * whatever reads an event's key or time reads a result's. */
static void append_frame(struct hb_host *host, struct hb_slice key, struct hb_slice payload) {
  const struct hb_user_call *call = &host->call;
  struct hb_buf *out = &host->frames;
  uint64_t position = (uint64_t)host->place.next_result;
  size_t time = time_size(call->time); /* at most 17 */
  size_t size = number_field_size(position) + bytes_field_size(key.size) +
                (call->time.present ? 2 + time : 0) + bytes_field_size(payload.size) +
                number_field_size((uint64_t)call->position) + number_field_size(call->cause);
  uint8_t *at = hb_buf_reserve(out, 1 + HB_VARINT_MAX + size);
  at = put_size(at, 1, size);
  at = put_number(at, 1, position);
  at = put_bytes(at, 2, key);
  at = put_time(at, 3, call->time, time);
  at = put_bytes(at, 5, payload);
  at = put_number(at, 9, (uint64_t)call->position);
  at = put_number(at, 10, call->cause);
  out->size = (size_t)(at - out->data);
}

static bool has_room(const struct hb_host *host) {
  if (host->results_count >= host->results_max) return false;
  return host->results_count == 0 || host->frames.size < host->budget.result_bytes;
}

static int emit_slices(struct hb_host *host, struct hb_slice key, struct hb_slice payload) {
  struct hb_user_call *call = &host->call;
  if (key.size > HBP_RESULT_MAX || payload.size > HBP_RESULT_MAX - key.size) {
    return fail_text(host, "a result is above 3145728 bytes");
  }
  if (call->emitted++ < *call->skip) return HBP_OK; /* committed before */
  if (call->cut || !has_room(host)) {
    call->cut = true;
    return HBP_OK;
  }
  size_t offset = host->frames.size;
  append_frame(host, key, payload);
  if (hb_time_compare(call->time, host->place.results_time) > 0) {
    host->place.results_time = call->time;
  }
  hb_reserve((void **)&host->results, &host->results_cap, host->results_count + 1,
             sizeof *host->results);
  host->results[host->results_count++] =
      (struct hb_result){.offset = offset,
                         .size = (uint32_t)(host->frames.size - offset),
                         .max_time = host->place.results_time};
  host->place.next_result++;
  return HBP_OK;
}

static int emit(const struct hbp_host *calls, struct hbp_bytes payload) {
  struct hb_host *host = host_of(calls);
  return emit_slices(host, host->call.key, slice(payload));
}

static int emit_with_key(const struct hbp_host *calls, struct hbp_bytes key,
                         struct hbp_bytes payload) {
  enum { KEY_MAX = 65536 };
  if (key.size > KEY_MAX) return fail_text(host_of(calls), "a result's key is above 65536 bytes");
  return emit_slices(host_of(calls), slice(key), slice(payload));
}

/* ---- timers */

static void add_op(struct hb_host *host, bool set, struct hb_slice name, struct hb_time time) {
  hb_reserve((void **)&host->ops, &host->ops_cap, host->ops_count + 1, sizeof *host->ops);
  host->ops[host->ops_count++] = (struct hb_timer_op){
      .set = set, .time = time, .name_offset = host->names.size, .name_size = name.size};
  hb_buf_append(&host->names, name.data, name.size);
}

static int timer_set(const struct hbp_host *calls, struct hbp_bytes name, struct hbp_time time) {
  struct hb_host *host = host_of(calls);
  if (!is_name(host, name)) return HBP_FAILED;
  if (!time.present || time.nanos < 0 || time.nanos > 999999999) {
    return fail_text(host, "a timer's time is absent, or its nanos are not 0 to 999999999");
  }
  if (host->timers.count + host->ops_count >= host->budget.timers) {
    return fail_text(host, "as many timers are set as the processor may have");
  }
  /* After the end nothing would stop timers that set timers. */
  if (host->place.phase != HB_PHASE_EVENTS) return HBP_OK;
  add_op(host, true, slice(name),
         (struct hb_time){.seconds = time.seconds, .nanos = time.nanos, .present = true});
  return HBP_OK;
}

static int timer_clear(const struct hbp_host *calls, struct hbp_bytes name) {
  struct hb_host *host = host_of(calls);
  if (!is_name(host, name)) return HBP_FAILED;
  add_op(host, false, slice(name), (struct hb_time){0});
  return HBP_OK;
}

static void apply_ops(struct hb_host *host) {
  for (size_t i = 0; i < host->ops_count; i++) {
    const struct hb_timer_op *op = &host->ops[i];
    struct hb_slice name = hb_slice_of(host->names.data + op->name_offset, op->name_size);
    if (!op->set) {
      hb_event_timers_clear(&host->timers, host->call.key, name);
      continue;
    }
    struct hb_timer_row row = {.time = op->time,
                               .key = host->call.key,
                               .creation = host->place.next_creation++,
                               .name = name};
    hb_event_timers_set(&host->timers, &row, false);
  }
}

/* ---- a call from begin to end */

void hb_user_call_init(struct hb_host *host) {
  host->calls = (struct hbp_host){.size = sizeof host->calls,
                                  .context = host,
                                  .state_get = state_get,
                                  .state_put = state_put,
                                  .state_clear = state_clear,
                                  .emit = emit,
                                  .emit_with_key = emit_with_key,
                                  .timer_set = timer_set,
                                  .timer_clear = timer_clear,
                                  .give_up = give_up};
}

void hb_user_call_begin(struct hb_host *host, enum hb_cause cause, int64_t position,
                        struct hb_slice key, struct hb_time time) {
  host->call = (struct hb_user_call){.cause = cause,
                                     .position = position,
                                     .key = key,
                                     .time = time,
                                     .first_result = host->results_count,
                                     .first_byte = host->frames.size,
                                     .first_time = host->place.results_time,
                                     .skip = &host->place.skip};
  host->ops_count = 0;
  hb_buf_clear(&host->names);
}

static void drop_results(struct hb_host *host) {
  const struct hb_user_call *call = &host->call;
  host->place.next_result -= (int64_t)(host->results_count - call->first_result);
  host->place.results_time = call->first_time;
  host->results_count = call->first_result;
  host->frames.size = call->first_byte;
}

bool hb_user_call_end(struct hb_host *host, int code) {
  struct hb_user_call *call = &host->call;
  if (code != HBP_OK && !call->failed) {
    (void)fail_text(host, "the processor failed and gave no reason");
  }
  if (call->failed || host->broken.code != HB_OK) {
    call->cut = false;
    drop_results(host);
  }
  if (call->failed || call->cut || host->broken.code != HB_OK) {
    hb_cache_undo(&host->cache);
    if (call->cut) *call->skip += host->results_count - call->first_result;
    return false;
  }
  apply_ops(host);
  hb_cache_keep(&host->cache);
  *call->skip = 0;
  return true;
}
