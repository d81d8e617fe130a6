/* Frames: what is encoded is what the server's scanner, protobuf-c and the decoder read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* cmocka.h needs those first. */
#include <cmocka.h>

#include "base/frame/scan.h"
#include "client/decode.h"
#include "client/encode.h"
#include "holdback/v1/event.pb-c.h"

#define BYTES(text) ((struct holdback_bytes){text, sizeof text - 1})

static const struct holdback_header two_headers[] = {
    {{"trace", 5}, {"\x00\xff\x01", 3}},
    {{"trace", 5}, {NULL, 0}},
};

static const struct holdback_event events[] = {
    {0},
    {.sequence = 1, .key = {"a", 1}, .payload = {"hello", 5}},
    {.sequence = INT64_MIN, .payload = {"\0\0", 2}},
    {.sequence = INT64_MAX - 1, .key = {"k", 1}},
    {.sequence = 127, .has_event_time = true},
    {.sequence = 128,
     .has_event_time = true,
     .event_time_seconds = -62135596800,
     .event_time_nanos = 999999999},
    {.sequence = 4, .headers = two_headers, .headers_count = 2, .payload = {"x", 1}},
    {.sequence = 5, .key = {"k", 1}, .payload = {"y", 1}, .initial = true},
    {.sequence = 6, .initial = true, .last = true},
};
enum { EVENTS = sizeof events / sizeof *events };

static void assert_bytes(struct holdback_bytes a, struct holdback_bytes b) {
  assert_int_equal(a.size, b.size);
  if (a.size) assert_memory_equal(a.data, b.data, a.size);
}

static void assert_event(const struct holdback_event *a, const struct holdback_event *b) {
  assert_int_equal(a->sequence, b->sequence);
  assert_bytes(a->key, b->key);
  assert_bytes(a->payload, b->payload);
  assert_int_equal(a->has_event_time, b->has_event_time);
  assert_int_equal(a->event_time_seconds, b->event_time_seconds);
  assert_int_equal(a->event_time_nanos, b->event_time_nanos);
  assert_int_equal(a->initial, b->initial);
  assert_int_equal(a->last, b->last);
  assert_int_equal(a->headers_count, b->headers_count);
  for (size_t i = 0; i < a->headers_count; i++) {
    assert_bytes(a->headers[i].name, b->headers[i].name);
    assert_bytes(a->headers[i].value, b->headers[i].value);
  }
}

/* Each event survives encoding and decoding, headers with duplicates and binary values included. */
static void round_trip(void **state) {
  (void)state;
  struct hbc_headers headers = {0};
  for (size_t i = 0; i < EVENTS; i++) {
    struct hb_buf buf = {0};
    struct holdback_event out;
    hbc_event_encode(&buf, &events[i], hbc_event_size(&events[i]));
    assert_true(hbc_event_decode(hb_buf_view(&buf), &headers, &out));
    assert_event(&out, &events[i]);
    hb_buf_done(&buf);
  }
  hbc_headers_done(&headers);
}

/* The bytes are protobuf's own, default values left out: packing again gives the same. */
static void canonical(void **state) {
  (void)state;
  for (size_t i = 0; i < EVENTS; i++) {
    struct hb_buf buf = {0};
    hbc_event_encode(&buf, &events[i], hbc_event_size(&events[i]));
    Holdback__V1__EventBatch *batch = holdback__v1__event_batch__unpack(NULL, buf.size, buf.data);
    assert_non_null(batch);
    uint8_t again[256];
    assert_int_equal(holdback__v1__event_batch__get_packed_size(batch), buf.size);
    holdback__v1__event_batch__pack(batch, again);
    assert_memory_equal(again, buf.data, buf.size);
    holdback__v1__event_batch__free_unpacked(batch, NULL);
    hb_buf_done(&buf);
  }
}

/* A batch is its frames, one after another: the server's scanner finds each. */
static void a_batch_is_scanned(void **state) {
  (void)state;
  struct hb_buf buf = {0};
  for (size_t i = 0; i < EVENTS; i++)
    hbc_event_encode(&buf, &events[i], hbc_event_size(&events[i]));
  struct hb_limits limits = hb_limits_default();
  struct hb_events found = {0};
  assert_int_equal(hb_scan_batch(hb_buf_view(&buf), &limits, &found, NULL), HB_OK);
  assert_int_equal(found.count, EVENTS);
  for (size_t i = 0; i < EVENTS; i++) assert_int_equal(found.items[i].sequence, events[i].sequence);
  hb_events_done(&found);
  hb_buf_done(&buf);
}

/* Headers are found behind unknown fields, and where an encoder wrote defaults out. */
static void foreign_encodings(void **state) {
  (void)state;
  /* sequence 0 written out, unknown field 15, a header {"n": "v"}. */
  static const uint8_t frame[] = {0x0a, 12, 0x08, 0, 0x78, 7, 0x22, 6, 0x0a, 1, 'n', 0x12, 1, 'v'};
  struct hbc_headers headers = {0};
  struct holdback_event out;
  assert_true(hbc_event_decode(hb_slice_of(frame, sizeof frame), &headers, &out));
  assert_int_equal(out.headers_count, 1);
  assert_bytes(out.headers[0].name, BYTES("n"));
  assert_bytes(out.headers[0].value, BYTES("v"));
  hbc_headers_done(&headers);
}

/* Cut short anywhere, a frame is refused and never read past its end. */
static void cut_frames(void **state) {
  (void)state;
  struct hb_buf buf = {0};
  const struct holdback_event *event = &events[EVENTS - 1];
  hbc_event_encode(&buf, event, hbc_event_size(event));
  struct hbc_headers headers = {0};
  for (size_t size = 0; size < buf.size; size++) {
    uint8_t *exact = malloc(size ? size : 1);
    memcpy(exact, buf.data, size);
    struct holdback_event out;
    assert_false(hbc_event_decode(hb_slice_of(exact, size), &headers, &out));
    free(exact);
  }
  hbc_headers_done(&headers);
  hb_buf_done(&buf);
}

/* Each limit of the contract is refused with the server's reason, one beyond it; at it, not. */
static void limits_are_checked(void **state) {
  (void)state;
  static char big[(3 << 20) + 100];
  memset(big, 'x', sizeof big);
  struct holdback_header many[65];
  for (size_t i = 0; i < 65; i++) many[i] = (struct holdback_header){{"n", 1}, {NULL, 0}};
  const struct holdback_header long_name[] = {{{big, 257}, {NULL, 0}}};
  const struct holdback_header nul_name[] = {{{"a\0b", 3}, {NULL, 0}}};
  const struct holdback_header bad_name[] = {{{"\xff", 1}, {NULL, 0}}};
  const struct holdback_header large[] = {{{"n", 1}, {big, 16384}}};
  const struct {
    struct holdback_event event;
    const char *reason;
  } rows[] = {
      {{.key = {big, 65536}}, NULL},
      {{.key = {big, 65537}}, "KEY_TOO_LARGE"},
      {{.payload = {big, (3 << 20) - 5}}, NULL},
      {{.payload = {big, (3 << 20) + 1}}, "EVENT_TOO_LARGE"},
      {{.headers = many, .headers_count = 64}, NULL},
      {{.headers = many, .headers_count = 65}, "TOO_MANY_HEADERS"},
      {{.headers = long_name, .headers_count = 1}, "HEADER_NAME_TOO_LONG"},
      {{.headers = nul_name, .headers_count = 1}, "HEADER_NAME_INVALID"},
      {{.headers = bad_name, .headers_count = 1}, "HEADER_NAME_INVALID"},
      {{.headers = large, .headers_count = 1}, "HEADERS_TOO_LARGE"},
      {{.has_event_time = true, .event_time_seconds = 253402300799}, NULL},
      {{.has_event_time = true, .event_time_seconds = 253402300800}, "EVENT_TIME_INVALID"},
      {{.has_event_time = true, .event_time_nanos = -1}, "EVENT_TIME_INVALID"},
      {{.has_event_time = true, .event_time_nanos = 1000000000}, "EVENT_TIME_INVALID"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct holdback_error error = {0};
    int status = holdback_event_check(&rows[i].event, &error);
    assert_int_equal(status, rows[i].reason ? HOLDBACK_INVALID_ARGUMENT : HOLDBACK_OK);
    assert_string_equal(error.reason, rows[i].reason ? rows[i].reason : "");
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(round_trip),         cmocka_unit_test(canonical),
      cmocka_unit_test(a_batch_is_scanned), cmocka_unit_test(foreign_encodings),
      cmocka_unit_test(cut_frames),         cmocka_unit_test(limits_are_checked),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
