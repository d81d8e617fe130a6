/* Decides how a scenario drives the core: commits that succeed, NEED and FETCH answered from a
 * fake. */
#include "tests/model/driver.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct hb_stream_config hb_driver_config(int64_t first_sequence) {
  struct hb_limits limits = hb_limits_default();
  struct hb_stream_config config = {
      .mode = HB_MODE_GLOBAL,
      .first_sequence = first_sequence,
      .ack = HB_ACK_DURABLE,
      .limits = {.ahead_max = limits.ahead_max,
                 .held_bytes_max = limits.held_bytes_max,
                 .held_events_max = limits.held_events_max,
                 .gaps_max = limits.gaps_max,
                 .event_bytes_max = limits.event_bytes_max},
  };
  memcpy(config.name, "test", sizeof "test");
  return config;
}

void hb_driver_start(struct hb_driver *driver, const struct hb_ordering_options *options) {
  memset(driver, 0, sizeof *driver);
  if (options) driver->options = *options;
  if (!driver->options.limits.ahead_max) driver->options.limits = hb_limits_default();
  driver->now = (struct hb_now){.served_ms = 1000, .wall_ms = 1700000001000};
  driver->core = hb_ordering_create(&driver->options);
}

struct hb_test_batch *hb_driver_submit(struct hb_driver *driver, uint64_t stream, uint64_t call,
                                       const struct hb_test_event *events, size_t count) {
  struct hb_test_batch *batch = hb_test_batch_create(stream, call, events, count);
  assert_true(driver->batches_count < sizeof driver->batches / sizeof *driver->batches);
  driver->batches[driver->batches_count++] = batch;
  hb_ordering_submit(driver->core, &batch->batch);
  return batch;
}

void hb_driver_collect(struct hb_driver *driver) {
  struct hb_batch *batch;
  while ((batch = hb_ordering_take_answered(driver->core))) {
    struct hb_test_batch *test = (struct hb_test_batch *)batch;
    assert_false(test->answered);
    test->answered = true;
  }
}

void hb_driver_expect(const struct hb_test_batch *batch, uint32_t index, enum hb_outcome outcome,
                      enum hb_reason reason) {
  assert_true(batch->answered);
  assert_int_equal(batch->batch.error.code, HB_OK);
  assert_int_equal(batch->batch.decisions[index].outcome, outcome);
  assert_int_equal(batch->batch.decisions[index].reason, reason);
}

struct hb_decision hb_driver_send(struct hb_driver *driver, uint64_t stream,
                                  struct hb_test_event event) {
  struct hb_test_batch *batch = hb_driver_submit(driver, stream, 1, &event, 1);
  hb_driver_settle(driver);
  assert_true(batch->answered);
  assert_int_equal(batch->batch.error.code, HB_OK);
  return batch->batch.decisions[0];
}

void hb_driver_stop(struct hb_driver *driver) {
  hb_ordering_fail(driver->core);
  hb_driver_collect(driver);
  hb_ordering_destroy(driver->core);
  hb_fake_store_done(&driver->store);
  for (size_t i = 0; i < driver->batches_count; i++) hb_test_batch_destroy(driver->batches[i]);
}

void hb_driver_add(struct hb_driver *driver, uint64_t id, const struct hb_stream_config *config) {
  struct hb_fake_stream *stream = hb_fake_add_stream(&driver->store, id, config);
  assert_int_equal(hb_ordering_add_stream(driver->core, id, config, &stream->record, NULL), HB_OK);
}

size_t hb_driver_needs(struct hb_driver *driver) {
  size_t count = 0;
  struct hb_need *need;
  while ((need = hb_ordering_take_need(driver->core))) {
    hb_fake_answer(&driver->store, need);
    hb_ordering_answer_need(driver->core, need);
    count++;
  }
  return count;
}

size_t hb_driver_fetches(struct hb_driver *driver) {
  size_t count = 0;
  struct hb_bundle_id id;
  while (hb_ordering_take_fetch(driver->core, &id)) {
    hb_ordering_fetched(driver->core, id, hb_fake_fetch(&driver->store, id));
    count++;
  }
  return count;
}

bool hb_driver_commit(struct hb_driver *driver) {
  const struct hb_commit *commit = hb_ordering_decide(driver->core, driver->now);
  if (!commit) return false;
  driver->last = *commit;
  hb_fake_apply(&driver->store, commit);
  hb_ordering_committed(driver->core, commit);
  return true;
}

size_t hb_driver_settle(struct hb_driver *driver) {
  size_t commits = 0;
  for (int idle = 0; idle < 2; idle++) {
    size_t moved = hb_driver_needs(driver) + hb_driver_fetches(driver);
    if (hb_ordering_has_work(driver->core)) {
      bool wrote = hb_driver_commit(driver);
      commits += wrote;
      moved += wrote;
    }
    if (moved) idle = -1;
  }
  hb_driver_collect(driver);
  return commits;
}

void hb_driver_restart(struct hb_driver *driver) {
  hb_ordering_fail(driver->core);
  hb_driver_collect(driver);
  hb_ordering_destroy(driver->core);
  driver->options.last_commit = driver->store.last_commit;
  driver->core = hb_ordering_create(&driver->options);
  struct hb_err err;
  enum hb_code code = hb_fake_recover(&driver->store, driver->core, driver->now, &err);
  if (code) print_message("%s\n", err.message);
  assert_int_equal(code, HB_OK);
}

struct hb_stream_status hb_driver_status(struct hb_driver *driver, uint64_t id) {
  struct hb_stream_status status;
  assert_true(hb_ordering_status(driver->core, id, driver->now, &status));
  return status;
}
