/* Lines of JSON: what is an event, what is not and why, and that tail's lines are send's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka.h needs those first. */
#include <cmocka.h>

#include <stdio.h>

#include "client/cmd/event_json.h"

static void assert_bytes(struct holdback_bytes bytes, const char *expected, size_t size) {
  assert_int_equal(bytes.size, size);
  if (size) assert_memory_equal(bytes.data, expected, size);
}

static void read_good(struct event_line *line, const char *text, struct holdback_event *out) {
  char wrong[256] = "";
  if (!event_line_read(line, hb_slice_text(text), out, wrong, sizeof wrong))
    fail_msg("%s: %s", text, wrong);
}

/* The flights' lines, as they are. */
static void a_plain_event(void **state) {
  (void)state;
  struct event_line line = {0};
  struct holdback_event event;
  read_good(&line,
            "{\"sequence\":3,\"key\":\"LAS\",\"event_time\":\"2001-01-01T01:24:00Z\","
            "\"payload\":\"{\\\"delay\\\":-5}\"}\r",
            &event);
  assert_int_equal(event.sequence, 3);
  assert_bytes(event.key, "LAS", 3);
  assert_true(event.has_event_time);
  assert_int_equal(event.event_time_seconds, 978312240);
  assert_bytes(event.payload, "{\"delay\":-5}", 12);
  assert_int_equal(event.headers_count, 0);
  event_line_done(&line);
}

/* The marks of PER_KEY streams: written where they are true, and read back. */
static void first_and_last(void **state) {
  (void)state;
  struct event_line line = {0};
  struct holdback_event event;
  struct hb_buf out = {0};
  read_good(&line, "{\"sequence\":3,\"initial\":true,\"last\":false}", &event);
  assert_true(event.initial);
  assert_false(event.last);
  event_line_write(&out, &event, NULL);
  static const char wanted[] = "{\"sequence\":3,\"key\":\"\",\"payload\":\"\",\"initial\":true}\n";
  assert_true(hb_slice_equal(hb_buf_view(&out), hb_slice_text(wanted)));
  char wrong[64] = "";
  assert_false(event_line_read(&line, hb_slice_text("{\"sequence\":3,\"last\":1}"), &event, wrong,
                               sizeof wrong));
  assert_string_equal(wrong, "last: is an integer, expected true or false");
  hb_buf_done(&out);
  event_line_done(&line);
}

/* Payloads: a string is its bytes, anything else its compact dump, base64 what it stands for. */
static void payloads(void **state) {
  (void)state;
  static const struct {
    const char *json;
    const char *bytes;
    size_t size;
  } rows[] = {
      {"\"payload\":\"h\\u00e9\\u0000\"", "h\xc3\xa9\0", 4},
      {"\"payload\":{ \"b\" : 1, \"a\" : [ true , null , 0.1, \"x\" ] }",
       "{\"b\":1,\"a\":[true,null,0.1,\"x\"]}", 31},
      {"\"payload\":1e3", "1000.0", 6},
      {"\"payload\":0.30000000000000004", "0.30000000000000004", 19},
      {"\"payload\":-9223372036854775808", "-9223372036854775808", 20},
      {"\"payload\":null", "null", 4},
      {"\"payload\":[]", "[]", 2},
      {"\"payload\":{\"q\":\"a\\\"\\n\\u0001\"}", "{\"q\":\"a\\\"\\n\\u0001\"}", 19},
      {"\"payload_base64\":\"/wA=\"", "\xff\0", 2},
      {"\"key\":\"\"", "", 0},
  };
  struct event_line line = {0};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char text[128];
    struct holdback_event event;
    (void)snprintf(text, sizeof text, "{\"sequence\":1,%s}", rows[i].json);
    read_good(&line, text, &event);
    assert_bytes(event.payload, rows[i].bytes, rows[i].size);
  }
  event_line_done(&line);
}

/* Headers as a list keep order, duplicates and binary values; as an object they are short. */
static void headers(void **state) {
  (void)state;
  struct event_line line = {0};
  struct holdback_event event;
  read_good(&line,
            "{\"sequence\":1,\"key_base64\":\"/w==\",\"headers\":[{\"name\":\"a\",\"value\":\"1\"},"
            "{\"name\":\"a\",\"value_base64\":\"AP8=\"},{\"name\":\"b\"}]}",
            &event);
  assert_bytes(event.key, "\xff", 1);
  assert_int_equal(event.headers_count, 3);
  assert_bytes(event.headers[0].value, "1", 1);
  assert_bytes(event.headers[1].name, "a", 1);
  assert_bytes(event.headers[1].value, "\0\xff", 2);
  assert_bytes(event.headers[2].value, "", 0);
  read_good(&line, "{\"sequence\":1,\"headers\":{\"x\":\"1\",\"y\":\"2\"}}", &event);
  assert_int_equal(event.headers_count, 2);
  assert_bytes(event.headers[1].name, "y", 1);
  assert_bytes(event.headers[1].value, "2", 1);
  event_line_done(&line);
}

/* A wrong line says which member, what it is and what was expected. */
static void wrong_lines(void **state) {
  (void)state;
  static const char *const rows[][2] = {
      {"", "not JSON"},
      {"{", "not JSON"},
      {"{\"sequence\":1} x", "not JSON"},
      {"{\"sequence\":1,\"sequence\":2}", "duplicate object key"},
      {"[1]", "an array, expected an object"},
      {"{}", "sequence: is missing"},
      {"{\"sequence\":\"1\"}", "sequence: is a string, expected an integer"},
      {"{\"sequence\":1.5}", "sequence: is a number with a fraction"},
      {"{\"sequence\":9223372036854775808}", "too big integer"},
      {"{\"sequence\":1,\"key\":7}", "key: is an integer, expected a string"},
      {"{\"sequence\":1,\"key\":\"a\",\"key_base64\":\"YQ==\"}", "only one can be given"},
      {"{\"sequence\":1,\"payload\":1,\"payload_base64\":\"YQ==\"}", "only one can be given"},
      {"{\"sequence\":1,\"payload_base64\":\"YQ\"}", "payload_base64: not base64 at character 3"},
      {"{\"sequence\":1,\"payload_base64\":1}", "payload_base64: is an integer"},
      {"{\"sequence\":1,\"event_time\":\"yesterday\"}", "event_time: 'yesterday': not of the form"},
      {"{\"sequence\":1,\"event_time\":5}", "event_time: is an integer"},
      {"{\"sequence\":1,\"headers\":5}", "headers: is an integer"},
      {"{\"sequence\":1,\"headers\":[5]}", "headers[0]: is an integer"},
      {"{\"sequence\":1,\"headers\":[{\"value\":\"v\"}]}", "headers[0].name: is missing"},
      {"{\"sequence\":1,\"headers\":[{\"name\":\"n\",\"value\":1}]}",
       "headers[0].value: is an integer"},
      {"{\"sequence\":1,\"headers\":[{\"name\":\"n\",\"x\":1}]}", "headers[0].x: no such member"},
      {"{\"sequence\":1,\"headers\":{\"n\":1}}", "headers.n: is an integer"},
      {"{\"sequence\":1,\"paylaod\":\"x\"}", "paylaod: no such member"},
      {"{\"sequence\":1,\"key\":\"\xff\"}", "not JSON"},
  };
  struct event_line line = {0};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char wrong[256] = "";
    struct holdback_event event = {.sequence = 42};
    assert_false(event_line_read(&line, hb_slice_text(rows[i][0]), &event, wrong, sizeof wrong));
    if (!strstr(wrong, rows[i][1])) fail_msg("%s: %s", rows[i][0], wrong);
    assert_int_equal(event.sequence, 42);
  }
  event_line_done(&line);
}

/* Every line that tail prints is read back as the event that it was printed from. */
static void tail_and_send(void **state) {
  (void)state;
  static const struct holdback_header two[] = {{{"n\"", 2}, {"\xff", 1}}, {{"n\"", 2}, {"v", 1}}};
  static const struct holdback_event rows[] = {
      {0},
      {.sequence = INT64_MIN, .key = {"a\\\"\n\t\x01\x7f", 7}, .payload = {"\0", 1}},
      {.sequence = INT64_MAX - 1, .key = {"\xc0\x80", 2}, .payload = {"\xed\xa0\x80", 3}},
      {.sequence = 5,
       .key = {"\xf0\x9f\x98\x80", 4},
       .has_event_time = true,
       .event_time_seconds = -5,
       .event_time_nanos = 7,
       .headers = two,
       .headers_count = 2},
  };
  struct event_line line = {0};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct hb_buf first = {0};
    struct hb_buf again = {0};
    struct holdback_event event;
    char wrong[256];
    event_line_write(&first, &rows[i], NULL);
    assert_true(event_line_read(&line, hb_buf_view(&first), &event, wrong, sizeof wrong));
    assert_int_equal(event.sequence, rows[i].sequence);
    assert_bytes(event.key, rows[i].key.data, rows[i].key.size);
    assert_bytes(event.payload, rows[i].payload.data, rows[i].payload.size);
    assert_int_equal(event.headers_count, rows[i].headers_count);
    event_line_write(&again, &event, NULL);
    assert_true(hb_slice_equal(hb_buf_view(&first), hb_buf_view(&again)));
    hb_buf_done(&first);
    hb_buf_done(&again);
  }
  event_line_done(&line);
}

/* A held event's line has its state, and can be sent all the same. */
static void held_state(void **state) {
  (void)state;
  struct hb_buf out = {0};
  struct event_line line = {0};
  struct holdback_event event = {.sequence = 7, .key = {"k", 1}};
  char wrong[256];
  event_line_write(&out, &event, "HELD");
  assert_true(hb_slice_equal(
      hb_buf_view(&out),
      hb_slice_text("{\"sequence\":7,\"key\":\"k\",\"payload\":\"\",\"state\":\"HELD\"}\n")));
  assert_true(event_line_read(&line, hb_buf_view(&out), &event, wrong, sizeof wrong));
  hb_buf_done(&out);
  event_line_done(&line);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_plain_event), cmocka_unit_test(first_and_last),
      cmocka_unit_test(payloads),      cmocka_unit_test(headers),
      cmocka_unit_test(wrong_lines),   cmocka_unit_test(tail_and_send),
      cmocka_unit_test(held_state),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
