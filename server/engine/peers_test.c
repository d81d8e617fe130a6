/* Numbers for who sent: one text, one number; beyond the cap 'other'; texts of any bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "server/engine/testing.h"

static int setup(void **state) {
  struct rig *rig = calloc(1, sizeof *rig);
  rig_init(rig);
  *state = rig;
  return 0;
}

static int teardown(void **state) {
  rig_done(*state);
  free(*state);
  return 0;
}

static uint32_t intern(struct rig *rig, int number) {
  char text[16];
  int size = snprintf(text, sizeof text, "peer\n%d", number);
  return hb_engine_intern_peer(rig->engine, hb_slice_of(text, (size_t)size));
}

/* The first peers_max texts get numbers that last over restarts; later ones are 0. */
static void test_cap(void **state) {
  struct rig *rig = *state;
  rig->limits.peers_max = 300;
  rig_open(rig);
  uint32_t numbers[300];
  for (int i = 0; i < 300; i++) {
    numbers[i] = intern(rig, i);
    assert_true(numbers[i] > 0);
    if (i > 0) assert_true(numbers[i] != numbers[i - 1]);
  }
  assert_int_equal(intern(rig, 300), 0);
  for (int i = 0; i < 300; i++) assert_int_equal(intern(rig, i), numbers[i]);
  rig_reopen(rig);
  for (int i = 0; i < 300; i++) assert_int_equal(intern(rig, i), numbers[i]);
  assert_int_equal(intern(rig, 300), 0);
}

/* The empty text is a text. */
static void test_empty(void **state) {
  struct rig *rig = *state;
  rig_open(rig);
  uint32_t empty = hb_engine_intern_peer(rig->engine, (struct hb_slice){0});
  assert_true(empty > 0);
  assert_int_equal(hb_engine_intern_peer(rig->engine, hb_slice_text("")), empty);
  assert_true(intern(rig, 1) != empty);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_cap, setup, teardown),
      cmocka_unit_test_setup_teardown(test_empty, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
