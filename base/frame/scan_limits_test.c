/* Limits that base/frame/scan.h keeps: each at its last good value and one beyond. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* clang-format off: cmocka needs the four above */
#include <cmocka.h>
/* clang-format on */
#include <stdio.h>
#include <string.h>

#include "base/frame/scan.h"
#include "base/frame/wire.h"

/* A batch being put together: events[0] is always a good one, so that indices are seen to count. */
struct fixture {
  struct hb_buf batch;
  struct hb_buf event;
  struct hb_buf part;
  struct hb_events events;
  struct hb_limits limits;
  struct hb_err err;
};

static int setup(void **state) {
  static struct fixture fixture;
  fixture = (struct fixture){.limits = hb_limits_default()};
  hb_wire_append_bytes(&fixture.batch, 1, hb_slice_text(""));
  *state = &fixture;
  return 0;
}

static int teardown(void **state) {
  struct fixture *f = *state;
  hb_buf_done(&f->batch);
  hb_buf_done(&f->event);
  hb_buf_done(&f->part);
  hb_events_done(&f->events);
  return 0;
}

static enum hb_code scan_with_event(struct fixture *f) {
  size_t before = f->batch.size;
  hb_wire_append_bytes(&f->batch, 1, hb_buf_view(&f->event));
  f->events.count = 0;
  enum hb_code code = hb_scan_batch(hb_buf_view(&f->batch), &f->limits, &f->events, &f->err);
  assert_int_equal(f->events.count, code ? 0 : 2);
  f->batch.size = before;
  return code;
}

static void expect_ok(struct fixture *f) {
  f->err.message[0] = 0;
  if (scan_with_event(f)) fail_msg("%s", f->err.message);
}

static void expect_refused(struct fixture *f, const char *reason, const char *message) {
  assert_int_equal(scan_with_event(f), HB_INVALID);
  assert_string_equal(f->err.reason, reason);
  assert_string_equal(f->err.message, message);
}

static struct hb_slice filler(size_t size) {
  static uint8_t bytes[4 << 20];
  assert_true(size <= sizeof bytes);
  memset(bytes, 'x', size);
  return hb_slice_of(bytes, size);
}

static void add_header(struct fixture *f, struct hb_slice name, struct hb_slice value) {
  hb_buf_clear(&f->part);
  hb_wire_append_bytes(&f->part, 1, name);
  hb_wire_append_bytes(&f->part, 2, value);
  hb_wire_append_bytes(&f->event, 4, hb_buf_view(&f->part));
}

static void set_time(struct fixture *f, int64_t seconds, int64_t nanos) {
  hb_buf_clear(&f->event);
  hb_buf_clear(&f->part);
  hb_wire_append_varint(&f->part, 1, (uint64_t)seconds);
  hb_wire_append_varint(&f->part, 2, (uint64_t)nanos);
  hb_wire_append_bytes(&f->event, 3, hb_buf_view(&f->part));
}

/* The Event's own bytes count, not the tag and length around them. */
static void event_size(void **state) {
  struct fixture *f = *state;
  hb_wire_append_bytes(&f->event, 5, filler(1048576 - 4));
  assert_int_equal(f->event.size, 1048576);
  expect_ok(f);
  hb_buf_clear(&f->event);
  hb_wire_append_bytes(&f->event, 5, filler(1048576 - 3));
  expect_refused(f, "EVENT_TOO_LARGE", "events[1] has 1048577 bytes, event_bytes_max is 1048576");
}

/* The limit is the one given, not the default. */
static void event_size_as_configured(void **state) {
  struct fixture *f = *state;
  f->limits.event_bytes_max = 1024;
  hb_wire_append_bytes(&f->event, 5, filler(1021));
  assert_int_equal(f->event.size, 1024);
  expect_ok(f);
  hb_wire_append_varint(&f->event, 7, 1);
  expect_refused(f, "EVENT_TOO_LARGE", "events[1] has 1026 bytes, event_bytes_max is 1024");
}

static void key_size(void **state) {
  struct fixture *f = *state;
  hb_wire_append_bytes(&f->event, 2, filler(65536));
  expect_ok(f);
  hb_wire_append_bytes(&f->event, 2, filler(65537));
  expect_refused(f, "KEY_TOO_LARGE", "events[1].key has 65537 bytes, key_bytes_max is 65536");
  hb_wire_append_bytes(&f->event, 2, filler(1)); /* the last one wins: it is the key */
  expect_ok(f);
}

static void header_count(void **state) {
  struct fixture *f = *state;
  for (int i = 0; i < 64; i++) add_header(f, hb_slice_text("n"), hb_slice_text(""));
  expect_ok(f);
  add_header(f, hb_slice_text("n"), hb_slice_text(""));
  expect_refused(f, "TOO_MANY_HEADERS", "events[1].headers has 65 entries, headers_max is 64");
}

static void header_name_size(void **state) {
  struct fixture *f = *state;
  add_header(f, hb_slice_text("n"), hb_slice_text(""));
  add_header(f, filler(256), hb_slice_text(""));
  expect_ok(f);
  add_header(f, filler(257), hb_slice_text(""));
  expect_refused(f, "HEADER_NAME_TOO_LONG",
                 "events[1].headers[2].name has 257 bytes, header_name_bytes_max is 256");
}

/* Names and values of all headers count together. */
static void headers_size(void **state) {
  struct fixture *f = *state;
  add_header(f, hb_slice_text("name"), filler(16384 - 4 - 5));
  add_header(f, hb_slice_text("other"), hb_slice_text(""));
  expect_ok(f);
  add_header(f, hb_slice_text(""), hb_slice_text("v"));
  expect_refused(
      f, "HEADERS_TOO_LARGE",
      "events[1].headers has 16385 bytes of names and values, headers_bytes_max is 16384");
}

/* Within one header too the last name and the last value win. */
static void repeated_parts_of_a_header_count_once(void **state) {
  struct fixture *f = *state;
  hb_wire_append_bytes(&f->part, 1, filler(300));
  hb_wire_append_bytes(&f->part, 1, filler(256));
  hb_wire_append_bytes(&f->part, 2, filler(16384));
  hb_wire_append_bytes(&f->part, 2, filler(16384 - 256));
  hb_wire_append_bytes(&f->part, 3, filler(100)); /* nobody knows it: carried */
  hb_wire_append_bytes(&f->event, 4, hb_buf_view(&f->part));
  expect_ok(f);
}

/* Text is UTF-8 as the standard has it, and without NUL. */
static void header_names_are_text(void **state) {
  struct fixture *f = *state;
  static const char *const good[] = {"",
                                     "plain",
                                     "\xc2\x80",
                                     "\xdf\xbf",
                                     "\xe0\xa0\x80",
                                     "\xed\x9f\xbf",
                                     "\xee\x80\x80",
                                     "\xef\xbf\xbf",
                                     "\xf0\x90\x80\x80",
                                     "\xf4\x8f\xbf\xbf",
                                     "\x7f",
                                     "gr\xc3\xbc\xc3\x9f"};
  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
    hb_buf_clear(&f->event);
    add_header(f, hb_slice_text(good[i]), hb_slice_text("\xff is fine in a value"));
    expect_ok(f);
  }
  static const struct {
    const char *name;
    int place;
  } bad[] = {
      {"\x80", 0},
      {"ab\xff", 2},
      {"\xc0\x80", 0},
      {"\xc1\xbf", 0},
      {"\xc2", 0},
      {"\xc2 ", 0},
      {"a\xe0\x9f\xbf", 1},
      {"\xe1\x80", 0},
      {"\xed\xa0\x80", 0},
      {"\xed\xbf\xbf", 0},
      {"\xf0\x8f\xbf\xbf", 0},
      {"\xf4\x90\x80\x80", 0},
      {"\xf5\x80\x80\x80", 0},
      {"\xf8\x88\x80\x80\x80", 0},
      {"\xf0\x90\x80", 0},
      {"\xc3\xbc\xbc", 2},
  };
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    char message[128];
    (void)snprintf(message, sizeof message, "events[1].headers[1].name is not UTF-8 at byte %d",
                   bad[i].place);
    hb_buf_clear(&f->event);
    add_header(f, hb_slice_text("good"), hb_slice_text(""));
    add_header(f, hb_slice_text(bad[i].name), hb_slice_text(""));
    expect_refused(f, "HEADER_NAME_INVALID", message);
  }
  hb_buf_clear(&f->event);
  add_header(f, hb_slice_of("a\0b", 3), hb_slice_text(""));
  expect_refused(f, "HEADER_NAME_INVALID", "events[1].headers[0].name has a NUL at byte 1");
}

/* A name that a later one replaces must be text too: a subscriber's decoder checks both. */
static void replaced_names_are_checked(void **state) {
  struct fixture *f = *state;
  hb_wire_append_bytes(&f->part, 1, hb_slice_text("\xff"));
  hb_wire_append_bytes(&f->part, 1, hb_slice_text("good"));
  hb_wire_append_bytes(&f->event, 4, hb_buf_view(&f->part));
  expect_refused(f, "HEADER_NAME_INVALID", "events[1].headers[0].name is not UTF-8 at byte 0");
}

/* Of several names that are wrong the first is named. */
static void the_first_bad_name_is_named(void **state) {
  struct fixture *f = *state;
  add_header(f, filler(300), hb_slice_text(""));
  add_header(f, hb_slice_text("\xff"), hb_slice_text(""));
  expect_refused(f, "HEADER_NAME_TOO_LONG",
                 "events[1].headers[0].name has 300 bytes, header_name_bytes_max is 256");
}

/* Timestamp's range: the years 1 to 9999, whole nanoseconds within the second. */
static void event_time(void **state) {
  struct fixture *f = *state;
  set_time(f, INT64_C(-62135596800), 0);
  expect_ok(f);
  set_time(f, INT64_C(253402300799), 999999999);
  expect_ok(f);
  set_time(f, INT64_C(-62135596801), 0);
  expect_refused(f, "EVENT_TIME_INVALID",
                 "events[1].event_time.seconds is -62135596801, must be from -62135596800 to "
                 "253402300799");
  set_time(f, INT64_C(253402300800), 0);
  expect_refused(f, "EVENT_TIME_INVALID",
                 "events[1].event_time.seconds is 253402300800, must be from -62135596800 to "
                 "253402300799");
  set_time(f, INT64_MIN, 0);
  assert_int_equal(scan_with_event(f), HB_INVALID);
  set_time(f, 0, 1000000000);
  expect_refused(f, "EVENT_TIME_INVALID",
                 "events[1].event_time.nanos is 1000000000, must be from 0 to 999999999");
  set_time(f, 0, -1);
  expect_refused(f, "EVENT_TIME_INVALID",
                 "events[1].event_time.nanos is -1, must be from 0 to 999999999");
}

/* What counts is the time that the merge of all parts gives. */
static void event_time_is_checked_when_merged(void **state) {
  struct fixture *f = *state;
  set_time(f, INT64_MAX, 5);
  hb_wire_append_bytes(&f->event, 3, hb_slice_of("\x08\x01", 2));
  expect_ok(f);
  assert_int_equal(f->events.items[1].time.seconds, 1);
  assert_int_equal(f->events.items[1].time.nanos, 5);
}

/* As many events as a batch may have, and one more. */
static void event_count(void **state) {
  struct fixture *f = *state;
  hb_buf_clear(&f->batch);
  for (int i = 0; i < 65536; i++) hb_buf_append(&f->batch, "\x0a\x02\x08\x01", 4);
  struct hb_slice batch = hb_buf_view(&f->batch);
  assert_int_equal(hb_scan_batch(batch, &f->limits, &f->events, NULL), HB_OK);
  assert_int_equal(f->events.count, 65536);
  /* Another batch counts anew, although the array is the same. */
  assert_int_equal(hb_scan_batch(batch, &f->limits, &f->events, NULL), HB_OK);
  assert_int_equal(f->events.count, 131072);
  hb_buf_append(&f->batch, "\x0a\x00", 2);
  batch = hb_buf_view(&f->batch);
  assert_int_equal(hb_scan_batch(batch, &f->limits, &f->events, &f->err), HB_INVALID);
  assert_string_equal(f->err.reason, "BATCH_TOO_MANY_EVENTS");
  assert_string_equal(f->err.message, "events[65536] is one too many, batch_events_max is 65536");
  assert_int_equal(f->events.count, 131072);
}

/* What was stored under other limits is still read. */
static void stored_frames_have_no_limits(void **state) {
  struct fixture *f = *state;
  hb_buf_clear(&f->batch);
  set_time(f, INT64_MAX, -1);
  hb_wire_append_bytes(&f->event, 2, filler(70000));
  for (int i = 0; i < 100; i++) add_header(f, hb_slice_text("\xff"), filler(300));
  hb_wire_append_bytes(&f->event, 5, filler(3 << 20));
  hb_wire_append_bytes(&f->batch, 1, hb_buf_view(&f->event));
  struct hb_event event;
  assert_int_equal(hb_scan_frame(hb_buf_view(&f->batch), &event, NULL), HB_OK);
  assert_int_equal(event.key_size, 70000);
  assert_int_equal(event.payload_size, 3 << 20);
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH_FIXTURE(event_size),
      WITH_FIXTURE(event_size_as_configured),
      WITH_FIXTURE(key_size),
      WITH_FIXTURE(header_count),
      WITH_FIXTURE(header_name_size),
      WITH_FIXTURE(headers_size),
      WITH_FIXTURE(repeated_parts_of_a_header_count_once),
      WITH_FIXTURE(header_names_are_text),
      WITH_FIXTURE(replaced_names_are_checked),
      WITH_FIXTURE(the_first_bad_name_is_named),
      WITH_FIXTURE(event_time),
      WITH_FIXTURE(event_time_is_checked_when_merged),
      WITH_FIXTURE(event_count),
      WITH_FIXTURE(stored_frames_have_no_limits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
