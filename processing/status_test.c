/* Statuses by key: what they count, when they are told, and that a bundle which is cut or made
 * again counts nothing twice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* cmocka needs the ones above */
#include <cmocka.h>

#include "base/alloc.h"
#include "base/frame/block.h"
#include "base/frame/wire.h"
#include "processing/host.h"

/* ---- what is committed */

enum { KEYS = 4 };

struct store {
  struct hb_key_status statuses[KEYS]; /* of the keys "0" to "3" */
  uint64_t told;
  int64_t blocked_at[32]; /* as told, by position; -1: not blocked */
  struct hb_processor_place place;
  enum hb_on_error on_error;
};

static enum hb_code get(void *context, struct hb_slice key, struct hb_slice name, bool *out_found,
                        struct hb_buf *out, struct hb_err *err) {
  (void)context;
  (void)key;
  (void)name;
  (void)out;
  (void)err;
  *out_found = false;
  return HB_OK;
}

static enum hb_code get_status(void *context, struct hb_slice key, struct hb_key_status *out,
                               struct hb_err *err) {
  (void)err;
  *out = ((struct store *)context)->statuses[key.data[0] - '0'];
  return HB_OK;
}

/* ---- a processor: as many results as the payload has bytes; "f" fails */

static int repeat_create(const struct hbp_parameter *parameters, size_t count, void **out_self,
                         char *error, size_t error_size) {
  (void)parameters;
  (void)count;
  (void)error;
  (void)error_size;
  *out_self = NULL;
  return HBP_OK;
}

static int repeat_event(void *self, const struct hbp_host *host, const struct hbp_event *event) {
  (void)self;
  const char *at = event->payload.data;
  for (size_t i = 0; i < event->payload.size; i++) {
    if (at[i] == 'f') return host->give_up(host, "told to");
    if (host->emit(host, event->payload)) return HBP_FAILED;
  }
  return HBP_OK;
}

static const struct hbp_processor REPEAT = {.abi_version = HBP_ABI,
                                            .size = sizeof REPEAT,
                                            .name = "repeat",
                                            .create = repeat_create,
                                            .on_event = repeat_event};

static struct hb_host *open_host(struct store *store, enum hb_key_status_mode mode) {
  struct hb_host_options options = {
      .processor = &REPEAT,
      .source = {.context = store, .get = get, .get_status = get_status},
      .budget = {.results = 3, .cache_bytes = 1},
      .on_error = store->on_error,
      .key_status = mode};
  struct hb_host *host = hb_host_create(&options);
  hb_host_restore(host, &store->place);
  return host;
}

static int64_t blocked_at(struct hb_slice frame) {
  struct hb_wire_reader reader = {frame.data, frame.data + frame.size};
  struct hb_wire_field field;
  assert_int_equal(hb_wire_next(&reader, &field), HB_WIRE_FIELD);
  reader = (struct hb_wire_reader){field.bytes.data, field.bytes.data + field.bytes.size};
  while (hb_wire_next(&reader, &field) == HB_WIRE_FIELD) {
    if (field.number == 21) return (int64_t)field.number_value;
  }
  return -1;
}

static void note_told(struct store *store, const struct hb_result_block *told) {
  struct hb_block block;
  assert_int_equal(hb_block_decode(hb_bytes_view(told->block), &block, NULL), HB_OK);
  for (uint32_t i = 0; i < block.count; i++) {
    size_t at = (size_t)told->from + i;
    if (at < 32) store->blocked_at[at] = blocked_at(hb_block_frame(&block, i));
  }
}

static void commit(struct hb_host *host, struct store *store) {
  const struct hb_bundle *bundle = hb_host_take(host);
  for (size_t i = 0; i < bundle->statuses_count; i++) {
    store->statuses[bundle->statuses[i].key.data[0] - '0'] = bundle->statuses[i].status;
  }
  for (size_t i = 0; i < bundle->told_count; i++) {
    assert_int_equal(bundle->told[i].from, store->told);
    note_told(store, &bundle->told[i]);
    store->told = (uint64_t)bundle->told[i].to;
  }
  store->place = bundle->place;
  assert_int_equal(store->told, store->place.next_status);
  hb_host_committed(host);
}

static void make_frame(struct hb_buf *frame, int64_t sequence, const char *key, const char *payload,
                       bool last, struct hb_event *out) {
  struct hb_buf event = {0};
  if (sequence) hb_wire_append_varint(&event, 1, (uint64_t)sequence);
  hb_wire_append_bytes(&event, 2, hb_slice_text(key));
  hb_wire_append_bytes(&event, 5, hb_slice_text(payload));
  if (last) hb_wire_append_varint(&event, 8, 1);
  hb_buf_clear(frame);
  hb_wire_append_bytes(frame, 1, hb_buf_view(&event));
  hb_buf_done(&event);
  assert_int_equal(hb_scan_frame(hb_buf_view(frame), out, NULL), HB_OK);
}

static void feed(struct hb_host *host, struct store *store, int64_t sequence, const char *key,
                 const char *payload, bool last) {
  struct hb_buf frame = {0};
  struct hb_event event;
  make_frame(&frame, sequence, key, payload, last, &event);
  enum hb_host_result result;
  while ((result = hb_host_event(host, &event, sequence, NULL)) == HB_HOST_FULL) {
    commit(host, store);
  }
  assert_int_equal(result, HB_HOST_DONE);
  hb_buf_done(&frame);
}

static void refuse(struct hb_host *host, struct store *store, const char *key, bool duplicate) {
  enum hb_host_result result;
  while ((result = hb_host_refused(host, hb_slice_text(key), duplicate, NULL)) == HB_HOST_FULL) {
    commit(host, store);
  }
  assert_int_equal(result, HB_HOST_DONE);
}

static void check(const struct hb_key_status *status, int64_t last, uint64_t processed,
                  uint64_t failed, uint64_t results, uint64_t duplicates, uint64_t rejected) {
  assert_int_equal(status->last_processed, last);
  assert_int_equal(status->processed, processed);
  assert_int_equal(status->failed, failed);
  assert_int_equal(status->results, results);
  assert_int_equal(status->duplicates, duplicates);
  assert_int_equal(status->rejected, rejected);
}

/* Each event counts once, with all of its results, in however many bundles they are committed; what
 * fails is neither processed nor the last one that was. */
static void test_counts(void **state) {
  (void)state;
  struct store store = {.place = {.position = 1}};
  struct hb_host *host = open_host(&store, HB_KEY_STATUS_KEPT);
  feed(host, &store, 1, "0", "12345678", false);
  feed(host, &store, 2, "1", "", false);
  feed(host, &store, 3, "0", "12f", false);
  feed(host, &store, 4, "0", "1", false);
  refuse(host, &store, "1", true);
  refuse(host, &store, "2", false);
  commit(host, &store);
  check(&store.statuses[0], 4, 2, 1, 9, 0, 0);
  check(&store.statuses[1], 2, 1, 0, 0, 1, 0);
  check(&store.statuses[2], 0, 0, 0, 0, 0, 1);
  assert_true(store.statuses[0].any && store.statuses[1].any && !store.statuses[2].any);
  assert_int_equal(store.told, 0);
  hb_host_destroy(host);
}

/* GS10: the flag of the producer, in GLOBAL mode too, whatever becomes of the event. */
static void test_last(void **state) {
  (void)state;
  struct store store = {.place = {.position = 1}};
  struct hb_host *host = open_host(&store, HB_KEY_STATUS_KEPT);
  feed(host, &store, 1, "0", "a", false);
  feed(host, &store, 2, "0", "z", true);
  feed(host, &store, 3, "1", "f", true);
  feed(host, &store, 4, "1", "a", false);
  commit(host, &store);
  assert_true(store.statuses[0].last_received && store.statuses[1].last_received);
  assert_false(store.statuses[2].last_received);
  hb_host_destroy(host);
}

/* Told once per event, processed, failed or refused, with positions that follow on each other; an
 * event whose results take three bundles is told of by the last of them. */
static void test_every_event(void **state) {
  (void)state;
  struct store store = {.place = {.position = 1}};
  struct hb_host *host = open_host(&store, HB_KEY_STATUS_EVERY_EVENT);
  feed(host, &store, 1, "0", "12345678", false);
  feed(host, &store, 2, "0", "f", false);
  refuse(host, &store, "3", true);
  commit(host, &store);
  assert_int_equal(store.told, 3);
  hb_host_destroy(host);
  host = open_host(&store, HB_KEY_STATUS_EVERY_EVENT); /* after a crash */
  feed(host, &store, 3, "0", "a", false);
  commit(host, &store);
  assert_int_equal(store.told, 4);
  check(&store.statuses[0], 3, 2, 1, 9, 0, 0);
  hb_host_destroy(host);
}

/* What a bundle that was lost had counted is counted again from what is committed: once. */
static void test_lost(void **state) {
  (void)state;
  struct store store = {.place = {.position = 1}};
  struct hb_host *host = open_host(&store, HB_KEY_STATUS_EVERY_EVENT);
  feed(host, &store, 1, "0", "a", false);
  commit(host, &store);
  feed(host, &store, 2, "0", "a", false);
  feed(host, &store, 3, "1", "a", false);
  (void)hb_host_take(host);
  hb_host_destroy(host);
  host = open_host(&store, HB_KEY_STATUS_EVERY_EVENT);
  feed(host, &store, 2, "0", "a", false);
  feed(host, &store, 3, "1", "a", false);
  commit(host, &store);
  check(&store.statuses[0], 2, 2, 0, 2, 0, 0);
  check(&store.statuses[1], 3, 1, 0, 1, 0, 0);
  assert_int_equal(store.told, 3);
  hb_host_destroy(host);
}

/* Told when somebody says so, once for each key that changed since. */
static void test_periodic(void **state) {
  (void)state;
  struct store store = {.place = {.position = 0}};
  struct hb_host *host = open_host(&store, HB_KEY_STATUS_PERIODIC);
  for (int64_t i = 0; i < 30; i++) {
    feed(host, &store, i, i % 2 ? "1" : "0", "a", false);
  }
  commit(host, &store);
  assert_int_equal(store.told, 0);
  assert_int_equal(hb_host_statuses_due(host), 2);
  assert_int_equal(hb_host_tell_statuses(host, NULL), HB_HOST_DONE);
  commit(host, &store);
  assert_int_equal(store.told, 2);
  assert_int_equal(hb_host_statuses_due(host), 0);
  feed(host, &store, 30, "1", "a", false);
  assert_int_equal(hb_host_statuses_due(host), 1);
  assert_int_equal(hb_host_tell_statuses(host, NULL), HB_HOST_DONE);
  commit(host, &store);
  assert_int_equal(store.told, 3);
  check(&store.statuses[1], 30, 16, 0, 16, 0, 0);
  hb_host_destroy(host);
}

static void expect_blocked(const struct store *store, const int64_t *expected, size_t count) {
  assert_int_equal(store->told, count);
  for (size_t i = 0; i < count; i++) assert_int_equal(store->blocked_at[i], expected[i]);
}

/* What is told says where the key is blocked as of the event that it tells of: from the one that
 * fails on, refusals included, until a good one, or until it is given up, which is told, too. */
static void test_blocked(void **state) {
  (void)state;
  struct store store = {.place = {.position = 1}, .on_error = HB_ON_ERROR_WAIT};
  struct hb_host *host = open_host(&store, HB_KEY_STATUS_EVERY_EVENT);
  feed(host, &store, 1, "0", "a", false);
  feed(host, &store, 2, "0", "f", false);
  feed(host, &store, 3, "0", "f", false); /* waits: not told */
  feed(host, &store, 4, "1", "a", false);
  refuse(host, &store, "0", true);
  commit(host, &store);
  expect_blocked(&store, (const int64_t[]){-1, 2, -1, 2}, 4);
  assert_int_equal(
      hb_host_give_up(host, hb_blocked_find(hb_host_blocked(host), hb_slice_text("0")), NULL),
      HB_HOST_DONE);
  commit(host, &store);
  expect_blocked(&store, (const int64_t[]){-1, 2, -1, 2, -1}, 5);
  struct hb_buf frame = {0};
  struct hb_event event;
  struct hb_blocked_key *key = hb_blocked_find(hb_host_blocked(host), hb_slice_text("0"));
  make_frame(&frame, 3, "0", "f", false, &event);
  assert_int_equal(hb_host_catch_up(host, key, &event, 3, NULL), HB_HOST_DONE);
  make_frame(&frame, 3, "0", "b", false, &event);
  bool good;
  assert_int_equal(hb_host_try(host, key, &event, HB_TRY_COPY, &good, NULL), HB_HOST_DONE);
  assert_true(good);
  commit(host, &store);
  expect_blocked(&store, (const int64_t[]){-1, 2, -1, 2, -1, 3, -1}, 7);
  check(&store.statuses[0], 3, 2, 1, 2, 1, 0);
  hb_buf_done(&frame);
  hb_host_destroy(host);
}

/* A periodic status says it as of when it is told. */
static void test_blocked_periodic(void **state) {
  (void)state;
  struct store store = {.place = {.position = 1}, .on_error = HB_ON_ERROR_WAIT};
  struct hb_host *host = open_host(&store, HB_KEY_STATUS_PERIODIC);
  feed(host, &store, 1, "0", "f", false);
  assert_int_equal(hb_host_tell_statuses(host, NULL), HB_HOST_DONE);
  commit(host, &store);
  struct hb_blocked_key *key = hb_blocked_find(hb_host_blocked(host), hb_slice_text("0"));
  assert_int_equal(hb_host_give_up(host, key, NULL), HB_HOST_DONE);
  assert_int_equal(hb_host_statuses_due(host), 1);
  assert_int_equal(hb_host_tell_statuses(host, NULL), HB_HOST_DONE);
  commit(host, &store);
  expect_blocked(&store, (const int64_t[]){1, -1}, 2);
  hb_host_destroy(host);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_counts),          cmocka_unit_test(test_last),
      cmocka_unit_test(test_every_event),     cmocka_unit_test(test_lost),
      cmocka_unit_test(test_periodic),        cmocka_unit_test(test_blocked),
      cmocka_unit_test(test_blocked_periodic)};
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
