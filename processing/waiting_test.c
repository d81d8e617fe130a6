/* Keys that wait at an event that failed. The store is a few arrays; the log is known beforehand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* cmocka needs the ones above */
#include <cmocka.h>

#include "base/frame/block.h"
#include "base/frame/scan.h"
#include "base/frame/wire.h"
#include "processing/host.h"

enum { KEYS = 5, EVENTS = 240, TEXT = 20000 };

/* ---- what the processor does: a key's payloads one after another; '!' fails; 1 to 4 results */

static int create(const struct hbp_parameter *parameters, size_t count, void **out_self,
                  char *error, size_t error_size) {
  (void)parameters;
  (void)count;
  (void)error;
  (void)error_size;
  *out_self = NULL;
  return HBP_OK;
}

static int results_of(int64_t sequence) { return 1 + (int)(sequence % 4); }

static int on_event(void *self, const struct hbp_host *host, const struct hbp_event *event) {
  (void)self;
  static const struct hbp_bytes NAME = {"s", 1};
  char text[EVENTS + 2];
  struct hbp_bytes value;
  int found;
  if (host->state_get(host, NAME, &value, &found)) return HBP_FAILED;
  size_t size = found ? value.size : 0;
  memcpy(text, value.data ? value.data : "", size);
  text[size] = *(const char *)event->payload.data;
  /* What a failing call did must leave nothing. */
  if (host->state_put(host, NAME, (struct hbp_bytes){text, size + 1})) return HBP_FAILED;
  for (int i = 0; i < results_of(event->sequence); i++) {
    if (host->emit(host, (struct hbp_bytes){text, size + 1})) return HBP_FAILED;
  }
  return text[size] == '!' ? host->give_up(host, "a '!'") : HBP_OK;
}

static const struct hbp_processor APPENDS = {.abi_version = HBP_ABI,
                                             .size = sizeof APPENDS,
                                             .name = "appends",
                                             .create = create,
                                             .on_event = on_event};

/* ---- the log, and copies that were kept */

struct entry {
  int key;
  int64_t sequence;
  char payload;
  char copy; /* of a '!': a good one; 0: none comes; '-': neither, and it is given up */
};

static unsigned next_random(unsigned *seed) {
  *seed = *seed * 1103515245u + 12345u;
  return *seed >> 16 & 0x7fff;
}

static void make_log(struct entry *log, unsigned *seed) {
  int64_t next[KEYS] = {0};
  for (int i = 0; i < EVENTS; i++) {
    int key = (int)(next_random(seed) % KEYS);
    bool bad = next_random(seed) % 6 == 0;
    bool comes = next_random(seed) % 12 != 0;
    log[i] = (struct entry){.key = key,
                            .sequence = next[key]++,
                            .payload = bad ? '!' : (char)('a' + i % 26),
                            .copy = bad && comes ? (char)('A' + i % 26) : '\0'};
    if (bad && next_random(seed) % 6 == 0) log[i].copy = '-';
  }
}

static void make_event(struct hb_buf *out, const struct entry *entry, char payload,
                       struct hb_event *event) {
  struct hb_buf body = {0};
  uint8_t key = (uint8_t)('0' + entry->key);
  if (entry->sequence) hb_wire_append_varint(&body, 1, (uint64_t)entry->sequence);
  hb_wire_append_bytes(&body, 2, hb_slice_of(&key, 1));
  hb_wire_append_bytes(&body, 5, hb_slice_of((const uint8_t *)&payload, 1));
  hb_buf_clear(out);
  hb_wire_append_bytes(out, 1, hb_buf_view(&body));
  hb_buf_done(&body);
  struct hb_err err;
  assert_int_equal(hb_scan_frame(hb_buf_view(out), event, &err), HB_OK);
}

/* "0:ab@3 ..." of all results of a key, as they must be. */
static void expect(const struct entry *log, int key, char *out) {
  char text[EVENTS + 2] = "";
  size_t size = 0;
  size_t used = 0;
  out[0] = '\0';
  for (int i = 0; i < EVENTS; i++) {
    if (log[i].key != key) continue;
    char payload = log[i].payload == '!' ? log[i].copy : log[i].payload;
    if (!payload) return;
    if (payload == '-') continue;
    text[size++] = payload;
    text[size] = '\0';
    for (int k = 0; k < results_of(log[i].sequence); k++) {
      used += (size_t)snprintf(out + used, TEXT - used, "%s@%d ", text, i);
    }
  }
}

/* ---- the store */

struct store {
  char states[KEYS][EVENTS + 2];
  size_t state_sizes[KEYS];
  struct hb_key_status statuses[KEYS];
  struct hb_blocked_row blocked[KEYS]; /* without the key */
  bool is_blocked[KEYS];
  struct hb_processor_place place;
  char results[KEYS][TEXT];
  size_t failures;
  bool gave_up; /* the last bundle */
};

static int key_of(struct hb_slice key) {
  assert_int_equal(key.size, 1);
  return key.data[0] - '0';
}

static enum hb_code get(void *context, struct hb_slice key, struct hb_slice name, bool *out_found,
                        struct hb_buf *out, struct hb_err *err) {
  (void)name;
  (void)err;
  const struct store *store = context;
  int at = key_of(key);
  *out_found = store->state_sizes[at] > 0;
  hb_buf_append(out, (const uint8_t *)store->states[at], store->state_sizes[at]);
  return HB_OK;
}

static enum hb_code get_status(void *context, struct hb_slice key, struct hb_key_status *out,
                               struct hb_err *err) {
  (void)err;
  *out = ((const struct store *)context)->statuses[key_of(key)];
  return HB_OK;
}

static void put_result(struct store *store, struct hb_slice frame) {
  struct hb_event event;
  struct hb_err err;
  assert_int_equal(hb_scan_frame(frame, &event, &err), HB_OK);
  struct hb_slice payload = hb_event_payload(&event);
  /* The cause is field 9, behind the payload; absent where it is 0. */
  const uint8_t *at = payload.data + payload.size;
  int64_t cause = 0;
  if (at[0] == 9 << 3) cause = at[1] & 0x80 ? (at[1] & 0x7f) | at[2] << 7 : at[1];
  char *out = store->results[key_of(hb_event_key(&event))];
  size_t used = strlen(out);
  snprintf(out + used, TEXT - used, "%.*s@%d ", (int)payload.size, (const char *)payload.data,
           (int)cause);
}

static void commit(struct store *store, struct hb_host *host) {
  if (!hb_host_has_bundle(host)) return;
  const struct hb_bundle *bundle = hb_host_take(host);
  for (size_t i = 0; i < bundle->states_count; i++) {
    const struct hb_state_row *row = &bundle->states[i];
    memcpy(store->states[key_of(row->key)], row->value.data, row->value.size);
    store->state_sizes[key_of(row->key)] = row->value.size;
  }
  for (size_t i = 0; i < bundle->statuses_count; i++) {
    store->statuses[key_of(bundle->statuses[i].key)] = bundle->statuses[i].status;
  }
  for (size_t i = 0; i < bundle->unblocked_count; i++) {
    int key = key_of(bundle->unblocked[i]);
    assert_true(store->is_blocked[key]);
    store->is_blocked[key] = false;
  }
  for (size_t i = 0; i < bundle->blocked_count; i++) {
    int key = key_of(bundle->blocked[i].key);
    store->is_blocked[key] = true;
    store->blocked[key] = bundle->blocked[i];
  }
  for (size_t i = 0; i < bundle->results_count; i++) {
    struct hb_block block;
    assert_int_equal(hb_block_decode(hb_bytes_view(bundle->results[i].block), &block, NULL), HB_OK);
    for (uint32_t k = 0; k < block.count; k++) put_result(store, hb_block_frame(&block, k));
  }
  store->failures += bundle->failures_count;
  store->place = bundle->place;
  store->gave_up = bundle->gave_up;
  hb_host_committed(host);
}

static struct hb_host *open_host(struct store *store, uint32_t blocked_keys) {
  struct hb_host_options options = {
      .processor = &APPENDS,
      .source = {.context = store, .get = get, .get_status = get_status},
      .budget = {.results = 7, .blocked_keys = blocked_keys},
      .on_error = HB_ON_ERROR_WAIT,
      .key_status = HB_KEY_STATUS_KEPT};
  struct hb_host *host = hb_host_create(&options);
  hb_host_restore(host, &store->place);
  for (int i = 0; i < KEYS; i++) {
    uint8_t key = (uint8_t)('0' + i);
    struct hb_blocked_row row = store->blocked[i];
    row.key = hb_slice_of(&key, 1);
    if (!store->is_blocked[i]) continue;
    hb_host_restore_blocked(host, &row);
    hb_blocked_look(hb_blocked_find(hb_host_blocked(host), row.key), false);
  }
  return host;
}

/* ---- running */

struct run {
  const struct entry *log;
  struct store *store;
  struct hb_host *host;
  struct hb_buf frame;
  unsigned seed;
};

static enum hb_host_result feed_next(struct run *run) {
  int64_t at = hb_host_place(run->host)->position;
  struct hb_event event;
  make_event(&run->frame, &run->log[at], run->log[at].payload, &event);
  return hb_host_event(run->host, &event, at, NULL);
}

/* The key's event at or above `from`. */
static int64_t find_next(const struct run *run, int key, int64_t from) {
  while (run->log[from].key != key) from++;
  return from;
}

static enum hb_host_result work_on(struct run *run, struct hb_blocked_key *key) {
  struct hb_event event;
  if (key->row.phase == HB_BLOCKED_CATCHES_UP) {
    int64_t at = find_next(run, key_of(key->row.key), key->row.next);
    make_event(&run->frame, &run->log[at], run->log[at].payload, &event);
    return hb_host_catch_up(run->host, key, &event, at, NULL);
  }
  const struct entry *failed = &run->log[key->row.position];
  assert_int_equal(failed->sequence, key->row.sequence);
  if (failed->copy == '-' && next_random(&run->seed) % 2)
    return hb_host_give_up(run->host, key, NULL);
  bool comes =
      failed->copy > '-' && (key->row.phase == HB_BLOCKED_CHOSEN || next_random(&run->seed) % 3);
  bool good = false;
  make_event(&run->frame, failed, comes ? failed->copy : '!', &event);
  enum hb_host_result result =
      hb_host_try(run->host, key, &event, comes ? HB_TRY_COPY : HB_TRY_FAILED, &good, NULL);
  if (result != HB_HOST_DONE) return result;
  assert_int_equal(good, comes);
  if (!failed->copy) key->try_copies = false;
  return HB_HOST_DONE;
}

static void crash(struct run *run) {
  hb_host_destroy(run->host);
  run->host = open_host(run->store, 0);
}

/* In any order of new events, tries and commits, until nothing is left to do. */
static void run_all(struct run *run) {
  for (;;) {
    const struct hb_processor_place *place = hb_host_place(run->host);
    struct hb_blocked_key *key = hb_blocked_next(hb_host_blocked(run->host));
    bool more = place->position < EVENTS;
    if (!more && !key) break;
    bool feeds = more && (!key || place->skip > 0 || next_random(&run->seed) % 2);
    enum hb_host_result result = feeds ? feed_next(run) : work_on(run, key);
    assert_true(result == HB_HOST_DONE || result == HB_HOST_FULL);
    if (next_random(&run->seed) % 9 == 0) {
      crash(run);
    } else if (result == HB_HOST_FULL || next_random(&run->seed) % 5 == 0) {
      commit(run->store, run->host);
    }
  }
  commit(run->store, run->host);
}

/* Events of the key that were given up. */
static uint64_t count_given_up(const struct run *run, int key) {
  const struct store *store = run->store;
  int64_t end = store->is_blocked[key] ? store->blocked[key].position : EVENTS;
  uint64_t count = 0;
  for (int64_t i = 0; i < end; i++) {
    count += run->log[i].key == key && run->log[i].payload == '!' && run->log[i].copy == '-';
  }
  return count;
}

static void check_key(const struct run *run, int key) {
  static char expected[TEXT];
  const struct store *store = run->store;
  expect(run->log, key, expected);
  assert_string_equal(store->results[key], expected);
  uint64_t passed = store->is_blocked[key] ? store->blocked[key].passed : 0;
  const struct hb_key_status *status = &store->statuses[key];
  uint64_t came = 0;
  for (int i = 0; i < EVENTS; i++) came += run->log[i].key == key;
  assert_int_equal(status->processed + status->failed + passed, came);
  assert_int_equal(status->failed, store->is_blocked[key] + count_given_up(run, key));
  assert_int_equal(status->processed, store->state_sizes[key]);
}

/* Whenever good events come or failed ones are given up, and whatever is lost in between: a key's
 * results are those that it would have had if the good ones had been there and those given up had
 * not, each once, with the same causes; a key that gets none stops there. Each event of a key is
 * processed, failed or waits. */
static void test_order(void **state) {
  (void)state;
  for (unsigned seed = 1; seed <= 60; seed++) {
    struct entry log[EVENTS];
    struct store *store = calloc(1, sizeof *store);
    struct run run = {.log = log, .store = store, .seed = seed};
    make_log(log, &run.seed);
    run.host = open_host(store, 0);
    run_all(&run);
    for (int key = 0; key < KEYS; key++) check_key(&run, key);
    hb_host_destroy(run.host);
    hb_buf_done(&run.frame);
    free(store);
  }
}

/* A key too many is refused: the event that failed is not passed over, and the reason says so. */
static void test_limit(void **state) {
  (void)state;
  static const struct entry LOG[] = {
      {0, 0, '!', 0}, {0, 1, 'a', 0}, {1, 0, '!', 0}, {2, 0, '!', 0}};
  struct store *store = calloc(1, sizeof *store);
  struct run run = {.log = LOG, .store = store, .host = open_host(store, 2)};
  for (int i = 0; i < 3; i++) assert_int_equal(feed_next(&run), HB_HOST_DONE);
  assert_int_equal(hb_host_stats(run.host).blocked_keys, 2);
  assert_int_equal(feed_next(&run), HB_HOST_FAILED);
  int64_t at;
  struct hb_slice why = hb_host_failure(run.host, &at);
  assert_int_equal(at, 3);
  assert_memory_equal(why.data, "a '!'; and no more keys may wait than blocked_keys_max", why.size);
  assert_int_equal(hb_host_place(run.host)->position, 3);
  commit(store, run.host);
  assert_int_equal(store->failures, 2);
  hb_host_destroy(run.host);
  hb_buf_done(&run.frame);
  free(store);
}

/* A copy that fails too is kept with the reason, and is remembered; the event that failed, tried
 * again, is not kept twice; nor does a copy that was kept count against the quota again. The key
 * waits on either way. */
static void test_bad_copy(void **state) {
  (void)state;
  static const struct entry LOG[] = {{0, 0, '!', 0}};
  struct store *store = calloc(1, sizeof *store);
  struct run run = {.log = LOG, .store = store, .host = open_host(store, 0)};
  assert_int_equal(feed_next(&run), HB_HOST_DONE);
  struct hb_blocked_key *key = hb_blocked_next(hb_host_blocked(run.host));
  struct hb_event event;
  bool good = true;
  make_event(&run.frame, &LOG[0], '!', &event);
  assert_int_equal(hb_host_try(run.host, key, &event, HB_TRY_FAILED, &good, NULL), HB_HOST_DONE);
  assert_false(good);
  assert_int_equal(key->tried_count, 0);
  commit(store, run.host);
  assert_int_equal(store->failures, 1);
  uint64_t bytes = store->place.unprocessed_bytes;
  assert_int_equal(hb_host_try(run.host, key, &event, HB_TRY_COPY, &good, NULL), HB_HOST_DONE);
  assert_false(good);
  assert_int_equal(key->tried_count, 1);
  commit(store, run.host);
  assert_int_equal(store->failures, 2);
  assert_int_equal(store->place.unprocessed_bytes, 2 * bytes);
  assert_int_equal(hb_host_try(run.host, key, &event, HB_TRY_KEPT, &good, NULL), HB_HOST_DONE);
  commit(store, run.host);
  assert_int_equal(store->failures, 3); /* its row counts one more */
  assert_int_equal(store->place.unprocessed_bytes, 2 * bytes);
  assert_int_equal(store->place.failed, 1);
  assert_true(store->is_blocked[0]);
  hb_host_destroy(run.host);
  hb_buf_done(&run.frame);
  free(store);
}

/* A key without anything behind the event that is given up waits no more at once, and the next
 * commit says so; the bundle has to be durable before that is told. Results of a good event that
 * are committed already, where other code fails at the rest of it, stay, and cost the next event
 * none of its own. */
static void test_give_up(void **state) {
  (void)state;
  static const struct entry LOG[] = {{0, 3, '!', 0}, {0, 4, 'b', 0}};
  struct store *store = calloc(1, sizeof *store);
  struct run run = {.log = LOG, .store = store, .host = open_host(store, 0)};
  assert_int_equal(feed_next(&run), HB_HOST_DONE);
  commit(store, run.host);
  assert_true(store->is_blocked[0]);
  store->blocked[0].skip = 2;
  crash(&run);
  struct hb_blocked_key *key = hb_blocked_next(hb_host_blocked(run.host));
  assert_int_equal(hb_host_give_up(run.host, key, NULL), HB_HOST_DONE);
  assert_int_equal(hb_host_stats(run.host).blocked_keys, 0);
  commit(store, run.host);
  assert_true(store->gave_up);
  assert_false(store->is_blocked[0]);
  assert_int_equal(store->statuses[0].failed, 1);
  assert_int_equal(feed_next(&run), HB_HOST_DONE);
  commit(store, run.host);
  assert_false(store->gave_up);
  assert_string_equal(store->results[0], "b@1 ");
  hb_host_destroy(run.host);
  hb_buf_done(&run.frame);
  free(store);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_order), cmocka_unit_test(test_limit),
                                     cmocka_unit_test(test_bad_copy),
                                     cmocka_unit_test(test_give_up)};
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
