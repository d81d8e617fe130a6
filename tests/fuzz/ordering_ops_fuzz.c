/* Bytes as a scenario: what is submitted, decided, failed, restarted, when readers answer and how
 * time goes; the core must do what the naive model says, and the store in memory checks each commit
 * (I4, I5, I10). tests/model's random scenarios do the same from seeds: here coverage chooses.
 *
 * The first bytes set sizes and limits, then each operation takes its bytes; an input that ends
 * gives zeros. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "tests/model/driver.h"
#include "tests/model/naive_model.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { STREAM = 1, BATCHES_MAX = 400, EVENTS_MAX = 8, OPERATIONS_MAX = 600 };

struct scenario {
  const uint8_t *at;
  const uint8_t *end;
  struct hb_driver driver;
  struct naive_stream model;
  struct hb_test_batch *answered[BATCHES_MAX];
  size_t answered_count;
  size_t submitted;
  bool disk_reserve;
};

/* cmocka's checks end the process outside of its tests: as a crash, so that the input is kept. */
int LLVMFuzzerInitialize(int *argc, char ***argv) {
  (void)argc;
  (void)argv;
  return setenv("CMOCKA_TEST_ABORT", "1", 1);
}

static uint8_t take(struct scenario *s) { return s->at < s->end ? *s->at++ : 0; }

static struct hb_fake_stream *stored(struct scenario *s) {
  return hb_fake_find(&s->driver.store, STREAM);
}

static void check(struct scenario *s) {
  struct hb_stream_status status = hb_driver_status(&s->driver, STREAM);
  naive_check(&s->model, stored(s), &status);
  naive_check_stored(&s->model, stored(s));
}

static int64_t base_of(const struct scenario *s, uint8_t choice) {
  int64_t first = s->model.frozen ? s->model.first : 100;
  switch (choice & 3) {
    case 0:
      return s->model.frozen ? naive_complete_to(&s->model) : first;
    case 1:
      return first;
    case 2:
      return choice & 4 ? INT64_MAX : INT64_MIN;
    default:
      return s->model.events_count ? s->model.events[s->model.events_count - 1].sequence : first;
  }
}

static void submit(struct scenario *s) {
  struct hb_test_event events[EVENTS_MAX];
  uint8_t shape = take(s);
  size_t count = 1 + shape % EVENTS_MAX;
  for (size_t i = 0; i < count; i++) {
    uint8_t where = take(s);
    int64_t sequence = base_of(s, where);
    int64_t by = (int64_t)(where >> 3) - 4;
    if (__builtin_add_overflow(sequence, by, &sequence)) sequence = INT64_MAX;
    uint8_t content = take(s);
    /* The size follows from the content: else two of one content would differ. */
    events[i] = (struct hb_test_event){.sequence = sequence,
                                       .content = content & 7,
                                       .size = 4 + (content & 7) * 20u,
                                       .seconds = content >> 6};
  }
  s->submitted++;
  (void)hb_driver_submit(&s->driver, STREAM, 1 + (shape >> 6), events, count);
}

static void take_answers(struct scenario *s, enum hb_code code) {
  struct hb_batch *batch;
  s->answered_count = 0;
  while ((batch = hb_ordering_take_answered(s->driver.core))) {
    assert_int_equal(batch->error.code, code);
    s->answered[s->answered_count++] = (struct hb_test_batch *)batch;
  }
}

static void restart(struct scenario *s) {
  hb_ordering_fail(s->driver.core);
  take_answers(s, HB_UNAVAILABLE);
  hb_driver_restart(&s->driver);
  hb_ordering_set_disk_reserve(s->driver.core, s->disk_reserve);
  naive_reload(&s->model, stored(s), s->driver.now.served_ms);
  check(s);
}

enum write { WRITE_SUCCEEDS, WRITE_FAILS, WRITE_FAILS_AND_IS_THERE };

static bool commit(struct scenario *s, enum write write) {
  int64_t frontier = stored(s)->record.frontier;
  const struct hb_commit *decided = hb_ordering_decide(s->driver.core, s->driver.now);
  if (!decided) return false;
  if (write != WRITE_FAILS) hb_fake_apply(&s->driver.store, decided);
  if (write != WRITE_SUCCEEDS) {
    restart(s);
    return true;
  }
  hb_ordering_committed(s->driver.core, decided);
  take_answers(s, HB_OK);
  naive_commit(&s->model, s->answered, s->answered_count, stored(s), frontier, s->disk_reserve,
               s->driver.now.served_ms);
  check(s);
  return true;
}

static void operate(struct scenario *s) {
  uint8_t what = take(s);
  switch (what & 15) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
      submit(s);
      break;
    case 5:
    case 6:
    case 7:
      (void)commit(s, WRITE_SUCCEEDS);
      break;
    case 8:
      (void)commit(s, WRITE_FAILS);
      break;
    case 9:
      (void)commit(s, WRITE_FAILS_AND_IS_THERE);
      break;
    case 10:
    case 11:
      (void)hb_driver_needs(&s->driver);
      break;
    case 12:
      (void)hb_driver_fetches(&s->driver);
      break;
    case 13:
      restart(s);
      break;
    case 14:
      s->driver.now.served_ms += 100 * (what >> 4);
      s->driver.now.wall_ms += 100 * (what >> 4);
      break;
    default:
      s->disk_reserve = what >> 7;
      hb_ordering_set_disk_reserve(s->driver.core, s->disk_reserve);
  }
}

/* All that is left to do, while nothing fails; work that makes more work would never end. */
static void settle(struct scenario *s) {
  s->disk_reserve = false;
  restart(s);
  for (int commits = 0;;) {
    size_t moved = hb_driver_needs(&s->driver) + hb_driver_fetches(&s->driver);
    while (hb_ordering_has_work(s->driver.core) && commit(s, WRITE_SUCCEEDS)) {
      moved++;
      assert_true(++commits < 5000);
    }
    if (!moved) break;
  }
  struct hb_stream_status status = hb_driver_status(&s->driver, STREAM);
  assert_int_equal(status.record.frontier, status.record.complete_to);
}

static void start(struct scenario *s) {
  static const int64_t firsts[] = {1, 0, INT64_MIN, INT64_MAX - 8};
  struct hb_ordering_options options = {.limits = hb_limits_default()};
  options.commit_bytes = 60 + 8 * (size_t)take(s);
  options.release_stream_bytes = 60 + 8 * (size_t)take(s);
  options.release_bytes = options.release_stream_bytes;
  options.block_bytes = 30 + 4 * (size_t)take(s);
  options.bundle_bytes = 30 + 4 * (size_t)take(s);
  options.fetch_ahead_bytes = 100 + 4 * (size_t)take(s);
  options.limits.held_memory_max = 100 + 16 * (uint64_t)take(s);
  hb_driver_start(&s->driver, &options);
  uint8_t flags = take(s);
  struct hb_stream_config config = hb_driver_config(firsts[flags & 3]);
  config.first_seen = flags & 4;
  config.ack = flags & 8 ? HB_ACK_ASYNC : HB_ACK_DURABLE;
  if (flags & 16) config.limits.ahead_max = 1 + take(s);
  if (flags & 32) config.limits.held_events_max = 1 + take(s) % 32;
  if (flags & 64) config.limits.gaps_max = 1 + take(s) % 8;
  if (flags & 128) config.limits.held_bytes_max = 100 + 16 * (uint64_t)take(s);
  hb_driver_add(&s->driver, STREAM, &config);
  struct hb_frontier record = hb_ordering_new_record(&config);
  s->model.frozen = record.frozen;
  s->model.first = record.first_sequence;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static struct scenario s;
  memset(&s, 0, sizeof s);
  s.at = data;
  s.end = data + size;
  start(&s);
  for (int i = 0; s.at < s.end && i < OPERATIONS_MAX && s.submitted < BATCHES_MAX; i++) operate(&s);
  settle(&s);
  hb_driver_stop(&s.driver);
  naive_done(&s.model);
  return 0;
}
