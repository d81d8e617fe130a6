/* Decides what runs when: due timers before the event, in their order; the event; at the end of a
 * sealed stream the timers that are left and each key's end. And when a bundle is full. */
#include "processing/host.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "processing/host_internal.h"

enum { BEHIND = 20, BEHIND_EVENTS = 4 };

static size_t size_or(size_t value, size_t by_default) { return value ? value : by_default; }
static uint32_t count_or(uint32_t value, uint32_t by_default) { return value ? value : by_default; }

static struct hb_host_budget budget_of(const struct hb_host_budget *given) {
  return (struct hb_host_budget){.results = count_or(given->results, 10000),
                                 .events = count_or(given->events, 50000),
                                 .result_bytes = size_or(given->result_bytes, 4 << 20),
                                 .change_bytes = size_or(given->change_bytes, 8 << 20),
                                 .cache_bytes = size_or(given->cache_bytes, 64 << 20),
                                 .timers = count_or(given->timers, 1000000),
                                 .block_bytes = size_or(given->block_bytes, 64 << 10),
                                 .failure_bytes = size_or(given->failure_bytes, 64 << 20),
                                 .blocked_keys = count_or(given->blocked_keys, 10000),
                                 .blocked_bytes = size_or(given->blocked_bytes, 64 << 20)};
}

struct hb_host *hb_host_create(const struct hb_host_options *options) {
  struct hb_host *host = hb_calloc(1, sizeof *host);
  host->processor = options->processor;
  host->self = options->self;
  host->source = options->source;
  host->budget = budget_of(&options->budget);
  hb_host_set_behind(host, false);
  host->on_error = options->on_error;
  hb_cache_init(&host->cache, &host->source, host->budget.cache_bytes);
  hb_statuses_init(&host->statuses, options->key_status, &host->source,
                   host->budget.cache_bytes / 4);
  hb_event_timers_init(&host->timers);
  hb_user_call_init(host);
  return host;
}

void hb_host_destroy(struct hb_host *host) {
  if (!host) return;
  hb_bundle_done(host);
  hb_cache_done(&host->cache);
  hb_statuses_done(&host->statuses);
  hb_event_timers_done(&host->timers);
  hb_blocked_done(&host->blocked);
  hb_buf_done(&host->end_key);
  hb_buf_done(&host->names);
  hb_buf_done(&host->explanation);
  free(host->ops);
  free(host);
}

static uint32_t times(uint32_t count, uint32_t by) {
  return count <= UINT32_MAX / by ? count * by : count;
}

void hb_host_set_behind(struct hb_host *host, bool behind) {
  host->results_max = times(host->budget.results, behind ? BEHIND : 1);
  host->events_max = times(host->budget.events, behind ? BEHIND_EVENTS : 1);
}

uint32_t hb_host_results_budget(const struct hb_host *host) { return host->budget.results; }

static void set_end_key(struct hb_host *host, struct hb_slice key) {
  hb_buf_clear(&host->end_key);
  hb_buf_append(&host->end_key, key.data, key.size);
  host->place.has_end_key = true;
  host->place.end_key = hb_buf_view(&host->end_key);
}

void hb_host_restore(struct hb_host *host, const struct hb_processor_place *place) {
  host->place = *place;
  if (place->has_end_key) set_end_key(host, place->end_key);
}

void hb_host_restore_timer(struct hb_host *host, const struct hb_timer_row *row) {
  hb_event_timers_set(&host->timers, row, true);
}

const struct hb_processor_place *hb_host_place(const struct hb_host *host) { return &host->place; }

struct hb_slice hb_host_failure(const struct hb_host *host, int64_t *out_position) {
  *out_position = host->failure_position;
  return hb_buf_view(&host->explanation);
}

struct hb_host_stats hb_host_stats(const struct hb_host *host) {
  return (struct hb_host_stats){.cache_bytes = host->cache.bytes + host->statuses.keys.bytes,
                                .cache_states = host->cache.count,
                                .cache_hits = host->cache.hits,
                                .cache_misses = host->cache.misses,
                                .timers = host->timers.count,
                                .blocked_keys = host->blocked.count};
}

bool hb_host_is_full(const struct hb_host *host) {
  const struct hb_statuses *statuses = &host->statuses;
  return host->results_count >= host->results_max || host->events >= host->events_max ||
         host->cache.dirty_count >= host->budget.events ||
         statuses->keys.dirty_count >= host->budget.events ||
         host->frames.size >= host->budget.result_bytes ||
         statuses->frames.size >= host->budget.result_bytes ||
         host->cache.dirty_bytes + statuses->keys.dirty_bytes + host->failed_bytes.size +
                 host->blocked.dirty_bytes + host->timers.changes * sizeof(struct hb_event_timer) >=
             host->budget.change_bytes;
}

/* ---- failures */

static void keep_failure(struct hb_host *host, struct hb_slice frame) {
  size_t size = host->call.is_kept ? 0 : frame.size + host->explanation.size;
  if (host->place.unprocessed_bytes + size > host->budget.failure_bytes) return;
  host->place.unprocessed_bytes += size;
  hb_reserve((void **)&host->failures, &host->failures_cap, host->failures_count + 1,
             sizeof *host->failures);
  host->failures[host->failures_count++] =
      (struct hb_failure){.position = host->call.position,
                          .offset = host->failed_bytes.size,
                          .frame_size = frame.size,
                          .explanation_size = host->explanation.size};
  hb_buf_append(&host->failed_bytes, frame.data, frame.size);
  hb_buf_append(&host->failed_bytes, host->explanation.data, host->explanation.size);
}

/* After a failure: it is not passed over. */
static bool stops(struct hb_host *host) {
  const struct hb_user_call *call = &host->call;
  if (host->on_error == HB_ON_ERROR_SUSPEND) return true;
  bool blocks =
      host->on_error == HB_ON_ERROR_WAIT && call->cause == HB_CAUSE_EVENT && !call->is_try;
  if (!blocks || hb_host_may_block(host, call->key)) return false;
  static const char FULL[] = "; and no more keys may wait than blocked_keys_max";
  hb_buf_append(&host->explanation, FULL, sizeof FULL - 1);
  return true;
}

/* How the call ended, for who drives. DONE: it is over, with or without success. */
static enum hb_host_result conclude(struct hb_host *host, int code, struct hb_slice frame,
                                    struct hb_err *err) {
  bool stands = hb_user_call_end(host, code);
  if (host->broken.code != HB_OK) {
    if (err) *err = host->broken;
    return HB_HOST_ERROR;
  }
  host->got_on = host->got_on || stands || host->call.cut;
  if (stands) {
    host->touched = true;
    return HB_HOST_DONE;
  }
  if (host->call.cut) {
    host->touched = true;
    return HB_HOST_FULL;
  }
  host->failure_position = host->call.position;
  if (stops(host)) return HB_HOST_FAILED;
  host->touched = true;
  *host->call.skip = 0;
  if (!host->call.is_try) host->place.failed++;
  if (host->call.cause == HB_CAUSE_EVENT && (!host->call.is_try || host->call.is_copy)) {
    keep_failure(host, frame);
  }
  return HB_HOST_DONE;
}

/* `event` NULL: it was none. */
static enum hb_host_result end_call(struct hb_host *host, int code, const struct hb_event *event,
                                    struct hb_err *err) {
  uint64_t failed = host->place.failed;
  struct hb_slice frame = event ? hb_event_frame(event) : (struct hb_slice){0};
  enum hb_host_result result = conclude(host, code, frame, err);
  if (result == HB_HOST_FAILED || result == HB_HOST_ERROR) return result;
  struct hb_status_change change = {.key = host->call.key,
                                    .event = result == HB_HOST_DONE ? event : NULL,
                                    .failed = host->place.failed > failed,
                                    .made_good = host->call.is_try,
                                    .results = host->results_count - host->call.first_result};
  if (host->call.is_try && host->call.failed) change.event = NULL;
  if (!change.event && change.results == 0) return result;
  return hb_status_note(host, &change, err) == HB_OK ? result : HB_HOST_ERROR;
}

/* ---- calls */

static struct hbp_bytes bytes_of(struct hb_slice slice) {
  return (struct hbp_bytes){slice.data, slice.size};
}

static struct hbp_time time_of(struct hb_time time) {
  return (struct hbp_time){.seconds = time.seconds, .nanos = time.nanos, .present = time.present};
}

/* The timer that fires next is gone afterwards, unless the call was cut. */
static enum hb_host_result run_timer(struct hb_host *host, int64_t position, struct hb_err *err) {
  const struct hb_event_timer *timer = hb_event_timers_first(&host->timers);
  struct hb_timer_row row = hb_event_timer_row(timer);
  struct hbp_timer given = {.size = sizeof given,
                            .key = bytes_of(row.key),
                            .name = bytes_of(row.name),
                            .time = time_of(row.time),
                            .position = position,
                            .watermark = time_of(host->place.watermark)};
  uint8_t *key = hb_memdup(row.key.data, row.key.size);
  hb_user_call_begin(host, HB_CAUSE_TIMER, position, hb_slice_of(key, row.key.size), row.time);
  int code = HBP_OK;
  if (host->processor->on_timer) {
    code = host->processor->on_timer(host->self, &host->calls, &given);
  }
  /* It is not set any more when what the call sets takes its place; a cut call runs again. */
  bool again = host->call.cut && code == HBP_OK && !host->call.failed;
  bool kept = host->on_error == HB_ON_ERROR_SUSPEND && (code != HBP_OK || host->call.failed);
  if (!again && !kept && host->broken.code == HB_OK) hb_event_timers_remove(&host->timers, timer);
  enum hb_host_result result = end_call(host, code, NULL, err);
  free(key);
  if (result == HB_HOST_DONE) host->place.timers_fired++;
  return result;
}

enum hb_host_result hb_host_run_event(struct hb_host *host, const struct hb_event *event,
                                      const struct hb_event_call *call, struct hb_err *err) {
  struct hbp_event given = {.size = sizeof given,
                            .key = bytes_of(hb_event_key(event)),
                            .payload = bytes_of(hb_event_payload(event)),
                            .position = call->position,
                            .sequence = event->sequence,
                            .time = time_of(event->time),
                            .watermark = time_of(host->place.watermark),
                            .initial = (event->flags & HB_EVENT_INITIAL) != 0,
                            .last = (event->flags & HB_EVENT_LAST) != 0};
  struct hb_slice frame = hb_event_frame(event);
  size_t lead = 1; /* the tag; then the length, whose last byte is below 0x80 */
  while (lead < frame.size && frame.data[lead] >= 0x80) lead++;
  lead++;
  given.encoded = (struct hbp_bytes){frame.data + lead, frame.size - lead};
  hb_user_call_begin(host, HB_CAUSE_EVENT, call->position, hb_event_key(event), event->time);
  host->call.skip = call->skip;
  host->call.is_try = call->is_try;
  host->call.is_copy = call->is_copy;
  host->call.is_kept = call->is_kept;
  int code = host->processor->on_event(host->self, &host->calls, &given);
  return end_call(host, code, event, err);
}

static enum hb_host_result run_end(struct hb_host *host, int64_t position, struct hb_slice key,
                                   struct hb_err *err) {
  struct hbp_end given = {.size = sizeof given,
                          .key = bytes_of(key),
                          .position = position,
                          .watermark = time_of(host->place.watermark)};
  hb_user_call_begin(host, HB_CAUSE_END, position, key, host->place.watermark);
  int code = host->processor->on_end(host->self, &host->calls, &given);
  return end_call(host, code, NULL, err);
}

/* ---- events */

static bool is_due(const struct hb_host *host, struct hb_time time) {
  const struct hb_event_timer *timer = hb_event_timers_first(&host->timers);
  return timer && time.present && hb_time_compare(timer->time, time) <= 0;
}

static enum hb_host_result run_or_pass(struct hb_host *host, const struct hb_event *event,
                                       int64_t position, struct hb_err *err) {
  struct hb_blocked_key *blocked = hb_blocked_find(&host->blocked, hb_event_key(event));
  if (blocked) return hb_host_pass_over(host, blocked, event, err);
  struct hb_event_call call = {.position = position, .skip = &host->place.skip};
  enum hb_host_result result = hb_host_run_event(host, event, &call, err);
  bool failed = result == HB_HOST_DONE && host->call.failed;
  if (failed && host->on_error == HB_ON_ERROR_WAIT) hb_host_block(host, event, position);
  return result;
}

enum hb_host_result hb_host_event(struct hb_host *host, const struct hb_event *event,
                                  int64_t position, struct hb_err *err) {
  HB_ASSERT(position >= host->place.position && host->place.phase == HB_PHASE_EVENTS);
  host->place.position = position;
  while (is_due(host, event->time)) {
    if (hb_host_is_full(host)) return HB_HOST_FULL;
    enum hb_host_result result = run_timer(host, position, err);
    if (result != HB_HOST_DONE) return result;
  }
  if (hb_host_is_full(host)) return HB_HOST_FULL;
  enum hb_host_result result = run_or_pass(host, event, position, err);
  if (result != HB_HOST_DONE) return result;
  if (hb_time_compare(event->time, host->place.watermark) > 0) host->place.watermark = event->time;
  host->place.position = position + 1;
  host->place.events++;
  host->events++;
  return HB_HOST_DONE;
}

void hb_host_expect(struct hb_host *host, struct hb_slice key) {
  hb_cache_expect(&host->cache, key);
}

void hb_host_skip_to(struct hb_host *host, int64_t position) {
  if (position <= host->place.position) return;
  host->place.position = position;
  host->touched = true;
}

/* ---- the end */

static enum hb_host_result last_timers(struct hb_host *host, int64_t position, struct hb_err *err) {
  while (hb_event_timers_first(&host->timers)) {
    if (hb_host_is_full(host)) return HB_HOST_FULL;
    enum hb_host_result result = run_timer(host, position, err);
    if (result != HB_HOST_DONE) return result;
  }
  /* The walk over keys sees the store: what it lacks is committed first. */
  host->place.phase = host->processor->on_end ? HB_PHASE_KEYS : HB_PHASE_ENDED;
  host->touched = true;
  return HB_HOST_FULL;
}

static enum hb_host_result last_keys(struct hb_host *host, int64_t position, struct hb_err *err) {
  struct hb_buf key = {0};
  enum hb_host_result result = HB_HOST_DONE;
  while (result == HB_HOST_DONE) {
    if (hb_host_is_full(host)) {
      result = HB_HOST_FULL;
      break;
    }
    bool found = false;
    hb_buf_clear(&key);
    enum hb_code code = host->source.next_key(host->source.context, host->place.has_end_key,
                                              host->place.end_key, &found, &key, err);
    if (code != HB_OK) result = HB_HOST_ERROR;
    if (code != HB_OK || !found) break;
    result = run_end(host, position, hb_buf_view(&key), err);
    if (result != HB_HOST_DONE) break;
    set_end_key(host, hb_buf_view(&key));
    host->events++;
  }
  hb_buf_done(&key);
  if (result != HB_HOST_DONE) return result;
  host->place.phase = HB_PHASE_ENDED;
  host->touched = true;
  return HB_HOST_DONE;
}

enum hb_host_result hb_host_end(struct hb_host *host, int64_t position, struct hb_err *err) {
  if (host->place.phase == HB_PHASE_ENDED) return HB_HOST_DONE;
  HB_ASSERT(position >= host->place.position);
  host->place.position = position;
  if (host->place.phase == HB_PHASE_EVENTS) {
    host->place.phase = HB_PHASE_TIMERS;
    host->touched = true;
  }
  if (host->place.phase == HB_PHASE_TIMERS) return last_timers(host, position, err);
  return last_keys(host, position, err);
}
