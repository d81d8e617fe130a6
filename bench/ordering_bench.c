/* How many events a second the core takes alone: no wire, no disk, one thread.
 *
 *   bazel run -c opt //bench:ordering_bench [-- EVENTS]
 *
 * Disorder W: event i is sent at the rank of i + uniform[0, W). 100-byte payloads, batches of
 * 1,000, eight in a commit. Measured: submit, decide (blocks and bundles are encoded there),
 * committed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/frame/wire.h"
#include "ordering/ordering.h"
#include "ordering/sort.h"

enum { BATCH = 1000, BATCHES = 8, POOL = 131072, PAYLOAD = 100 };

struct pool {
  struct hb_buf bytes; /* frames of one size; a sequence is in the event, frames are only moved */
  size_t frame_size;
};

static uint64_t next_random(uint64_t *state) {
  *state += UINT64_C(0x9E3779B97F4A7C15);
  uint64_t z = *state;
  z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
  return z ^ (z >> 31);
}

static double cpu_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static struct pool make_pool(void) {
  struct pool pool = {0};
  uint8_t payload[PAYLOAD];
  memset(payload, 'x', sizeof payload);
  for (size_t i = 0; i < POOL; i++) {
    struct hb_buf event = {0};
    hb_wire_append_varint(&event, 1, UINT64_C(1) << 30);
    hb_wire_append_bytes(&event, 2, hb_slice_text("key-12345"));
    hb_wire_append_bytes(&event, 5, hb_slice_of(payload, sizeof payload));
    hb_wire_append_bytes(&pool.bytes, 1, hb_buf_view(&event));
    hb_buf_done(&event);
  }
  pool.frame_size = pool.bytes.size / POOL;
  return pool;
}

/* The order in which sequences 0 .. count are sent. */
static struct hb_item *make_order(size_t count, uint64_t width, bool reversed) {
  struct hb_item *items = hb_alloc(count * sizeof *items);
  struct hb_item *spare = hb_alloc(count * sizeof *items);
  uint64_t random = 1;
  for (size_t i = 0; i < count; i++) {
    uint64_t key = reversed ? count - i : i + next_random(&random) % width;
    items[i] = (struct hb_item){.sequence = (int64_t)key, .index = (uint32_t)i};
  }
  hb_sort_items(items, spare, count);
  free(spare);
  return items;
}

struct slot {
  struct hb_batch batch;
  struct hb_event events[BATCH];
  struct hb_decision decisions[BATCH];
};

static void fill(struct slot *slot, const struct pool *pool, const struct hb_item *order) {
  memset(slot->decisions, 0, sizeof slot->decisions);
  for (uint32_t i = 0; i < BATCH; i++) {
    size_t at = order[i].index % POOL;
    slot->events[i] = (struct hb_event){.sequence = order[i].index,
                                        .frame = pool->bytes.data + at * pool->frame_size,
                                        .frame_size = (uint32_t)pool->frame_size};
  }
  slot->batch = (struct hb_batch){.stream = 1,
                                  .call = 1,
                                  .events = slot->events,
                                  .decisions = slot->decisions,
                                  .count = BATCH,
                                  .bytes = BATCH * pool->frame_size};
}

static struct hb_ordering *make_core(void) {
  struct hb_ordering_options options = {.limits = hb_limits_default()};
  struct hb_limits *limits = &options.limits;
  struct hb_stream_config config = {.mode = HB_MODE_GLOBAL,
                                    .ack = HB_ACK_DURABLE,
                                    .limits = {.ahead_max = limits->ahead_max,
                                               .held_bytes_max = limits->held_bytes_max,
                                               .held_events_max = limits->held_events_max,
                                               .gaps_max = limits->gaps_max,
                                               .event_bytes_max = limits->event_bytes_max}};
  struct hb_ordering *core = hb_ordering_create(&options);
  struct hb_frontier record = hb_ordering_new_record(&config);
  enum hb_code code = hb_ordering_add_stream(core, 1, &config, &record, NULL);
  HB_ASSERT(code == HB_OK);
  return core;
}

struct totals {
  double seconds;
  size_t commits;
  size_t fetches; /* could not be served: nothing is stored here */
  uint64_t held_max;
};

static void commit(struct hb_ordering *core, struct hb_now now, struct totals *totals) {
  const struct hb_commit *decided = hb_ordering_decide(core, now);
  if (decided) hb_ordering_committed(core, decided);
  while (hb_ordering_take_answered(core)) continue;
  struct hb_bundle_id id;
  while (hb_ordering_take_fetch(core, &id)) totals->fetches++;
  totals->commits++;
}

static void run(const char *name, size_t count, uint64_t width, bool reversed,
                const struct pool *pool) {
  struct hb_item *order = make_order(count, width, reversed);
  struct slot *slots = hb_alloc(BATCHES * sizeof *slots);
  struct hb_ordering *core = make_core();
  struct totals totals = {0};
  struct hb_stream_status status;
  for (size_t at = 0; at < count; at += BATCH * BATCHES) {
    for (size_t i = 0; i < BATCHES; i++) fill(&slots[i], pool, order + at + i * BATCH);
    double start = cpu_s();
    struct hb_now now = {.served_ms = at / 400, .wall_ms = at / 400};
    for (size_t i = 0; i < BATCHES; i++) hb_ordering_submit(core, &slots[i].batch);
    while (hb_ordering_has_work(core)) commit(core, now, &totals);
    totals.seconds += cpu_s() - start;
    (void)hb_ordering_status(core, 1, now, &status);
    if (status.held_events > totals.held_max) totals.held_max = status.held_events;
  }
  (void)hb_ordering_status(core, 1, (struct hb_now){0}, &status);
  printf(
      "%-10s %9zu events  %6.0f ns/event  %5.2f M/s  held %4.0f%%  held_max %8llu  "
      "commits %6zu  fetches %zu%s\n",
      name, count, totals.seconds * 1e9 / (double)count, (double)count / totals.seconds / 1e6,
      (double)status.record.counters.held * 100.0 / (double)count,
      (unsigned long long)totals.held_max, totals.commits, totals.fetches,
      status.record.frontier == (int64_t)count ? "" : "  NOT ALL RELEASED");
  hb_ordering_destroy(core);
  free(slots);
  free(order);
}

int main(int argc, char **argv) {
  size_t round = (size_t)BATCH * BATCHES;
  size_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : 3000000;
  count = (count + round - 1) / round * round;
  struct pool pool = make_pool();
  run("W=1", count, 1, false, &pool);
  run("W=1000", count, 1000, false, &pool);
  run("W=1000000", count, 1000000, false, &pool);
  run("reversed", count / 8 / round * round + round, 1, true, &pool);
  hb_buf_done(&pool.bytes);
  return 0;
}
