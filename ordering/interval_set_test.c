#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ordering/interval_set.h"

struct naive {
  int64_t low; /* sequence of covered[0] */
  uint8_t covered[4096];
};

static uint64_t next_random(uint64_t *state) {
  *state += 0x9E3779B97F4A7C15u;
  uint64_t z = *state;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

static size_t naive_gaps(const struct naive *naive, size_t from) {
  size_t gaps = 0;
  for (size_t i = from; i + 1 < sizeof naive->covered; i++) {
    gaps += !naive->covered[i] && naive->covered[i + 1];
  }
  return gaps;
}

static void check_against(struct hb_interval_set *set, const struct naive *naive) {
  size_t size = sizeof naive->covered;
  size_t from = 0;
  while (from < size && naive->covered[from]) from++;
  assert_int_equal(set->base, naive->low + (int64_t)from);
  assert_int_equal(hb_intervals_gaps(set), naive_gaps(naive, from));
  for (size_t i = 0; i < size; i++) {
    assert_int_equal(hb_intervals_contains(set, naive->low + (int64_t)i), naive->covered[i]);
  }
  struct hb_gap_walk walk = hb_gap_walk_start(set);
  struct hb_range gap;
  while (hb_gap_walk_next(&walk, &gap, NULL)) {
    for (int64_t at = gap.start; at < gap.end; at++) assert_false(naive->covered[at - naive->low]);
    assert_true(naive->covered[gap.end - naive->low]);
  }
}

static void run_random(int64_t low, unsigned steps, unsigned width, uint64_t seed) {
  static struct naive naive;
  memset(&naive, 0, sizeof naive);
  naive.low = low;
  size_t bytes = 0;
  struct hb_interval_set set;
  hb_intervals_init(&set, low, &bytes);
  for (unsigned i = 0; i < steps; i++) {
    size_t start = next_random(&seed) % (sizeof naive.covered - width - 1);
    size_t length = 1 + next_random(&seed) % width;
    bool whole_free = !memchr(naive.covered + start, 1, length);
    size_t before = hb_intervals_gaps(&set);
    bool splits = hb_intervals_splits(&set, low + (int64_t)start, low + (int64_t)(start + length));
    hb_intervals_insert(&set, low + (int64_t)start, low + (int64_t)(start + length), 7);
    memset(naive.covered + start, 1, length);
    if (whole_free) assert_int_equal(splits, hb_intervals_gaps(&set) == before + 1);
    if (i % (steps / 16) == 0) check_against(&set, &naive);
  }
  check_against(&set, &naive);
  hb_intervals_done(&set);
  assert_int_equal(bytes, 0);
}

/* Whatever is inserted in whatever order, the set covers what a bitmap says. */
static void agrees_with_a_bitmap(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 6; seed++) {
    printf("seed %llu\n", (unsigned long long)seed);
    run_random(0, 1500, 1, seed);
    run_random(-2000, 400, 9, seed);
    run_random(INT64_MIN, 3000, 2, seed);
    run_random(INT64_MAX - 4096, 3000, 3, seed);
  }
}

/* Ranges at both ends of the numbers neither wrap nor get lost. */
static void stands_at_the_ends_of_int64(void **state) {
  (void)state;
  size_t bytes = 0;
  struct hb_interval_set set;
  hb_intervals_init(&set, INT64_MIN, &bytes);
  hb_intervals_insert(&set, INT64_MAX - 1, INT64_MAX, 1);
  assert_true(hb_intervals_contains(&set, INT64_MAX - 1));
  assert_false(hb_intervals_contains(&set, INT64_MIN));
  assert_int_equal(hb_intervals_gaps(&set), 1);
  hb_intervals_insert(&set, INT64_MIN, INT64_MIN + 1, 1);
  assert_int_equal(set.base, INT64_MIN + 1);
  hb_intervals_insert(&set, INT64_MIN + 1, INT64_MAX - 1, 1);
  assert_int_equal(set.base, INT64_MAX);
  assert_int_equal(hb_intervals_gaps(&set), 0);
  assert_true(hb_intervals_contains(&set, INT64_MAX - 1));
  hb_intervals_done(&set);
}

/* The parts of a split gap keep the moment of the whole; a gap above all has its own. */
static void split_gaps_keep_their_moment(void **state) {
  (void)state;
  size_t bytes = 0;
  struct hb_interval_set set;
  hb_intervals_init(&set, 0, &bytes);
  hb_intervals_insert(&set, 100, 101, 10);
  hb_intervals_insert(&set, 50, 51, 20);
  hb_intervals_insert(&set, 200, 201, 30);
  hb_intervals_insert(&set, 199, 200, 40);
  hb_intervals_insert(&set, 0, 10, 50);
  int64_t starts[] = {10, 51, 101};
  int64_t ends[] = {50, 100, 199};
  uint64_t moments[] = {10, 10, 30};
  struct hb_gap_walk walk = hb_gap_walk_start(&set);
  struct hb_range gap;
  uint64_t *moment;
  for (int i = 0; i < 3; i++) {
    assert_true(hb_gap_walk_next(&walk, &gap, &moment));
    assert_int_equal(gap.start, starts[i]);
    assert_int_equal(gap.end, ends[i]);
    assert_int_equal(*moment, moments[i]);
  }
  assert_false(hb_gap_walk_next(&walk, &gap, &moment));
  hb_intervals_done(&set);
}

static void shuffle(int64_t *items, size_t count, uint64_t seed) {
  for (size_t i = count - 1; i > 0; i--) {
    size_t j = next_random(&seed) % (i + 1);
    int64_t swap = items[i];
    items[i] = items[j];
    items[j] = swap;
  }
}

/* Many scattered ranges: memory stays below 35 bytes for each, and filling the gaps in any order
 * gives all of it back. */
static void many_gaps_come_and_go(void **state) {
  (void)state;
  enum { COUNT = 100000 };
  int64_t *order = malloc(COUNT * sizeof *order);
  for (int i = 0; i < COUNT; i++) order[i] = i;
  shuffle(order, COUNT, 3);
  size_t bytes = 0;
  struct hb_interval_set set;
  hb_intervals_init(&set, 0, &bytes);
  for (int i = 0; i < COUNT; i++) hb_intervals_insert(&set, order[i] * 2 + 1, order[i] * 2 + 2, 0);
  assert_int_equal(hb_intervals_gaps(&set), COUNT);
  assert_true(bytes < COUNT * 35u);
  shuffle(order, COUNT, 4);
  for (int i = 0; i < COUNT; i++) hb_intervals_insert(&set, order[i] * 2, order[i] * 2 + 1, 0);
  assert_int_equal(set.base, COUNT * 2);
  assert_int_equal(hb_intervals_gaps(&set), 0);
  assert_true(bytes < 4096 * 24);
  hb_intervals_done(&set);
  assert_int_equal(bytes, 0);
  free(order);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(agrees_with_a_bitmap),
      cmocka_unit_test(stands_at_the_ends_of_int64),
      cmocka_unit_test(split_gaps_keep_their_moment),
      cmocka_unit_test(many_gaps_come_and_go),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
