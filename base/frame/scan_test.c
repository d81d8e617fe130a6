/* Rules of base/frame/scan.h: what an event's bytes mean, and which bytes mean nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* clang-format off: cmocka needs the four above */
#include <cmocka.h>
/* clang-format on */
#include <stdlib.h>
#include <string.h>

#include "base/frame/scan.h"
#include "base/frame/wire.h"

#define BYTES(literal) \
  { (const uint8_t *)(literal), sizeof(literal) - 1 }

/* Exactly as large as its bytes, so that a sanitizer sees one byte too many. */
static struct hb_slice exact_copy(struct hb_slice from) {
  uint8_t *data = malloc(from.size + 1);
  memcpy(data + 1, from.data, from.size);
  return hb_slice_of(data + 1, from.size);
}

static void free_copy(struct hb_slice copy) { free((uint8_t *)copy.data - 1); }

static enum hb_code scan(struct hb_slice batch, struct hb_events *events, struct hb_err *err) {
  struct hb_limits limits = hb_limits_default();
  return hb_scan_batch(batch, &limits, events, err);
}

struct row {
  const char *name;
  struct hb_slice event; /* Event's bytes; the frame is put around them */
  int64_t sequence;
  const char *key;
  const char *payload;
  struct hb_time time;
  uint32_t flags;
  int64_t previous;
};

#define NO_TIME \
  { 0, 0, false }
#define AT(seconds, nanos) \
  { seconds, nanos, true }
#define MINUS_ONE "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"

static const struct row rows[] = {
    {"nothing at all", BYTES(""), 0, "", "", NO_TIME, 0, 0},
    {"sequence, key, payload", BYTES("\x08\x07\x12\x02kk\x2a\x03ppp"), 7, "kk", "ppp", NO_TIME, 0,
     0},
    {"any order", BYTES("\x2a\x03ppp\x12\x02kk\x08\x07"), 7, "kk", "ppp", NO_TIME, 0, 0},
    {"negative sequence", BYTES("\x08" MINUS_ONE), -1, "", "", NO_TIME, 0, 0},
    {"lowest sequence", BYTES("\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"), INT64_MIN, "", "",
     NO_TIME, 0, 0},
    {"INT64_MAX is no fault here", BYTES("\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f"), INT64_MAX, "",
     "", NO_TIME, 0, 0},
    {"padded sequence", BYTES("\x08\x87\x80\x80\x00"), 7, "", "", NO_TIME, 0, 0},
    {"padded tag", BYTES("\x88\x80\x00\x07\x92\x80\x00\x01k"), 7, "k", "", NO_TIME, 0, 0},
    {"padded length", BYTES("\x12\x82\x80\x00kk"), 0, "kk", "", NO_TIME, 0, 0},
    {"last sequence wins", BYTES("\x08\x07\x08\x08"), 8, "", "", NO_TIME, 0, 0},
    {"last sequence wins, 0 too", BYTES("\x08\x07\x08\x00"), 0, "", "", NO_TIME, 0, 0},
    {"last key wins", BYTES("\x12\x02kk\x12\x01m"), 0, "m", "", NO_TIME, 0, 0},
    {"last key wins, empty too", BYTES("\x12\x02kk\x12\x00"), 0, "", "", NO_TIME, 0, 0},
    {"last payload wins", BYTES("\x2a\x01p\x12\x01k\x2a\x02qq"), 0, "k", "qq", NO_TIME, 0, 0},
    {"event time", BYTES("\x1a\x04\x08\x05\x10\x06"), 0, "", "", AT(5, 6), 0, 0},
    {"empty event time is 1970", BYTES("\x1a\x00"), 0, "", "", AT(0, 0), 0, 0},
    {"event times merge", BYTES("\x1a\x02\x08\x05\x1a\x02\x10\x06"), 0, "", "", AT(5, 6), 0, 0},
    {"event times merge, last wins", BYTES("\x1a\x04\x08\x05\x10\x06\x1a\x02\x08\x07"), 0, "", "",
     AT(7, 6), 0, 0},
    {"event time before 1970", BYTES("\x1a\x0b\x08" MINUS_ONE), 0, "", "", AT(-1, 0), 0, 0},
    {"nanos keep their low 32 bits", BYTES("\x1a\x06\x10\x86\x80\x80\x80\x10"), 0, "", "", AT(0, 6),
     0, 0},
    {"fields of event time that nobody knows", BYTES("\x1a\x08\x1a\x01x\x0a\x01y\x08\x05"), 0, "",
     "", AT(5, 0), 0, 0},
    {"previous", BYTES("\x30\x05"), 0, "", "", NO_TIME, HB_EVENT_HAS_PREVIOUS, 5},
    {"previous 0 is there", BYTES("\x30\x00"), 0, "", "", NO_TIME, HB_EVENT_HAS_PREVIOUS, 0},
    {"previous negative", BYTES("\x30" MINUS_ONE), 0, "", "", NO_TIME, HB_EVENT_HAS_PREVIOUS, -1},
    {"initial and last", BYTES("\x38\x01\x40\x01"), 0, "", "", NO_TIME,
     HB_EVENT_INITIAL | HB_EVENT_LAST, 0},
    {"any other number is true", BYTES("\x38\x80\x80\x80\x80\x10"), 0, "", "", NO_TIME,
     HB_EVENT_INITIAL, 0},
    {"last flag wins", BYTES("\x38\x01\x40\x01\x38\x00"), 0, "", "", NO_TIME, HB_EVENT_LAST, 0},
    {"headers", BYTES("\x22\x06\x0a\x01n\x12\x01v\x22\x00\x08\x07"), 7, "", "", NO_TIME, 0, 0},
    {"fields that nobody knows",
     BYTES("\x48\x01\x51"
           "12345678"
           "\x5a\x03"
           "abc\x65"
           "1234\x08\x07"
           "\xfa\x7f\x01x"),
     7, "", "", NO_TIME, 0, 0},
    {"sequence as bytes", BYTES("\x08\x07\x0a\x01x"), 7, "", "", NO_TIME, 0, 0},
    {"sequence as i64 and i32",
     BYTES("\x08\x07\x09"
           "12345678"
           "\x0d"
           "1234"),
     7, "", "", NO_TIME, 0, 0},
    {"key as varint", BYTES("\x12\x01k\x10\x07"), 0, "k", "", NO_TIME, 0, 0},
    {"event time as varint", BYTES("\x18\x07"), 0, "", "", NO_TIME, 0, 0},
    {"headers as i32",
     BYTES("\x25"
           "1234"),
     0, "", "", NO_TIME, 0, 0},
    {"payload as i64",
     BYTES("\x2a\x01p\x29"
           "12345678"),
     0, "", "p", NO_TIME, 0, 0},
    {"previous as bytes", BYTES("\x32\x01x"), 0, "", "", NO_TIME, 0, 0},
    {"initial and last as bytes", BYTES("\x3a\x01x\x42\x01x"), 0, "", "", NO_TIME, 0, 0},
};

static void check_row(const struct row *row, const struct hb_event *event) {
  if (event->sequence != row->sequence) fail_msg("%s: sequence", row->name);
  if (!hb_slice_equal(hb_event_key(event), hb_slice_text(row->key))) fail_msg("%s: key", row->name);
  if (!hb_slice_equal(hb_event_payload(event), hb_slice_text(row->payload))) {
    fail_msg("%s: payload", row->name);
  }
  if (hb_time_compare(event->time, row->time) != 0) fail_msg("%s: time", row->name);
  if (event->flags != row->flags || event->previous != row->previous) {
    fail_msg("%s: flags or previous", row->name);
  }
}

/* proto3's meaning of bytes, canonical or not, from a batch and from a stored frame alike. */
static void bytes_mean_what_proto3_says(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct hb_buf batch = {0};
    hb_wire_append_bytes(&batch, 1, rows[i].event);
    struct hb_slice copy = exact_copy(hb_buf_view(&batch));
    struct hb_events events = {0};
    struct hb_err err = {0};
    if (scan(copy, &events, &err)) fail_msg("%s: %s", rows[i].name, err.message);
    assert_int_equal(events.count, 1);
    check_row(&rows[i], &events.items[0]);
    assert_true(hb_slice_equal(hb_event_frame(&events.items[0]), copy));
    struct hb_event stored;
    assert_int_equal(hb_scan_frame(copy, &stored, &err), HB_OK);
    check_row(&rows[i], &stored);
    assert_int_equal(stored.frame_size, copy.size);
    hb_events_done(&events);
    free_copy(copy);
    hb_buf_done(&batch);
  }
}

/* All events of a batch come in order, after what was there, each with its own frame; what else an
 * EventBatch carries is skipped. */
static void a_batch_is_all_its_frames(void **state) {
  (void)state;
  struct hb_buf batch = {0};
  size_t starts[sizeof rows / sizeof rows[0] + 1];
  size_t count = sizeof rows / sizeof rows[0];
  for (size_t i = 0; i < count; i++) {
    starts[i] = batch.size;
    hb_wire_append_bytes(&batch, 1, rows[i].event);
  }
  starts[count] = batch.size;
  hb_wire_append_bytes(&batch, 2, hb_slice_text("\x0a\x00")); /* no event, another field */
  hb_wire_append_varint(&batch, 1, 5);                        /* events, but of a wrong type */
  struct hb_events events = {0};
  assert_int_equal(scan(hb_buf_view(&batch), &events, NULL), HB_OK);
  assert_int_equal(scan(hb_buf_view(&batch), &events, NULL), HB_OK);
  assert_int_equal(events.count, 2 * count);
  for (size_t i = 0; i < 2 * count; i++) {
    check_row(&rows[i % count], &events.items[i]);
    assert_ptr_equal(events.items[i].frame, batch.data + starts[i % count]);
    assert_int_equal(events.items[i].frame_size, starts[i % count + 1] - starts[i % count]);
  }
  hb_events_done(&events);
  hb_buf_done(&batch);
}

/* A batch of nothing is well-formed; whether it is welcome is for others to say. */
static void an_empty_batch_has_no_events(void **state) {
  (void)state;
  struct hb_events events = {0};
  assert_int_equal(scan((struct hb_slice){0}, &events, NULL), HB_OK);
  assert_int_equal(events.count, 0);
  hb_events_done(&events);
}

/* A frame with a padded tag and length is carried as it came. */
static void a_padded_frame_is_carried(void **state) {
  (void)state;
  static const struct hb_slice batch = BYTES("\x8a\x80\x00\x82\x80\x00\x08\x07");
  struct hb_events events = {0};
  assert_int_equal(scan(batch, &events, NULL), HB_OK);
  assert_int_equal(events.count, 1);
  assert_true(hb_slice_equal(hb_event_frame(&events.items[0]), batch));
  assert_int_equal(events.items[0].sequence, 7);
  struct hb_event stored;
  assert_int_equal(hb_scan_frame(batch, &stored, NULL), HB_OK);
  assert_int_equal(stored.sequence, 7);
  hb_events_done(&events);
}

/* Malformed at any depth: one error with the event's index, and nothing of the batch is kept. */
static void malformed_batches_leave_nothing(void **state) {
  (void)state;
  static const struct {
    const char *name;
    struct hb_slice tail; /* after one good event of 4 bytes */
    const char *message;
  } bad[] = {
      {"frame cut", BYTES("\x0a\x02\x08"), "events[1] is malformed: byte 4 of a batch of 7 bytes"},
      {"frame of 4 GiB", BYTES("\x0a\x80\x80\x80\x80\x10"),
       "events[1] is malformed: byte 4 of a batch of 10 bytes"},
      {"group in the batch", BYTES("\x13\x14"),
       "events[1] is malformed: byte 4 of a batch of 6 bytes"},
      {"field 0", BYTES("\x0a\x04\x08\x01\x00\x00"),
       "events[1] is malformed: byte 8 of a batch of 10 bytes"},
      {"group", BYTES("\x0a\x02\x4b\x4c"), "events[1] is malformed: byte 6 of a batch of 8 bytes"},
      {"sequence cut", BYTES("\x0a\x02\x08\x80"),
       "events[1] is malformed: byte 6 of a batch of 8 bytes"},
      {"sequence of 11 bytes", BYTES("\x0a\x0c\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00"),
       "events[1] is malformed: byte 6 of a batch of 18 bytes"},
      {"key past its event", BYTES("\x0a\x02\x12\x01\x12\x00"),
       "events[1] is malformed: byte 6 of a batch of 10 bytes"},
      {"payload past the end", BYTES("\x0a\x02\x2a\x7f"),
       "events[1] is malformed: byte 6 of a batch of 8 bytes"},
      {"event time", BYTES("\x0a\x04\x1a\x02\x08\x80"),
       "events[1] is malformed: byte 6 of a batch of 10 bytes"},
      {"group in event time", BYTES("\x0a\x04\x1a\x02\x1b\x1c"),
       "events[1] is malformed: byte 6 of a batch of 10 bytes"},
      {"header", BYTES("\x0a\x04\x22\x02\x0a\x01"),
       "events[1] is malformed: byte 6 of a batch of 10 bytes"},
      {"header's value", BYTES("\x0a\x04\x22\x02\x12\x01"),
       "events[1] is malformed: byte 6 of a batch of 10 bytes"},
      {"type 7 in a header", BYTES("\x0a\x04\x22\x02\x1f\x01"),
       "events[1] is malformed: byte 6 of a batch of 10 bytes"},
      {"unknown varint cut", BYTES("\x0a\x02\x48\x80"),
       "events[1] is malformed: byte 6 of a batch of 8 bytes"},
      {"unknown i64 cut",
       BYTES("\x0a\x08\x49"
             "1234567"),
       "events[1] is malformed: byte 6 of a batch of 14 bytes"},
      {"unknown i32 cut",
       BYTES("\x0a\x04\x4d"
             "123"),
       "events[1] is malformed: byte 6 of a batch of 10 bytes"},
      {"unknown bytes past the end", BYTES("\x0a\x03\x4a\x02x"),
       "events[1] is malformed: byte 6 of a batch of 9 bytes"},
      {"previous cut", BYTES("\x0a\x01\x30"),
       "events[1] is malformed: byte 6 of a batch of 7 bytes"},
      {"initial cut", BYTES("\x0a\x01\x38"),
       "events[1] is malformed: byte 6 of a batch of 7 bytes"},
      {"last cut", BYTES("\x0a\x01\x40"), "events[1] is malformed: byte 6 of a batch of 7 bytes"},
  };
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    struct hb_buf batch = {0};
    hb_buf_append(&batch, "\x0a\x02\x08\x01", 4);
    hb_buf_append(&batch, bad[i].tail.data, bad[i].tail.size);
    struct hb_slice copy = exact_copy(hb_buf_view(&batch));
    struct hb_events events = {0};
    assert_int_equal(scan(hb_slice_of("\x0a\x00", 2), &events, NULL), HB_OK);
    struct hb_err err = {0};
    if (scan(copy, &events, &err) != HB_INVALID) fail_msg("%s", bad[i].name);
    assert_string_equal(err.reason, "MALFORMED_EVENT");
    assert_string_equal(err.message, bad[i].message);
    assert_int_equal(events.count, 1);
    hb_events_done(&events);
    free_copy(copy);
    hb_buf_done(&batch);
  }
}

/* Cut at any byte, a batch is malformed unless the cut lies between two frames. */
static void truncation_is_malformed(void **state) {
  (void)state;
  struct hb_buf batch = {0};
  bool boundary[512] = {true};
  for (size_t i = 0; i < 28; i++) { /* up to the headers and the unknown fields */
    hb_wire_append_bytes(&batch, 1, rows[i].event);
    assert_true(batch.size < sizeof boundary);
    boundary[batch.size] = true;
  }
  struct hb_events events = {0};
  for (size_t size = 0; size <= batch.size; size++) {
    struct hb_slice cut = exact_copy(hb_slice_of(batch.data, size));
    events.count = 0;
    assert_int_equal(scan(cut, &events, NULL), boundary[size] ? HB_OK : HB_INVALID);
    free_copy(cut);
  }
  assert_int_equal(events.count, 28);
  hb_events_done(&events);
  hb_buf_done(&batch);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bytes_mean_what_proto3_says),
      cmocka_unit_test(a_batch_is_all_its_frames),
      cmocka_unit_test(an_empty_batch_has_no_events),
      cmocka_unit_test(a_padded_frame_is_carried),
      cmocka_unit_test(malformed_batches_leave_nothing),
      cmocka_unit_test(truncation_is_malformed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
