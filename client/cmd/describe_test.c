/* What a person and a script are shown of a stream. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* cmocka.h needs those first. */
#include <cmocka.h>

#include "client/cmd/describe.h"
#include "client/cmd/meter.h"
#include "client/cmd/picture.h"

static const struct holdback_stream_config config = {.name = "orders", .first_sequence = 1};
static const struct holdback_stream_status waiting = {.has_first = true,
                                                      .first_sequence = 1,
                                                      .frontier = 6,
                                                      .complete_to = 6,
                                                      .earliest = 1,
                                                      .indexed_to = 6,
                                                      .has_highest = true,
                                                      .highest = 7,
                                                      .held_events = 1,
                                                      .held_bytes = 120,
                                                      .gaps = {{6, 7, 12000}},
                                                      .gaps_count = 1,
                                                      .gaps_total = 1};

/* The members that scripts rely on, in their order. */
static void status_json(void **state) {
  (void)state;
  json_t *json = describe_status_json(&config, &waiting);
  char *text = json_dumps(json, JSON_COMPACT);
  assert_string_equal(
      text,
      "{\"stream\":\"orders\",\"mode\":\"GLOBAL\",\"first_sequence\":1,\"frontier\":6,"
      "\"complete_to\":6,\"highest\":7,\"held_events\":1,\"held_bytes\":120,"
      "\"gaps\":[{\"start\":6,\"end\":7,\"age_ms\":12000}],\"gaps_total\":1,"
      "\"max_event_time\":null,\"earliest\":1,\"indexed_to\":6}");
  free(text);
  json_decref(json);
}

/* Numbers that a stream does not have yet are null, not 0. */
static void nothing_yet(void **state) {
  (void)state;
  const struct holdback_stream_status none = {0};
  json_t *json = describe_status_json(&config, &none);
  static const char *const members[] = {"first_sequence", "frontier",   "complete_to",   "highest",
                                        "earliest",       "indexed_to", "max_event_time"};
  for (size_t i = 0; i < sizeof members / sizeof *members; i++)
    assert_true(json_is_null(json_object_get(json, members[i])));
  json_decref(json);
}

/* The gap that blocks is named, with its age. */
static void status_text(void **state) {
  (void)state;
  char *text = NULL;
  size_t size;
  FILE *out = open_memstream(&text, &size);
  describe_status(out, &config, &waiting, false);
  fclose(out);
  assert_non_null(strstr(text, "frontier         6"));
  assert_non_null(strstr(text, "held             1 event, 120 B"));
  assert_non_null(strstr(text, "[6, 7)  1 missing for 12 s  <- everything held waits for it"));
  assert_non_null(strstr(text, "\n  .#\n"));
  assert_null(strchr(text, '\033'));
  free(text);
}

/* One character a sequence where there is room, else slices: whole, missing, mixed. */
static void pictures(void **state) {
  (void)state;
  static const struct holdback_gap one[] = {{2, 3, 0}};
  static const struct holdback_gap half[] = {{0, 50, 0}, {55, 56, 0}};
  static const struct holdback_gap wide[] = {{INT64_MIN, 0, 0}};
  char out[11];
  assert_int_equal(picture_draw(0, 4, one, 1, out, 10), 4);
  assert_string_equal(out, "##.#");
  assert_int_equal(picture_draw(0, 100, half, 2, out, 10), 10);
  assert_string_equal(out, ".....+####");
  assert_int_equal(picture_draw(INT64_MIN, INT64_MAX, wide, 1, out, 10), 10);
  assert_string_equal(out, ".....+####");
}

static void ages(void **state) {
  (void)state;
  static const struct {
    uint64_t ms;
    const char *text;
  } rows[] = {
      {0, "0 ms"},       {999, "999 ms"},  {1000, "1 s"},      {119999, "119 s"},
      {120000, "2 min"}, {7200000, "2 h"}, {172800000, "2 d"}, {UINT64_MAX, "213503982334 d"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char text[32];
    describe_age(rows[i].ms, text, sizeof text);
    assert_string_equal(text, rows[i].text);
  }
}

static void sizes(void **state) {
  (void)state;
  char text[32];
  describe_bytes(1023, text, sizeof text);
  assert_string_equal(text, "1023 B");
  describe_bytes(1536, text, sizeof text);
  assert_string_equal(text, "1.5 KiB");
  describe_bytes(UINT64_C(4) << 30, text, sizeof text);
  assert_string_equal(text, "4.0 GiB");
  meter_format_count(999, text, sizeof text);
  assert_string_equal(text, "999");
  meter_format_count(412345, text, sizeof text);
  assert_string_equal(text, "412k");
  meter_format_count(1250000, text, sizeof text);
  assert_string_equal(text, "1.2M");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(status_json), cmocka_unit_test(nothing_yet), cmocka_unit_test(status_text),
      cmocka_unit_test(pictures),    cmocka_unit_test(ages),        cmocka_unit_test(sizes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
