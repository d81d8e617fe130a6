/* Rules of base/frame/scan.h for single events: stored frames, sameness, the content hash. */
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

#define BYTES(literal) \
  { (const uint8_t *)(literal), sizeof(literal) - 1 }

/* A stored frame is the first of its bytes; what is no frame is damage. */
static void a_stored_frame_is_the_first(void **state) {
  (void)state;
  static const struct hb_slice two = BYTES("\x0a\x02\x08\x07\x0a\x02\x08\x09");
  struct hb_event event;
  assert_int_equal(hb_scan_frame(two, &event, NULL), HB_OK);
  assert_int_equal(event.sequence, 7);
  assert_int_equal(event.frame_size, 4);
  static const struct hb_slice none[] = {
      BYTES(""),         BYTES("\x0a"),         BYTES("\x0a\x02\x08"),     BYTES("\x12\x00"),
      BYTES("\x08\x01"), BYTES("\x0a\x01\x08"), BYTES("\x0a\x02\x13\x14"),
  };
  for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
    struct hb_err err = {0};
    uint8_t *data = malloc(none[i].size + 1); /* so that a sanitizer sees one byte too many */
    memcpy(data + 1, none[i].data, none[i].size);
    assert_int_equal(hb_scan_frame(hb_slice_of(data + 1, none[i].size), &event, &err), HB_CORRUPT);
    assert_string_equal(err.reason, "FRAME_DAMAGED");
    assert_int_equal(event.sequence, 7);
    free(data);
  }
  assert_int_equal(hb_scan_frame((struct hb_slice){0}, &event, NULL), HB_CORRUPT);
}

static struct hb_event stored_event(struct hb_slice frame) {
  struct hb_event event;
  assert_int_equal(hb_scan_frame(frame, &event, NULL), HB_OK);
  return event;
}

/* Sequence, key and payload make an event; time, headers and the order of fields do not. */
static void same_is_sequence_key_and_payload(void **state) {
  (void)state;
  static const struct hb_slice first = BYTES("\x0a\x08\x08\x07\x12\x01k\x2a\x01p");
  static const struct hb_slice alike = BYTES("\x0a\x0c\x2a\x01p\x22\x00\x1a\x00\x12\x01k\x08\x07");
  static const struct hb_slice others[] = {
      BYTES("\x0a\x08\x08\x08\x12\x01k\x2a\x01p"), BYTES("\x0a\x08\x08\x07\x12\x01m\x2a\x01p"),
      BYTES("\x0a\x08\x08\x07\x12\x01k\x2a\x01q"), BYTES("\x0a\x08\x08\x07\x12\x02kp\x2a\x00"),
      BYTES("\x0a\x05\x08\x07\x12\x01k"),
  };
  struct hb_event event = stored_event(first);
  struct hb_event copy = stored_event(alike);
  assert_true(hb_event_same(&event, &copy));
  assert_int_equal(hb_event_content_hash(&event), hb_event_content_hash(&copy));
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
    struct hb_event other = stored_event(others[i]);
    assert_false(hb_event_same(&event, &other));
    /* The sequence is no content. */
    assert_int_equal(hb_event_content_hash(&event) == hb_event_content_hash(&other), i == 0);
  }
}

/* The hash names rows on disk: it may never change. */
static void content_hash_is_golden(void **state) {
  (void)state;
  struct hb_event event =
      stored_event((struct hb_slice)BYTES("\x0a\x08\x08\x07\x12\x01k\x2a\x01p"));
  assert_int_equal(hb_event_content_hash(&event), UINT64_C(0xafabf8ec762bed3));
  event = stored_event((struct hb_slice)BYTES("\x0a\x00"));
  assert_int_equal(hb_event_content_hash(&event), UINT64_C(0x48b2c92616fc193d));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_stored_frame_is_the_first),
      cmocka_unit_test(same_is_sequence_key_and_payload),
      cmocka_unit_test(content_hash_is_golden),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
