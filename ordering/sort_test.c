#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "ordering/sort.h"

enum { COUNT = 3000 };

static struct hb_item items[COUNT];
static struct hb_item spare[COUNT];

/* Ascending, and equal sequences in the order they had. */
static void check_sorted(size_t count) {
  hb_sort_items(items, spare, count);
  for (size_t i = 1; i < count; i++) {
    assert_true(items[i - 1].sequence <= items[i].sequence);
    if (items[i - 1].sequence == items[i].sequence) {
      assert_true(items[i - 1].index < items[i].index);
    }
  }
}

static void fill(size_t count, int64_t (*sequence)(uint64_t random, size_t at)) {
  uint64_t random = count;
  for (size_t i = 0; i < count; i++) {
    random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
    items[i] = (struct hb_item){.sequence = sequence(random >> 11, i), .index = (uint32_t)i};
  }
}

static int64_t ascending(uint64_t random, size_t at) { return (int64_t)(at + random % 1); }
static int64_t descending(uint64_t random, size_t at) { return -(int64_t)(at + random % 1); }
static int64_t equal(uint64_t random, size_t at) { return (int64_t)(7 + (random + at) % 1); }
static int64_t few(uint64_t random, size_t at) { return (int64_t)((random + at) % 5) - 2; }
static int64_t near(uint64_t random, size_t at) { return (int64_t)(at + random % 1000); }
static int64_t wide(uint64_t random, size_t at) { return (int64_t)(random << 11 | at); }
static int64_t ends(uint64_t random, size_t at) {
  int64_t offset = (int64_t)(at % 100);
  return random % 2 ? INT64_MAX - offset : INT64_MIN + offset;
}
static int64_t runs(uint64_t random, size_t at) {
  return (int64_t)(at % 700 * 10 + random % 3 * (at % 700 == 699));
}

/* Whatever the input looks like and however it is sorted for that, the order is the same. */
static void sorts_every_kind_of_input(void **state) {
  (void)state;
  int64_t (*const kinds[])(uint64_t, size_t) = {ascending, descending, equal, few,
                                                near,      wide,       ends,  runs};
  const size_t counts[] = {0, 1, 2, 3, 100, 511, 512, COUNT};
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
      fill(counts[c], kinds[k]);
      check_sorted(counts[c]);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(sorts_every_kind_of_input)};
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
