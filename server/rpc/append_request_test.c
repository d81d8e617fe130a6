/* Append requests, well-formed and not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/frame/wire.h"
#include "server/rpc/append_request.h"
#include "server/rpc/test_client.h"

struct parsed {
  struct hb_append_request request;
  struct hb_events events;
  struct hb_err err;
};

static enum hb_code parse(struct hb_slice bytes, struct parsed *out) {
  struct hb_limits limits = hb_limits_default();
  enum hb_code code = hb_append_request_parse(bytes, &limits, &out->request, &out->err);
  if (!code) code = hb_append_request_scan(&out->request, &limits, false, &out->events, &out->err);
  return code;
}

static void put_batch(struct hb_buf *out, int64_t first, size_t count) {
  struct hb_buf batch = {0};
  for (size_t i = 0; i < count; i++) test_put_event(&batch, first + (int64_t)i, "key", "p");
  hb_wire_append_bytes(out, 2, hb_buf_view(&batch));
  hb_buf_done(&batch);
}

/* Fields in any order, the last singular wins, several batches merge, unknown ones are ignored. */
static void proto3_semantics(void **state) {
  (void)state;
  struct hb_buf bytes = {0};
  struct parsed parsed = {.events = {0}};
  put_batch(&bytes, 1, 2);
  hb_wire_append_bytes(&bytes, 1, hb_slice_text("first"));
  hb_wire_append_bytes(&bytes, 99, hb_slice_text("unknown"));
  hb_wire_append_varint(&bytes, 3, 7); /* producer of a wrong type */
  hb_wire_append_bytes(&bytes, 1, hb_slice_text("last"));
  put_batch(&bytes, 10, 3);
  assert_int_equal(parse(hb_buf_view(&bytes), &parsed), HB_OK);
  assert_true(hb_slice_equal(parsed.request.stream, hb_slice_text("last")));
  assert_int_equal(parsed.request.producer.size, 0);
  assert_int_equal(parsed.events.count, 5);
  assert_int_equal(parsed.events.items[2].sequence, 10);
  hb_events_done(&parsed.events);
  hb_buf_done(&bytes);
}

static const struct {
  const char *what;
  const char *bytes;
  size_t size;
  enum hb_code code;
  const char *reason;
} malformed[] = {
    {"empty", "", 0, HB_INVALID, "BATCH_EMPTY"},
    {"cut length",
     "\x0a\x05"
     "ab",
     4, HB_INVALID, "MALFORMED_REQUEST"},
    {"cut tag", "\x8a", 1, HB_INVALID, "MALFORMED_REQUEST"},
    {"group", "\x0b\x0c", 2, HB_INVALID, "MALFORMED_REQUEST"},
    {"field 0", "\x02\x00", 2, HB_INVALID, "MALFORMED_REQUEST"},
    {"long varint", "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12, HB_INVALID,
     "MALFORMED_REQUEST"},
    {"batch without events", "\x12\x00", 2, HB_INVALID, "BATCH_EMPTY"},
    {"event cut", "\x12\x02\x0a\x05", 4, HB_INVALID, "MALFORMED_EVENT"},
    {"previous", "\x12\x04\x0a\x02\x30\x01", 6, HB_UNIMPLEMENTED, "FEATURE_NOT_BUILT"},
    {"initial", "\x12\x04\x0a\x02\x38\x01", 6, HB_INVALID, "MODE_MISMATCH"},
    {"last", "\x12\x04\x0a\x02\x40\x01", 6, HB_INVALID, "MODE_MISMATCH"},
    {"covers", "\x2a\x00", 2, HB_UNIMPLEMENTED, "FEATURE_NOT_BUILT"},
    {"voids", "\x32\x00", 2, HB_UNIMPLEMENTED, "FEATURE_NOT_BUILT"},
    {"producer with NUL", "\x1a\x01\x00", 3, HB_INVALID, "TEXT_INVALID"},
};

/* What is malformed, empty or not built is refused, never guessed. */
static void malformed_is_refused(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof malformed / sizeof malformed[0]; i++) {
    struct parsed parsed = {.events = {0}};
    enum hb_code code = parse(hb_slice_of(malformed[i].bytes, malformed[i].size), &parsed);
    if (code != malformed[i].code || strcmp(parsed.err.reason, malformed[i].reason) != 0) {
      fail_msg("%s: %d %s", malformed[i].what, code, parsed.err.message);
    }
    hb_events_done(&parsed.events);
  }
}

/* A PER_KEY stream takes events that say where their key begins and ends; `previous` is for none.
 */
static void per_key_takes_first_and_last(void **state) {
  (void)state;
  static const struct {
    const char *bytes;
    enum hb_code code;
  } rows[] = {{"\x12\x04\x0a\x02\x38\x01", HB_OK},
              {"\x12\x04\x0a\x02\x40\x01", HB_OK},
              {"\x12\x04\x0a\x02\x30\x01", HB_UNIMPLEMENTED}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct parsed parsed = {.events = {0}};
    struct hb_limits limits = hb_limits_default();
    struct hb_slice bytes = hb_slice_of(rows[i].bytes, 6);
    assert_int_equal(hb_append_request_parse(bytes, &limits, &parsed.request, &parsed.err), HB_OK);
    assert_int_equal(
        hb_append_request_scan(&parsed.request, &limits, true, &parsed.events, &parsed.err),
        rows[i].code);
    hb_events_done(&parsed.events);
  }
}

/* Every prefix of a good request is refused or is a good one itself: none is read past its end. */
static void prefixes_are_safe(void **state) {
  (void)state;
  struct hb_buf bytes = {0};
  hb_wire_append_bytes(&bytes, 1, hb_slice_text("default"));
  put_batch(&bytes, 1, 3);
  for (size_t size = 0; size < bytes.size; size++) {
    struct hb_buf copy = {0}; /* of exactly this size: a sanitizer sees a byte too far */
    struct parsed parsed = {.events = {0}};
    hb_buf_append(&copy, bytes.data, size);
    assert_int_not_equal(parse(hb_buf_view(&copy), &parsed), HB_OK);
    hb_events_done(&parsed.events);
    hb_buf_done(&copy);
  }
  hb_buf_done(&bytes);
}

/* 65,536 events pass; one more does not, also when it stands in a second `batch`. */
static void events_are_counted_over_all_batches(void **state) {
  (void)state;
  struct hb_buf bytes = {0};
  struct parsed parsed = {.events = {0}};
  put_batch(&bytes, 1, 65000);
  put_batch(&bytes, 65001, 536);
  assert_int_equal(parse(hb_buf_view(&bytes), &parsed), HB_OK);
  assert_int_equal(parsed.events.count, 65536);
  put_batch(&bytes, 70000, 1);
  assert_int_equal(parse(hb_buf_view(&bytes), &parsed), HB_INVALID);
  assert_string_equal(parsed.err.message, "batch has 65537 events, batch_events_max is 65536");
  hb_events_done(&parsed.events);
  hb_buf_done(&bytes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(proto3_semantics), cmocka_unit_test(malformed_is_refused),
      cmocka_unit_test(per_key_takes_first_and_last), cmocka_unit_test(prefixes_are_safe),
      cmocka_unit_test(events_are_counted_over_all_batches)};
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
