#include "storage/record_internal.h"

#include "base/endian.h"
#include "storage/test_store_internal.h"

/* One form for the table: decode `value` as the row's kind, forget the result. */
typedef enum hb_code decode_any(struct hb_slice value, struct hb_err *err);

static enum hb_code get_config(struct hb_slice value, struct hb_err *err) {
  struct hb_stream_config out;
  return hb_record_get_config(value, &out, err);
}
static enum hb_code get_frontier(struct hb_slice value, struct hb_err *err) {
  struct hb_frontier out;
  return hb_record_get_frontier(value, &out, err);
}
static enum hb_code get_gap(struct hb_slice value, struct hb_err *err) {
  struct hb_gap out = {.start = 3};
  return hb_record_get_gap(value, &out, err);
}
static enum hb_code get_index(struct hb_slice value, struct hb_err *err) {
  struct hb_index_entry out;
  return hb_record_get_index(value, &out, err);
}
static enum hb_code get_u64(struct hb_slice value, struct hb_err *err) {
  uint64_t out;
  return hb_record_get_u64(value, &out, err);
}
static enum hb_code get_run(struct hb_slice value, struct hb_err *err) {
  struct hb_run_record out;
  return hb_record_get_run(value, &out, err);
}
static enum hb_code get_log_data(struct hb_slice value, struct hb_err *err) {
  struct hb_log_data out;
  return hb_log_data_get(value, &out, err);
}

static struct hb_frontier full_record(void) {
  return (struct hb_frontier){.frozen = true,
                              .first_sequence = INT64_MIN,
                              .complete_to = INT64_MAX,
                              .frontier = 5,
                              .earliest = -5,
                              .any = true,
                              .highest = INT64_MAX - 1,
                              .max_event_time = {-62135596800, 999999999, true},
                              .counters = {1, 2, 3, 4, 5, 6, 7},
                              .commit = UINT64_MAX};
}

static void put_samples(struct hb_buf out[7]) {
  struct hb_stream_config config = some_config("flights");
  struct hb_frontier record = full_record();
  struct hb_gap gap = {.start = 3, .end = 4, .first_seen_served_ms = 5, .first_seen_wall_ms = 6};
  struct hb_index_entry entry = {.block = -1, .offset = 2, .length = 3};
  hb_record_put_config(&out[0], &config);
  hb_record_put_frontier(&out[1], &record);
  hb_record_put_gap(&out[2], &gap);
  uint8_t index[HB_RECORD_INDEX_SIZE];
  hb_record_put_index(index, &entry);
  hb_buf_append(&out[3], index, sizeof index);
  hb_record_put_u64(&out[4], 77);
  hb_record_put_run(&out[5], (struct hb_run_record){1, 2});
  uint8_t data[HB_LOG_DATA_SIZE];
  hb_log_data_put(data, (struct hb_log_data){1, 2, 3, 4, 5});
  hb_buf_append(&out[6], data, sizeof data);
}

static decode_any *const DECODERS[7] = {get_config, get_frontier, get_gap,     get_index,
                                        get_u64,    get_run,      get_log_data};

/* Every value of fixed size: whole it decodes; cut at any byte, or with one more, it is damage;
 * with another version byte it is a version that is not known. */
static void sizes_and_versions_are_checked(void **state) {
  (void)state;
  struct hb_buf samples[7] = {0};
  put_samples(samples);
  for (int i = 0; i < 7; i++) {
    struct hb_err err;
    must(DECODERS[i](hb_buf_view(&samples[i]), &err), &err);
    for (size_t size = 0; size < samples[i].size; size++) {
      assert_int_equal(DECODERS[i](hb_slice_of(samples[i].data, size), &err), HB_CORRUPT);
    }
    hb_buf_append_u8(&samples[i], 0);
    assert_int_equal(DECODERS[i](hb_buf_view(&samples[i]), &err), HB_CORRUPT);
    samples[i].size--;
    samples[i].data[0] = 2;
    assert_int_equal(DECODERS[i](hb_buf_view(&samples[i]), &err), HB_VERSION);
    assert_non_null(strstr(err.message, "version 2"));
    hb_buf_done(&samples[i]);
  }
}

/* A configuration comes back with everything that it had. */
static void config_comes_back(void **state) {
  (void)state;
  struct hb_buf value = {0};
  struct hb_stream_config config = some_config("a.b_c-9");
  config.mode = HB_MODE_PER_KEY;
  config.ack = HB_ACK_ASYNC;
  config.first_seen = true;
  config.first_sequence = INT64_MIN;
  config.limits = (struct hb_stream_limits){1, 2, 3, 4, UINT64_MAX};
  struct hb_stream_config back;
  struct hb_err err;
  hb_record_put_config(&value, &config);
  must(hb_record_get_config(hb_buf_view(&value), &back, &err), &err);
  assert_string_equal(back.name, config.name);
  assert_int_equal(back.mode, config.mode);
  assert_int_equal(back.ack, config.ack);
  assert_true(back.first_seen);
  assert_true(back.first_sequence == INT64_MIN);
  assert_memory_equal(&back.limits, &config.limits, sizeof back.limits);
  hb_buf_done(&value);
}

/* Mode, flags, ack mode and name are held to their ranges. */
static void config_is_validated(void **state) {
  (void)state;
  static const struct {
    size_t at;
    uint8_t value;
  } WRONG[] = {{1, 0}, {1, 3}, {2, 2}, {3, 0}, {3, 3}, {53, 'A'}, {53, '.'}, {54, '/'}, {54, 0}};
  for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++) {
    struct hb_buf value = {0};
    struct hb_stream_config config = some_config("name");
    struct hb_stream_config untouched = {.mode = HB_MODE_GLOBAL};
    hb_record_put_config(&value, &config);
    value.data[WRONG[i].at] = WRONG[i].value;
    assert_int_equal(hb_record_get_config(hb_buf_view(&value), &untouched, NULL), HB_CORRUPT);
    assert_int_equal(untouched.name[0], 0);
    hb_buf_done(&value);
  }
}

/* A frontier record comes back, edges of int64 included. */
static void frontier_comes_back(void **state) {
  (void)state;
  struct hb_buf value = {0};
  struct hb_frontier record = full_record();
  struct hb_frontier back;
  struct hb_err err;
  hb_record_put_frontier(&value, &record);
  must(hb_record_get_frontier(hb_buf_view(&value), &back, &err), &err);
  assert_true(back.frozen && back.any && back.max_event_time.present);
  assert_true(back.first_sequence == INT64_MIN && back.complete_to == INT64_MAX);
  assert_true(back.frontier == 5 && back.earliest == -5 && back.highest == INT64_MAX - 1);
  assert_int_equal(hb_time_compare(back.max_event_time, record.max_event_time), 0);
  assert_memory_equal(&back.counters, &record.counters, sizeof back.counters);
  assert_true(back.commit == UINT64_MAX);
  hb_buf_done(&value);
}

/* A seal is eight bytes more, and must be above what is stored. */
static void seal_comes_back(void **state) {
  (void)state;
  struct hb_buf value = {0};
  struct hb_frontier record = full_record();
  record.complete_to = 7;
  record.highest = 8;
  record.sealed = true;
  record.seal_end = 9;
  struct hb_frontier back;
  struct hb_err err;
  hb_record_put_frontier(&value, &record);
  assert_int_equal(value.size, 126);
  must(hb_record_get_frontier(hb_buf_view(&value), &back, &err), &err);
  assert_true(back.sealed && back.seal_end == 9);
  hb_buf_clear(&value);
  record.seal_end = 8;
  hb_record_put_frontier(&value, &record);
  assert_int_equal(get_frontier(hb_buf_view(&value), NULL), HB_CORRUPT);
  hb_buf_done(&value);
}

/* Numbers that can't stand beside each other are damage: I5 and I10 rest on them. */
static void frontier_is_validated(void **state) {
  (void)state;
  struct hb_frontier wrong[5];
  for (int i = 0; i < 5; i++) wrong[i] = full_record();
  wrong[0].frozen = false; /* but something is stored */
  wrong[1].complete_to = 4;
  wrong[2].earliest = 6;
  wrong[3].first_sequence = -4;
  wrong[4].max_event_time.nanos = 1000000000;
  for (int i = 0; i < 5; i++) {
    struct hb_buf value = {0};
    hb_record_put_frontier(&value, &wrong[i]);
    assert_int_equal(get_frontier(hb_buf_view(&value), NULL), HB_CORRUPT);
    hb_buf_done(&value);
  }
  struct hb_buf value = {0};
  struct hb_frontier fresh = {0};
  hb_record_put_frontier(&value, &fresh);
  assert_int_equal(get_frontier(hb_buf_view(&value), NULL), HB_OK);
  value.data[1] |= 0x80; /* a flag that is none */
  assert_int_equal(get_frontier(hb_buf_view(&value), NULL), HB_CORRUPT);
  hb_buf_done(&value);
}

/* A gap ends above its start. */
static void an_empty_gap_is_damage(void **state) {
  (void)state;
  struct hb_buf value = {0};
  struct hb_gap gap = {.end = 3};
  hb_record_put_gap(&value, &gap);
  assert_int_equal(get_gap(hb_buf_view(&value), NULL), HB_CORRUPT);
  hb_buf_done(&value);
}

/* Bytes before the version's are those of log data, else they are somebody else's. */
static void log_data_has_a_mark(void **state) {
  (void)state;
  uint8_t bytes[HB_LOG_DATA_SIZE];
  struct hb_log_data back;
  struct hb_err err;
  hb_log_data_put(bytes, (struct hb_log_data){7, 6, UINT64_MAX, 8, 9});
  must(hb_log_data_get(hb_slice_of(bytes, sizeof bytes), &back, &err), &err);
  assert_true(back.run == 7 && back.mark == 6 && back.commit == UINT64_MAX);
  assert_true(back.previous == 8 && back.synced == 9);
  bytes[1] = 'h';
  assert_int_equal(get_log_data(hb_slice_of(bytes, sizeof bytes), NULL), HB_CORRUPT);
}

static void put_row(struct hb_buf *out, uint64_t count, uint64_t first, uint64_t last,
                    uint32_t peer, const char *frame) {
  struct hb_unprocessed row = {.count = count,
                               .first_seen_wall_ms = first,
                               .last_seen_wall_ms = last,
                               .peer = peer,
                               .frame = hb_slice_text(frame)};
  hb_buf_clear(out);
  hb_record_put_unprocessed(out, &row);
}

/* Merging keeps the first frame and sender, adds counts, keeps earliest and latest sight, in
 * whatever way three are put together. */
static void merging_is_associative(void **state) {
  (void)state;
  struct hb_buf rows[3] = {0};
  struct hb_buf part = {0};
  struct hb_buf left = {0};
  struct hb_buf right = {0};
  put_row(&rows[0], 1, 100, 100, 1, "first");
  put_row(&rows[1], 2, 50, 60, 2, "second"); /* a clock that stepped back */
  put_row(&rows[2], UINT64_MAX, 300, 400, 3, "third");
  hb_record_merge_unprocessed(hb_buf_view(&rows[0]), hb_buf_view(&rows[1]), &part);
  hb_record_merge_unprocessed(hb_buf_view(&part), hb_buf_view(&rows[2]), &left);
  hb_buf_clear(&part);
  hb_record_merge_unprocessed(hb_buf_view(&rows[1]), hb_buf_view(&rows[2]), &part);
  hb_record_merge_unprocessed(hb_buf_view(&rows[0]), hb_buf_view(&part), &right);
  assert_true(hb_slice_equal(hb_buf_view(&left), hb_buf_view(&right)));
  struct hb_unprocessed row;
  struct hb_err err;
  must(hb_record_get_unprocessed(hb_buf_view(&left), &row, &err), &err);
  assert_true(row.count == UINT64_MAX);
  assert_int_equal(row.first_seen_wall_ms, 50);
  assert_int_equal(row.last_seen_wall_ms, 400);
  assert_int_equal(row.peer, 1);
  assert_true(hb_slice_equal(row.frame, hb_slice_text("first")));
  for (int i = 0; i < 3; i++) hb_buf_done(&rows[i]);
  hb_buf_done(&part);
  hb_buf_done(&left);
  hb_buf_done(&right);
}

/* A merge never fails: of a damaged and a good value the good one stays. */
static void merging_survives_damage(void **state) {
  (void)state;
  struct hb_buf good = {0};
  put_row(&good, 1, 1, 1, 1, "good");
  struct hb_slice bad = hb_slice_text("\1bad");
  struct hb_slice pairs[3][3] = {{bad, hb_buf_view(&good), hb_buf_view(&good)},
                                 {hb_buf_view(&good), bad, hb_buf_view(&good)},
                                 {bad, bad, bad}};
  for (int i = 0; i < 3; i++) {
    struct hb_buf out = {0};
    hb_record_merge_unprocessed(pairs[i][0], pairs[i][1], &out);
    assert_true(hb_slice_equal(hb_buf_view(&out), pairs[i][2]));
    hb_buf_done(&out);
  }
  hb_buf_done(&good);
}

/* A kept refusal has a frame and was seen at least once. */
static void unprocessed_is_validated(void **state) {
  (void)state;
  struct hb_buf value = {0};
  struct hb_unprocessed row;
  put_row(&value, 1, 1, 1, 1, "");
  assert_int_equal(hb_record_get_unprocessed(hb_buf_view(&value), &row, NULL), HB_CORRUPT);
  put_row(&value, 0, 1, 1, 1, "frame");
  assert_int_equal(hb_record_get_unprocessed(hb_buf_view(&value), &row, NULL), HB_CORRUPT);
  put_row(&value, 1, 1, 1, 1, "frame");
  value.data[0] = 9;
  assert_int_equal(hb_record_get_unprocessed(hb_buf_view(&value), &row, NULL), HB_VERSION);
  hb_buf_done(&value);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sizes_and_versions_are_checked),
      cmocka_unit_test(config_comes_back),
      cmocka_unit_test(config_is_validated),
      cmocka_unit_test(frontier_comes_back),
      cmocka_unit_test(seal_comes_back),
      cmocka_unit_test(frontier_is_validated),
      cmocka_unit_test(an_empty_gap_is_damage),
      cmocka_unit_test(log_data_has_a_mark),
      cmocka_unit_test(merging_is_associative),
      cmocka_unit_test(merging_survives_damage),
      cmocka_unit_test(unprocessed_is_validated),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
