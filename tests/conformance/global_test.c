/* Beam's cases for global sequences, by their ids, from a producer's calls to results, statuses and
 * ranges, with a loaded processor. docs/CONFORMANCE.md tells what each shows, and where Holdback
 * differs. runner.h has how a row runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the ones above */
#include <cmocka.h>

#include "tests/conformance/runner.h"

static const struct hbt_case CASES[] = {
    {"GS1",
     0,
     "1",
     {{0, "k1", "a"},
      {1, "k1", "b"},
      {2, "k1", "c"},
      {3, "k1", "d"},
      {4, "k2", "a"},
      {5, "k2", "b"}},
     "k1 a k1 ab k1 abc k1 abcd k2 a k2 ab",
     6,
     {{"k1", 3, 0, 0, 0, 4, 4, 0, 0, 0, 0}, {"k2", 5, 0, 0, 0, 2, 2, 0, 0, 0, 0}}},
    {"GS2",
     0,
     "1",
     {{2, "k1", "c"},
      {1, "k1", "b"},
      {0, "k1", "a"},
      {3, "k1", "d"},
      {5, "k2", "b"},
      {6, "k2", "c"},
      {8, "k2", "e"},
      {4, "k2", "a"},
      {7, "k2", "d"}},
     "k1 a k1 ab k1 abc k1 abcd k2 a k2 ab k2 abc k2 abcd k2 abcde",
     9,
     {{"k1", 3, 0, 0, 0, 4, 4, 0, 0, 0, 0}, {"k2", 8, 0, 0, 0, 5, 5, 0, 0, 0, 0}}},
    {"GS3",
     0,
     "1",
     {{3, "k1", "d"},
      {2, "k1", "c"},
      {3, "k1", "d"},
      {3, "k1", "d"},
      {0, "k1", "a"},
      {1, "k1", "b"},
      {1, "k1", "b"},
      {3, "k1", "d"}},
     "k1 a k1 ab k1 abc k1 abcd",
     4,
     {{"k1", 3, 0, 0, 0, 8, 4, 4, 0, 0, 0}}},
    {"GS4",
     0,
     "1",
     {{3, "k1", "d"},
      {2, "k1", "c"},
      {-1, "k1", "early-1"},
      {-2, "k1", "early-2"},
      {0, "k1", "a"},
      {1, "k1", "b"}},
     "k1 a k1 ab k1 abc k1 abcd",
     4,
     {{"k1", 3, 0, 0, 0, 6, 4, 0, 0, 2, 0}}},
    {"GS5",
     0,
     "1",
     {{0, "k1", "a"}, {1, "k1", "b"}, {2, "k1", "BAD"}, {3, "k1", "c"}},
     "k1 a k1 ab k1 abc",
     4,
     {{"k1", 3, 0, 0, 0, 4, 3, 0, 1, 0, 0}}},
    {"GS6",
     0,
     "2",
     {{2, "k1", "c"},
      {1, "k1", "b"},
      {0, "k1", "a"},
      {3, "k1", "d"},
      {4, "k2", "a"},
      {5, "k2", "b"}},
     "k1 a k1 abc k2 a",
     6,
     {{"k1", 3, 0, 0, 0, 4, 2, 0, 0, 0, 0}, {"k2", 5, 0, 0, 0, 2, 1, 0, 0, 0, 0}}},
    {"GS8",
     1,
     "1",
     {{2, "k1", "2-"},
      {3, "k1", "3-"},
      {7, "k1", "7-"},
      {8, "k1", "8-"},
      {9, "k1", "9-"},
      {10, "k1", "10-"},
      {1, "k1", "1-"},
      {4, "k1", "4-"},
      {5, "k1", "5-"},
      {6, "k1", "6-"}},
     "k1 1- k1 1-2- k1 1-2-3- k1 1-2-3-4- k1 1-2-3-4-5- k1 1-2-3-4-5-6- k1 1-2-3-4-5-6-7- "
     "k1 1-2-3-4-5-6-7-8- k1 1-2-3-4-5-6-7-8-9- k1 1-2-3-4-5-6-7-8-9-10-",
     11,
     {{"k1", 10, 0, 0, 0, 10, 10, 0, 0, 0, 0}}},
    {"GS9",
     0,
     "1",
     {{1, "k1", "b"}, {0, "k1", "a"}, {INT64_MAX, "k1", "d"}, {2, "k1", "c"}},
     "k1 a k1 ab k1 abc",
     3,
     {{"k1", 2, 0, 0, 0, 4, 3, 0, 0, 1, 0}}},
    {"GS10",
     0,
     "1",
     {{0, "k1", "a"}, {1, "k1", "b"}, {2, "k1", "z"}},
     "k1 a k1 ab k1 abz",
     3,
     {{"k1", 2, 0, 0, 0, 3, 3, 0, 0, 0, 0}}},
    {"GS11 window 1, distinct sequences",
     0,
     "1",
     {{0, "k1", "a"}, {1, "k1", "b"}, {2, "k2", "x"}, {3, "k2", "y"}, {4, "k2", "z"}},
     "k1 a k1 ab k2 x k2 xy k2 xyz",
     5,
     {{"k1", 1, 0, 0, 0, 2, 2, 0, 0, 0, 0}, {"k2", 4, 0, 0, 0, 3, 3, 0, 0, 0, 0}}},
    {"GS11 window 2",
     0,
     "1",
     {{0, "k1", "c"}, {1, "k1", "d"}},
     "k1 c k1 cd",
     2,
     {{"k1", 1, 0, 0, 0, 2, 2, 0, 0, 0, 0}}},
    {"GS12",
     1,
     "1",
     {{1, "A", "1"}, {2, "B", "2"}, {3, "A", "3"}, {4, "A", "4"}, {5, "B", "5"}, {7, "B", "7"}},
     "A 1 B 2 A 13 A 134 B 25",
     6,
     {{"A", 4, 0, 0, 0, 3, 3, 0, 0, 0, 0}, {"B", 5, 1, 7, 7, 3, 2, 0, 0, 0, 0}}},
    {"X8",
     0,
     "1",
     {{-5, "k2", "x"}, {0, "k1", "a"}},
     "k1 a",
     1,
     {{"k1", 0, 0, 0, 0, 1, 1, 0, 0, 0, 0}, {"k2", HBT_NONE, 0, 0, 0, 1, 0, 0, 0, 1, 0}}},
    {"X9",
     0,
     "1",
     {{-5, "k2", "x"}, {0, "k1", "a"}, {1, "k1", "b"}, {2, "k2", "c"}},
     "k1 a k1 ab k2 c",
     3,
     {{"k1", 1, 0, 0, 0, 2, 2, 0, 0, 0, 0}, {"k2", 2, 0, 0, 0, 2, 1, 0, 0, 1, 0}}},
    {"X10",
     0,
     "1",
     {{2, "k1", "c"}, {0, "k1", "a"}, {1, "k1", "b"}},
     "k1 a k1 ab k1 abc",
     3,
     {{"k1", 2, 0, 0, 0, 3, 3, 0, 0, 0, 0}}},
    {"X11",
     INT64_MIN,
     "1",
     {{INT64_MIN + 1, "k1", "b"}, {INT64_MIN, "k1", "a"}},
     "k1 a k1 ab",
     INT64_MIN + 2,
     {{"k1", INT64_MIN + 1, 0, 0, 0, 2, 2, 0, 0, 0, 0}}},
};

/* As Beam's streaming tests send them, and in any other order, as its batch tests do. */
static void test_cases(void **state) {
  hbt_run_cases(*state, CASES, sizeof CASES / sizeof *CASES, HBT_GLOBAL);
}

/* What a case left is the same after a kill. */
static void test_killed(void **state) {
  hbt_run_killed(*state, CASES, sizeof CASES / sizeof *CASES, HBT_GLOBAL);
}

/* GS7: 300 events of one key wait for the first; then one result each, in order. */
static void test_gs7(void **state) {
  struct hbt_conformance *world = *state;
  char stream[32];
  hbt_name_next(world, stream);
  hbt_attach(world, stream, HBT_GLOBAL, 1, "1", HOLDBACK_KEY_STATUS_KEPT);
  struct hbt_sent event = {.key = "k1", .payload = "."};
  for (event.sequence = 2; event.sequence <= HBT_DOTS; event.sequence++) {
    assert_int_equal(hbt_send(world, stream, HBT_GLOBAL, &event, false), HOLDBACK_STORED);
  }
  struct hbt_standing waiting = {"k1", HBT_NONE, 299, 2, 300, 299, 0, 0, 0, 0, 0};
  hbt_check_standing(world, "GS7", stream, &waiting);
  event.sequence = 1;
  assert_int_equal(hbt_send(world, stream, HBT_GLOBAL, &event, false), HOLDBACK_STORED);
  hbt_check_dots(world, "GS7", stream, HBT_DOTS);
  struct hbt_standing done = {"k1", HBT_DOTS, 0, 0, 0, HBT_DOTS, HBT_DOTS, 0, 0, 0, 0};
  hbt_check_standing(world, "GS7", stream, &done);
}

/* GS11 as it is written: the same number under another key is another content, so CONFLICT. */
static void test_gs11(void **state) {
  struct hbt_conformance *world = *state;
  static const struct hbt_sent EVENTS[] = {
      {0, "k1", "a"}, {1, "k1", "b"}, {0, "k2", "x"}, {1, "k2", "y"}, {2, "k2", "z"}};
  char stream[32];
  hbt_name_next(world, stream);
  hbt_attach(world, stream, HBT_GLOBAL, 0, "1", HOLDBACK_KEY_STATUS_KEPT);
  for (size_t i = 0; i < 5; i++) {
    bool conflict = i == 2 || i == 3;
    assert_int_equal(hbt_send(world, stream, HBT_GLOBAL, &EVENTS[i], false),
                     conflict ? HOLDBACK_CONFLICT : HOLDBACK_STORED);
  }
  hbt_check_results(world, "GS11", stream, HBT_GLOBAL, "k1 a k1 ab k2 z");
  struct hbt_standing second = {"k2", 2, 0, 0, 0, 3, 1, 0, 0, 2, 0};
  hbt_check_standing(world, "GS11", stream, &second);
}

/* AM8, X12: two statements of where a stream begins that differ are an error that names both. */
static void test_am8(void **state) {
  struct hbt_conformance *world = *state;
  struct holdback_error error;
  struct holdback_stream_config config = {.name = "two-initials", .first_sequence = 1};
  hbt_must(holdback_stream_create(world->client, &config, &error), &error);
  config.first_sequence = 3;
  assert_int_equal(holdback_stream_create(world->client, &config, &error), HOLDBACK_ALREADY_EXISTS);
  assert_non_null(strstr(error.message, "first_sequence"));
  assert_non_null(strstr(error.message, "1"));
  assert_non_null(strstr(error.message, "3"));
}

#define TEST(name) \
  cmocka_unit_test_setup_teardown(name, hbt_conformance_setup, hbt_conformance_teardown)

int main(int argc, char **argv) {
  if (!hbt_conformance_arguments(argc, argv)) return 2;
  const struct CMUnitTest tests[] = {TEST(test_cases), TEST(test_killed), TEST(test_gs7),
                                     TEST(test_gs11), TEST(test_am8)};
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
