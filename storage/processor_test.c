#include "storage/processor.h"

#include "storage/test_store_internal.h"

static const struct hb_processor_id ID = {.stream = 1, .processor = 7};
static const struct hb_processor_id OTHER = {.stream = 1, .processor = 9};

static struct hb_slice text(const char *bytes) { return hb_slice_text(bytes); }

static struct hb_processor_config some_processor(const char *name) {
  struct hb_processor_config config = {.parameters = text("parameters")};
  snprintf(config.name, sizeof config.name, "%s", name);
  snprintf(config.processor, sizeof config.processor, "count");
  return config;
}

static void put_state(struct fixture *fixture, struct hb_processor_id id, struct hb_slice key,
                      const char *name, const char *value) {
  struct hb_state_row row = {
      .key = key, .name = text(name), .present = value != NULL, .value = text(value ? value : "")};
  hb_write_put_state(fixture->write, id, &row);
}

static void attach(struct fixture *fixture, struct hb_processor_id id, const char *name) {
  struct hb_processor_config config = some_processor(name);
  struct hb_processor_place place = {.position = 1};
  hb_write_put_processor(fixture->write, id, &config);
  hb_write_put_place(fixture->write, id, &place);
}

/* ---- processors */

struct seen {
  int count;
  struct hb_stored_processor last;
  char parameters[32];
  char end_key[32];
};

static void copy_text(char *out, struct hb_slice slice) {
  memcpy(out, slice.data, slice.size);
  out[slice.size] = '\0';
}

static bool see(void *context, const struct hb_stored_processor *stored) {
  struct seen *seen = context;
  seen->count++;
  seen->last = *stored;
  copy_text(seen->parameters, stored->config.parameters);
  seen->end_key[0] = '\0';
  if (stored->place.has_end_key) copy_text(seen->end_key, stored->place.end_key);
  return true;
}

static struct seen look(struct fixture *fixture) {
  struct seen seen = {0};
  struct hb_err err;
  must(hb_processor_each(fixture->store, 1, see, &seen, &err), &err);
  return seen;
}

/* Configuration, place and attempt come back as they were written, also after the store was opened
 * anew, beside the stream that owns them. */
static void test_rows(void **state) {
  struct fixture *fixture = *state;
  make_stream(fixture, 1, "one");
  struct hb_processor_config config = some_processor("sums");
  config.loaded = config.suspended = true;
  config.on_error = HB_ON_ERROR_SUSPEND;
  config.suspended_at = -5;
  snprintf(config.suspended_why, sizeof config.suspended_why, "crashed");
  struct hb_processor_place place = {
      .phase = HB_PHASE_KEYS,
      .position = INT64_MIN + 1,
      .skip = 12,
      .has_end_key = true,
      .end_key = text("last"),
      .watermark = {.seconds = -1, .nanos = 999999999, .present = true},
      .next_result = 77,
      .next_creation = 5,
      .events = 6,
      .timers_fired = 7,
      .failed = 8,
      .unprocessed_bytes = 9};
  struct hb_processor_attempt attempt = {.position = 3, .attempts = 2, .until = 9};
  hb_write_put_processor(fixture->write, ID, &config);
  hb_write_put_place(fixture->write, ID, &place);
  hb_write_put_attempt(fixture->write, ID, &attempt);
  apply(fixture);
  reopen_store(fixture);
  struct seen seen = look(fixture);
  assert_int_equal(seen.count, 1);
  assert_int_equal(seen.last.id.processor, 7);
  assert_string_equal(seen.last.config.name, "sums");
  assert_string_equal(seen.last.config.processor, "count");
  assert_string_equal(seen.last.config.suspended_why, "crashed");
  assert_int_equal(seen.last.config.suspended_at, -5);
  assert_true(seen.last.config.loaded);
  assert_int_equal(seen.last.config.on_error, HB_ON_ERROR_SUSPEND);
  assert_false(seen.last.config.detached);
  assert_string_equal(seen.parameters, "parameters");
  assert_string_equal(seen.end_key, "last");
  assert_int_equal(seen.last.place.phase, HB_PHASE_KEYS);
  assert_int_equal(seen.last.place.position, INT64_MIN + 1);
  assert_int_equal(seen.last.place.skip, 12);
  assert_int_equal(hb_time_compare(seen.last.place.watermark, place.watermark), 0);
  assert_false(seen.last.place.results_time.present);
  assert_int_equal(seen.last.place.next_result, 77);
  assert_int_equal(seen.last.place.unprocessed_bytes, 9);
  assert_true(seen.last.has_attempt);
  assert_int_equal(seen.last.attempt.attempts, 2);
  assert_int_equal(seen.last.attempt.until, 9);
}

/* ---- states */

static bool read_state(struct fixture *fixture, struct hb_slice key, const char *name,
                       struct hb_buf *out) {
  bool found = false;
  struct hb_err err;
  hb_buf_clear(out);
  must(hb_state_read(fixture->store, ID, key, text(name), &found, out, &err), &err);
  return found;
}

/* States are found by key and name; keys are walked in byte order, NULs and prefixes included, and
 * those of another processor are not seen. */
static void test_states(void **state) {
  struct fixture *fixture = *state;
  make_stream(fixture, 1, "one");
  static const struct hb_slice KEYS[] = {{(const uint8_t *)"", 0},    {(const uint8_t *)"a", 1},
                                         {(const uint8_t *)"a\0", 2}, {(const uint8_t *)"a\0b", 3},
                                         {(const uint8_t *)"ab", 2},  {(const uint8_t *)"\xff", 1}};
  enum { KEYS_COUNT = sizeof KEYS / sizeof *KEYS };
  attach(fixture, ID, "one");
  attach(fixture, OTHER, "two");
  for (int i = KEYS_COUNT - 1; i >= 0; i--) {
    put_state(fixture, ID, KEYS[i], "", "first");
    put_state(fixture, ID, KEYS[i], "n", "second");
  }
  put_state(fixture, OTHER, text("b"), "", "other");
  apply(fixture);
  struct hb_buf buf = {0};
  assert_true(read_state(fixture, KEYS[2], "n", &buf));
  assert_memory_equal(buf.data, "second", 6);
  assert_false(read_state(fixture, text("b"), "", &buf));
  bool has_after = false;
  struct hb_buf after = {0};
  for (int i = 0;; i++) {
    bool found = false;
    struct hb_err err;
    hb_buf_clear(&buf);
    must(hb_state_next_key(fixture->store, ID, has_after, hb_buf_view(&after), &found, &buf, &err),
         &err);
    assert_int_equal(found, i < KEYS_COUNT);
    if (!found) break;
    assert_true(hb_slice_equal(hb_buf_view(&buf), KEYS[i]));
    hb_buf_clear(&after);
    hb_buf_append(&after, buf.data, buf.size);
    has_after = true;
  }
  put_state(fixture, ID, KEYS[2], "n", NULL);
  apply(fixture);
  assert_false(read_state(fixture, KEYS[2], "n", &buf));
  hb_buf_done(&after);
  hb_buf_done(&buf);
}

/* ---- timers */

struct timers {
  char order[200];
};

static bool see_timer(void *context, const struct hb_timer_row *row) {
  struct timers *timers = context;
  size_t used = strlen(timers->order);
  snprintf(timers->order + used, sizeof timers->order - used, "%lld.%d/%.*s/%llu/%.*s ",
           (long long)row->time.seconds, row->time.nanos, (int)row->key.size, row->key.data,
           (unsigned long long)row->creation, (int)row->name.size, row->name.data);
  return true;
}

static bool see_blocked(void *context, const struct hb_blocked_row *row) {
  struct timers *timers = context;
  size_t used = strlen(timers->order);
  snprintf(timers->order + used, sizeof timers->order - used, "%.*s/%lld ", (int)row->key.size,
           (const char *)row->key.data, (long long)row->sequence);
  return true;
}

static struct timers look_at_blocked(struct fixture *fixture) {
  struct timers seen = {""};
  struct hb_err err;
  must(hb_blocked_each(fixture->store, ID, see_blocked, &seen, &err), &err);
  return seen;
}

/* Keys that wait are found by name and in byte order, are no timers, and go with the processor. */
static void test_blocked(void **state) {
  struct fixture *fixture = *state;
  make_stream(fixture, 1, "one");
  attach(fixture, ID, "sums");
  struct hb_blocked_row rows[] = {{.key = hb_slice_text("b"), .sequence = 2},
                                  {.key = hb_slice_text("a"), .sequence = 1},
                                  {.key = hb_slice_text(""), .sequence = -3}};
  for (size_t i = 0; i < 3; i++) hb_write_put_blocked(fixture->write, ID, &rows[i]);
  apply(fixture);
  assert_string_equal(look_at_blocked(fixture).order, "/-3 a/1 b/2 ");
  struct timers timers = {""};
  struct hb_err err;
  must(hb_timer_each(fixture->store, ID, see_timer, &timers, &err), &err);
  assert_string_equal(timers.order, "");
  bool found;
  struct hb_blocked_row row;
  must(hb_blocked_read(fixture->store, ID, hb_slice_text("b"), &found, &row, &err), &err);
  assert_true(found);
  assert_int_equal(row.sequence, 2);
  hb_write_delete_blocked(fixture->write, ID, hb_slice_text("b"));
  apply(fixture);
  must(hb_blocked_read(fixture->store, ID, hb_slice_text("b"), &found, &row, &err), &err);
  assert_false(found);
  hb_write_drop_processor(fixture->write, ID);
  apply(fixture);
  assert_string_equal(look_at_blocked(fixture).order, "");
}

/* Rows of timers lie in the order in which they fire. */
static void test_timers(void **state) {
  struct fixture *fixture = *state;
  make_stream(fixture, 1, "one");
  attach(fixture, ID, "one");
  static const struct {
    int64_t seconds;
    int32_t nanos;
    const char *key;
    uint64_t creation;
    const char *name;
  } TIMERS[] = {{5, 1, "a", 1, "x"},
                {5, 0, "b", 2, ""},
                {-7, 0, "z", 9, "y"},
                {5, 0, "a", 4, "n"},
                {5, 0, "a", 3, "m"}};
  for (size_t i = 0; i < sizeof TIMERS / sizeof *TIMERS; i++) {
    struct hb_timer_row row = {
        .time = {.seconds = TIMERS[i].seconds, .nanos = TIMERS[i].nanos, .present = true},
        .key = text(TIMERS[i].key),
        .creation = TIMERS[i].creation,
        .name = text(TIMERS[i].name)};
    hb_write_put_timer(fixture->write, ID, &row);
  }
  apply(fixture);
  struct hb_timer_row gone = {
      .time = {.seconds = 5, .nanos = 0, .present = true}, .key = text("b"), .creation = 2};
  hb_write_delete_timer(fixture->write, ID, &gone);
  apply(fixture);
  struct timers timers = {""};
  struct hb_err err;
  must(hb_timer_each(fixture->store, ID, see_timer, &timers, &err), &err);
  assert_string_equal(timers.order, "-7.0/z/9/y 5.0/a/3/m 5.0/a/4/n 5.1/a/1/x ");
}

/* ---- results */

static int64_t first_result(struct fixture *fixture, struct hb_processor_id id, int64_t position) {
  struct hb_log_reader *reader;
  struct hb_bytes *bytes;
  struct hb_err err;
  must(hb_results_reader_open(fixture->store, id, position, &reader, &err), &err);
  must(hb_log_reader_next(reader, &bytes, &err), &err);
  int64_t from = -1;
  if (bytes) {
    struct hb_block block;
    must(hb_block_decode(hb_bytes_view(bytes), &block, &err), &err);
    from = block.from;
  }
  hb_bytes_unref(bytes);
  hb_log_reader_close(reader);
  return from;
}

static void put_results(struct fixture *fixture, struct hb_processor_id id, int64_t from,
                        int64_t to) {
  struct hb_bytes *block = make_block(from, to, NULL, 0);
  hb_write_put_results(fixture->write, id, from, hb_bytes_view(block));
  hb_bytes_unref(block);
}

/* Results are read from the block that contains a position; each processor has its own. */
static void test_results(void **state) {
  struct fixture *fixture = *state;
  make_stream(fixture, 1, "one");
  attach(fixture, ID, "one");
  attach(fixture, OTHER, "two");
  put_results(fixture, ID, 0, 10);
  put_results(fixture, ID, 10, 20);
  put_results(fixture, OTHER, 0, 5);
  apply(fixture);
  assert_int_equal(first_result(fixture, ID, 0), 0);
  assert_int_equal(first_result(fixture, ID, 9), 0);
  assert_int_equal(first_result(fixture, ID, 10), 10);
  assert_int_equal(first_result(fixture, ID, 20), -1);
  assert_int_equal(first_result(fixture, OTHER, 4), 0);
  assert_int_equal(first_result(fixture, OTHER, 5), -1);
}

/* Results of these times in seconds, `count` in a block; `largest` is that of all so far. */
static void put_timed(struct fixture *fixture, int64_t from, const uint8_t *times, size_t count,
                      int64_t largest) {
  struct hb_block_entry entries[8];
  uint8_t frames[8][8];
  for (size_t i = 0; i < count; i++) {
    const uint8_t frame[] = {0x0a, 6, 0x08, (uint8_t)(from + (int64_t)i), 0x1a, 2, 0x08, times[i]};
    memcpy(frames[i], frame, sizeof frame);
    entries[i] = (struct hb_block_entry){
        .sequence = from + (int64_t)i, .frame = frames[i], .frame_size = sizeof frame};
  }
  struct hb_time time = {.seconds = largest, .present = true};
  struct hb_bytes *block =
      hb_block_encode(HB_BLOCK_EVENTS, from, from + (int64_t)count, time, entries, count);
  hb_write_put_results(fixture->write, ID, from, hb_bytes_view(block));
  hb_bytes_unref(block);
}

static int64_t first_at(struct fixture *fixture, int64_t seconds, int64_t end) {
  int64_t position = -1;
  struct hb_err err;
  struct hb_time time = {.seconds = seconds, .present = true};
  must(hb_results_find_time(fixture->store, ID, time, end, &position, &err), &err);
  return position;
}

/* The first result of a time, or of the next later one, is found, also behind results that came
 * late and in several blocks. Beyond what is published nothing is told. */
static void test_times(void **state) {
  struct fixture *fixture = *state;
  assert_int_equal(first_at(fixture, 1, 0), 0);
  put_timed(fixture, 0, (const uint8_t[]){1, 1, 4}, 3, 4);
  put_timed(fixture, 3, (const uint8_t[]){2, 1}, 2, 4);
  put_timed(fixture, 5, (const uint8_t[]){4, 7, 3, 9}, 4, 9);
  put_timed(fixture, 9, (const uint8_t[]){30}, 1, 30);
  apply(fixture);
  static const int64_t FIRST[] = {0, 0, 2, 2, 2, 6, 6, 6, 8, 8, 9};
  for (int64_t time = 0; time <= 10; time++) {
    assert_int_equal(first_at(fixture, time, 10), FIRST[time]);
  }
  assert_int_equal(first_at(fixture, 30, 10), 9);
  assert_int_equal(first_at(fixture, 31, 10), 10);
  assert_int_equal(first_at(fixture, 30, 9), 9);
  assert_int_equal(first_at(fixture, 4, 9), 2);
}

/* A hole may have had the result that is looked for; neither is a place made up of what is none. */
static void test_times_of_damage(void **state) {
  struct fixture *fixture = *state;
  struct hb_err err;
  int64_t position = -1;
  struct hb_time time = {.seconds = 2, .present = true};
  put_timed(fixture, 0, (const uint8_t[]){1}, 1, 1);
  put_timed(fixture, 2, (const uint8_t[]){3}, 1, 3);
  apply(fixture);
  assert_int_equal(hb_results_find_time(fixture->store, ID, time, 3, &position, &err), HB_CORRUPT);
  assert_non_null(strstr(err.message, "results of stream 1 at position 1"));
  struct hb_block_entry entry = {
      .sequence = 1, .frame = (const uint8_t *)"\x0a\x02\x48\x80", .frame_size = 4};
  struct hb_bytes *block = hb_block_encode(HB_BLOCK_EVENTS, 1, 2, time, &entry, 1);
  hb_write_put_results(fixture->write, ID, 1, hb_bytes_view(block));
  hb_bytes_unref(block);
  apply(fixture);
  assert_int_equal(hb_results_find_time(fixture->store, ID, time, 3, &position, &err), HB_CORRUPT);
  assert_non_null(strstr(err.message, "results of stream 1 at position 1"));
  assert_int_equal(position, -1);
}

/* ---- failures */

struct failures {
  int count;
  uint64_t times;
  uint64_t processor;
  char explanation[40];
  char frame[40];
};

static bool see_failure(void *context, const struct hb_stored_failure *row) {
  struct failures *failures = context;
  failures->count++;
  failures->times = row->count;
  failures->processor = row->processor;
  copy_text(failures->explanation, row->explanation);
  copy_text(failures->frame, row->frame);
  return true;
}

static bool never(void *context, const struct hb_unprocessed *row) {
  (void)context;
  (void)row;
  fail_msg("a failure is no refusal");
  return true;
}

/* A failure is kept once with its explanation, again raises its counter, and is no refusal. */
static void test_failures(void **state) {
  struct fixture *fixture = *state;
  make_stream(fixture, 1, "one");
  struct hb_failure_row row = {
      .position = 4, .frame = text("frame"), .explanation = text("payload 'x' is no number")};
  hb_write_put_failure(fixture->write, ID, &row, 1000);
  apply(fixture);
  hb_write_put_failure(fixture->write, ID, &row, 2000);
  apply(fixture);
  struct failures failures = {0};
  struct hb_err err;
  must(hb_failure_each(fixture->store, 1, see_failure, &failures, &err), &err);
  assert_int_equal(failures.count, 1);
  assert_int_equal(failures.times, 2);
  assert_int_equal(failures.processor, 7);
  assert_string_equal(failures.explanation, "payload 'x' is no number");
  assert_string_equal(failures.frame, "frame");
  must(hb_unprocessed_each(fixture->store, 1, never, NULL, &err), &err);
}

/* Dropping one leaves nothing of it, and all of its neighbour. */
static void test_drop(void **state) {
  struct fixture *fixture = *state;
  make_stream(fixture, 1, "one");
  attach(fixture, ID, "one");
  attach(fixture, OTHER, "two");
  put_state(fixture, ID, text("k"), "n", "v");
  put_results(fixture, ID, 0, 3);
  put_results(fixture, OTHER, 0, 3);
  apply(fixture);
  hb_write_drop_processor(fixture->write, ID);
  apply(fixture);
  struct seen seen = look(fixture);
  assert_int_equal(seen.count, 1);
  assert_string_equal(seen.last.config.name, "two");
  struct hb_buf buf = {0};
  assert_false(read_state(fixture, text("k"), "n", &buf));
  assert_int_equal(first_result(fixture, ID, 0), -1);
  assert_int_equal(first_result(fixture, OTHER, 0), 0);
  hb_buf_done(&buf);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_rows, setup_store, teardown),
      cmocka_unit_test_setup_teardown(test_states, setup_store, teardown),
      cmocka_unit_test_setup_teardown(test_blocked, setup_store, teardown),
      cmocka_unit_test_setup_teardown(test_timers, setup_store, teardown),
      cmocka_unit_test_setup_teardown(test_results, setup_store, teardown),
      cmocka_unit_test_setup_teardown(test_times, setup_store, teardown),
      cmocka_unit_test_setup_teardown(test_times_of_damage, setup_store, teardown),
      cmocka_unit_test_setup_teardown(test_failures, setup_store, teardown),
      cmocka_unit_test_setup_teardown(test_drop, setup_store, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
