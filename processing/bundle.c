/* Decides what a commit gets: everything that changed since the last one, results cut into blocks.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/frame/block.h"
#include "processing/host_internal.h"
#include "processing/order_internal.h"

bool hb_host_has_bundle(const struct hb_host *host) { return host->touched; }

/* ---- states and statuses, by key */

static void take_states(struct hb_host *host) {
  struct hb_bundle *bundle = &host->bundle;
  const struct hb_cache *cache = &host->cache;
  hb_reserve((void **)&bundle->states, &host->states_cap, cache->dirty_count,
             sizeof *bundle->states);
  hb_states_sort(cache->dirty, cache->dirty_count);
  for (size_t i = 0; i < cache->dirty_count; i++) {
    const struct hb_state *state = cache->dirty[i];
    bundle->states[i] = (struct hb_state_row){.key = hb_state_key(state),
                                              .name = hb_state_name(state),
                                              .present = state->present,
                                              .value = hb_state_value(state)};
  }
  bundle->states_count = cache->dirty_count;
}

static void take_statuses(struct hb_host *host) {
  struct hb_bundle *bundle = &host->bundle;
  const struct hb_cache *cache = &host->statuses.keys;
  hb_reserve((void **)&bundle->statuses, &host->statuses_cap, cache->dirty_count,
             sizeof *bundle->statuses);
  hb_states_sort(cache->dirty, cache->dirty_count);
  for (size_t i = 0; i < cache->dirty_count; i++) {
    struct hb_key_status_row *row = &bundle->statuses[i];
    row->key = hb_state_key(cache->dirty[i]);
    memcpy(&row->status, hb_state_value(cache->dirty[i]).data, sizeof row->status);
  }
  bundle->statuses_count = cache->dirty_count;
}

/* ---- timers */

static size_t take_list(const struct hb_event_timer *first, struct hb_timer_row **rows,
                        size_t *cap) {
  size_t count = 0;
  for (const struct hb_event_timer *timer = first; timer; timer = timer->next) {
    hb_reserve((void **)rows, cap, count + 1, sizeof **rows);
    (*rows)[count++] = hb_event_timer_row(timer);
  }
  return count;
}

/* ---- logs: results, and statuses that are told */

struct log {
  const struct hb_buf *frames;
  const struct hb_result *items;
  size_t count;
  int64_t next; /* position after the last of them */
};

static struct hb_bytes *encode(const struct log *log, size_t first, size_t end, int64_t from) {
  size_t count = end - first;
  struct hb_block_entry *entries = hb_calloc(count, sizeof *entries);
  for (size_t i = 0; i < count; i++) {
    const struct hb_result *item = &log->items[first + i];
    entries[i] = (struct hb_block_entry){.sequence = from + (int64_t)i,
                                         .frame = log->frames->data + item->offset,
                                         .frame_size = item->size};
  }
  struct hb_bytes *block = hb_block_encode(HB_BLOCK_EVENTS, from, from + (int64_t)count,
                                           log->items[end - 1].max_time, entries, count);
  free(entries);
  return block;
}

static size_t take_log(const struct log *log, size_t block_bytes, struct hb_result_block **blocks,
                       size_t *cap) {
  int64_t from = log->next - (int64_t)log->count;
  size_t blocks_count = 0;
  for (size_t first = 0; first < log->count;) {
    size_t end = first;
    size_t bytes = 0;
    do {
      bytes += log->items[end++].size;
    } while (end < log->count && bytes + log->items[end].size <= block_bytes);
    hb_reserve((void **)blocks, cap, blocks_count + 1, sizeof **blocks);
    int64_t to = from + (int64_t)(end - first);
    (*blocks)[blocks_count++] =
        (struct hb_result_block){.from = from, .to = to, .block = encode(log, first, end, from)};
    from = to;
    first = end;
  }
  return blocks_count;
}

static void take_logs(struct hb_host *host) {
  struct hb_bundle *bundle = &host->bundle;
  struct log results = {.frames = &host->frames,
                        .items = host->results,
                        .count = host->results_count,
                        .next = host->place.next_result};
  struct log told = {.frames = &host->statuses.frames,
                     .items = host->statuses.told,
                     .count = host->statuses.told_count,
                     .next = host->place.next_status};
  size_t size = host->budget.block_bytes;
  bundle->results_count = take_log(&results, size, &bundle->results, &host->blocks_cap);
  bundle->told_count = take_log(&told, size, &bundle->told, &host->told_cap);
}

static void take_blocked(struct hb_host *host) {
  struct hb_bundle *bundle = &host->bundle;
  const struct hb_blocked *blocked = &host->blocked;
  bundle->blocked_count = bundle->unblocked_count = 0;
  hb_reserve((void **)&bundle->unblocked, &host->unblocked_cap, blocked->gone_count,
             sizeof *bundle->unblocked);
  for (size_t i = 0; i < blocked->gone_count; i++) {
    bundle->unblocked[bundle->unblocked_count++] = blocked->gone[i]->row.key;
  }
  for (size_t i = 0; i < blocked->count && blocked->dirty_bytes; i++) {
    if (!blocked->items[i]->dirty) continue;
    hb_reserve((void **)&bundle->blocked, &host->blocked_cap, bundle->blocked_count + 1,
               sizeof *bundle->blocked);
    bundle->blocked[bundle->blocked_count++] = blocked->items[i]->row;
  }
}

static void take_failures(struct hb_host *host) {
  struct hb_bundle *bundle = &host->bundle;
  hb_reserve((void **)&bundle->failures, &host->rows_cap, host->failures_count,
             sizeof *bundle->failures);
  bundle->failures_count = host->failures_count;
  for (size_t i = 0; i < host->failures_count; i++) {
    const struct hb_failure *failure = &host->failures[i];
    const uint8_t *at = host->failed_bytes.data + failure->offset;
    bundle->failures[i] = (struct hb_failure_row){
        .position = failure->position,
        .frame = hb_slice_of(at, failure->frame_size),
        .explanation = hb_slice_of(at + failure->frame_size, failure->explanation_size)};
  }
}

const struct hb_bundle *hb_host_take(struct hb_host *host) {
  struct hb_bundle *bundle = &host->bundle;
  take_states(host);
  bundle->timers_count = take_list(host->timers.fresh, &bundle->timers, &host->timers_cap);
  bundle->gone_count = take_list(host->timers.gone, &bundle->gone, &host->gone_cap);
  take_logs(host);
  take_statuses(host);
  take_blocked(host);
  take_failures(host);
  bundle->place = host->place;
  bundle->got_on = host->got_on;
  bundle->gave_up = host->gave_up;
  return bundle;
}

static void drop_blocks(struct hb_host *host) {
  for (size_t i = 0; i < host->bundle.results_count; i++) {
    hb_bytes_unref(host->bundle.results[i].block);
  }
  host->bundle.results_count = 0;
  for (size_t i = 0; i < host->bundle.told_count; i++) hb_bytes_unref(host->bundle.told[i].block);
  host->bundle.told_count = 0;
}

void hb_host_committed(struct hb_host *host) {
  drop_blocks(host);
  hb_cache_committed(&host->cache);
  hb_statuses_committed(&host->statuses);
  hb_event_timers_committed(&host->timers);
  hb_blocked_committed(&host->blocked);
  host->results_count = 0;
  hb_buf_clear(&host->frames);
  host->failures_count = 0;
  hb_buf_clear(&host->failed_bytes);
  host->events = 0;
  host->touched = host->got_on = host->gave_up = false;
}

void hb_bundle_done(struct hb_host *host) {
  drop_blocks(host);
  free(host->bundle.states);
  free(host->bundle.timers);
  free(host->bundle.gone);
  free(host->bundle.results);
  free(host->bundle.failures);
  free(host->bundle.blocked);
  free(host->bundle.unblocked);
  free(host->bundle.statuses);
  free(host->bundle.told);
  free(host->results);
  free(host->failures);
  hb_buf_done(&host->frames);
  hb_buf_done(&host->failed_bytes);
}
