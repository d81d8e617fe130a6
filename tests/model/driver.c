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

static void discard_batches(struct hb_driver *driver) {
  struct hb_batch *batch;
  while ((batch = hb_ordering_take_answered(driver->core))) {
    hb_test_batch_destroy((struct hb_test_batch *)batch);
  }
}

void hb_driver_stop(struct hb_driver *driver) {
  hb_ordering_fail(driver->core);
  discard_batches(driver);
  hb_ordering_destroy(driver->core);
  hb_fake_store_done(&driver->store);
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
  return commits;
}

void hb_driver_restart(struct hb_driver *driver) {
  hb_ordering_fail(driver->core);
  discard_batches(driver);
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
