/* The order of states in a commit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "processing/order_internal.h"

enum { MANY = 3000 };

static unsigned next_random(unsigned *seed) {
  *seed = *seed * 1103515245u + 12345u;
  return *seed >> 8;
}

static struct hb_state *make(const char *key, size_t key_size, const char *name) {
  size_t name_size = strlen(name);
  struct hb_state *state = hb_calloc(1, sizeof *state + 8 + key_size + name_size);
  state->room = 8;
  state->key_size = (uint32_t)key_size;
  state->name_size = (uint16_t)name_size;
  memcpy(state->bytes + 8, key, key_size);
  memcpy(state->bytes + 8 + key_size, name, name_size);
  return state;
}

static int compare(const struct hb_state *a, const struct hb_state *b) {
  int order = hb_slice_compare(hb_state_key(a), hb_state_key(b));
  return order ? order : hb_slice_compare(hb_state_name(a), hb_state_name(b));
}

static void sort_and_check(struct hb_state **states, size_t count, unsigned seed) {
  struct hb_state *before[MANY];
  memcpy(before, states, count * sizeof *states);
  hb_states_sort(states, count);
  for (size_t i = 1; i < count; i++) {
    if (compare(states[i - 1], states[i]) >= 0) fail_msg("seed %u: at %zu", seed, i);
  }
  uintptr_t sums[2] = {0, 0}; /* strictly ascending, and as many: none is there twice */
  for (size_t i = 0; i < count; i++) {
    sums[0] += (uintptr_t)before[i];
    sums[1] += (uintptr_t)states[i];
  }
  assert_true(sums[0] == sums[1]);
  for (size_t i = 0; i < count; i++) free(states[i]);
}

/* Keys of one length behind a common beginning, few and many, whatever order they come in. */
static void test_numbered(void **state) {
  (void)state;
  for (unsigned seed = 1; seed <= 8; seed++) {
    struct hb_state *states[MANY];
    size_t count = seed == 1 ? 0 : seed == 2 ? 1 : seed == 3 ? 40 : MANY;
    unsigned random = seed;
    for (size_t i = 0; i < count; i++) {
      char key[32];
      int size = snprintf(key, sizeof key, "contract-%08zu", (i * 7919 + seed) % 10007);
      states[i] = make(key, (size_t)size, "");
      size_t other = next_random(&random) % (i + 1);
      struct hb_state *swap = states[other];
      states[other] = states[i];
      states[i] = swap;
    }
    sort_and_check(states, count, seed);
  }
}

/* Keys that are beginnings of others, empty, with zero bytes at the end, alike for longer than a
 * number is; and states of one key under several names. */
static void test_hard_keys(void **state) {
  (void)state;
  for (unsigned seed = 1; seed <= 4; seed++) {
    struct hb_state *states[MANY];
    size_t count = 0;
    for (unsigned bits = 0; bits < 512; bits++) {
      char key[24] = "alike for long";
      size_t lead = seed % 2 ? 14 : 0;
      size_t size = lead;
      for (unsigned left = bits; left > 1; left /= 2) key[size++] = left % 2 ? '\xff' : '\0';
      if (bits == 0) continue;
      static const char *const NAMES[] = {"", "a", "ab", "b"};
      for (size_t i = 0; i < 4; i++) states[count++] = make(key, size, NAMES[(i + bits) % 4]);
    }
    sort_and_check(states, count, seed);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_numbered),
      cmocka_unit_test(test_hard_keys),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
