/* The list of what is held of a key, against an array that is looked through from one end. */
#include "ordering/key_list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { UNIVERSE = 200, STEPS = 400, SEEDS = 60 };

static uint64_t random_state;

static uint64_t below(uint64_t end) {
  random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
  return (random_state >> 33) % end;
}

static struct hb_keyed_entry entry_of(int64_t sequence) {
  return (struct hb_keyed_entry){.sequence = sequence, .slot = (uint32_t)(sequence & 0xff)};
}

static void check(const struct hb_key_list *list, const bool *there, int64_t base) {
  size_t count = 0;
  uint64_t gaps = 0;
  int64_t first = -1;
  for (int64_t i = 0; i < UNIVERSE; i++) {
    const struct hb_keyed_entry *found = hb_key_list_find(list, base + i);
    assert_int_equal(found != NULL, there[i]);
    if (there[i] && first < 0) first = i;
    if (there[i]) assert_int_equal(found->slot, (uint32_t)((base + i) & 0xff));
    count += there[i];
    gaps += there[i] && (i == 0 || !there[i - 1]);
    int64_t end = i;
    while (end < UNIVERSE && there[end]) end++;
    assert_int_equal(hb_key_list_run_end(list, base + i), base + end);
  }
  assert_int_equal(hb_key_list_count(list), count);
  const struct hb_keyed_entry *front = hb_key_list_front(list);
  assert_int_equal(front != NULL, count > 0);
  if (front) assert_int_equal(front->sequence, base + first);
  assert_int_equal(hb_key_list_gaps(list, false, 0), gaps);
  if (front) assert_int_equal(hb_key_list_gaps(list, true, front->sequence), gaps - 1);
}

static void merge_some(struct hb_key_list *list, bool *there, int64_t base, size_t *bytes) {
  struct hb_keyed_entry more[UNIVERSE];
  size_t count = 0;
  int64_t from = (int64_t)below(UNIVERSE);
  for (int64_t i = from; i < UNIVERSE && i < from + 30; i++) {
    if (there[i] || below(3) == 0) continue;
    there[i] = true;
    more[count++] = entry_of(base + i);
  }
  hb_key_list_merge(list, more, count, bytes);
}

static void pop_some(struct hb_key_list *list, bool *there, size_t *bytes) {
  size_t count = (size_t)below(1 + hb_key_list_count(list));
  hb_key_list_pop(list, count, bytes);
  for (int64_t i = 0; i < UNIVERSE && count; i++) {
    count -= there[i];
    there[i] = false;
  }
}

/* Whatever is merged in and taken from the front, every question is answered right, and the bytes
 * counted are those allocated. Also at both ends of the numbers. */
static void agrees_with_an_array(void **state) {
  (void)state;
  static const int64_t BASES[] = {0, -100, INT64_MIN, INT64_MAX - UNIVERSE};
  for (uint64_t seed = 1; seed <= SEEDS; seed++) {
    printf("seed %llu\n", (unsigned long long)seed);
    random_state = seed;
    int64_t base = BASES[seed % (sizeof BASES / sizeof *BASES)];
    struct hb_key_list list = {0};
    bool there[UNIVERSE] = {false};
    size_t bytes = 0;
    for (int step = 0; step < STEPS; step++) {
      if (below(3)) {
        merge_some(&list, there, base, &bytes);
      } else {
        pop_some(&list, there, &bytes);
      }
      assert_int_equal(bytes, list.cap * sizeof *list.entries);
      if (step % 7 == 0) check(&list, there, base);
    }
    hb_key_list_done(&list, &bytes);
    assert_int_equal(bytes, 0);
  }
}

/* At a start entries come in any order, and are sorted once. */
static void entries_are_sorted(void **state) {
  (void)state;
  struct hb_key_list list = {0};
  size_t bytes = 0;
  for (int64_t i = 0; i < UNIVERSE; i++) {
    hb_key_list_append(&list, entry_of(i * 77 % UNIVERSE), &bytes);
  }
  hb_key_list_sort(&list);
  for (int64_t i = 0; i < UNIVERSE; i++) {
    assert_int_equal(list.entries[list.from + (size_t)i].sequence, i);
  }
  hb_key_list_done(&list, &bytes);
  assert_int_equal(bytes, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(agrees_with_an_array),
      cmocka_unit_test(entries_are_sorted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
