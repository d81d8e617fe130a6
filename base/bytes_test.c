/* Rules of base/bytes.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* clang-format off: cmocka needs the four above */
#include <cmocka.h>
/* clang-format on */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/bytes.h"

enum { THREADS = 4, ROUNDS = 20000 };

static void count_release(void *context) { atomic_fetch_add((_Atomic int *)context, 1); }

/* Created bytes are written through the pointer and read through the view. */
static void create_gives_room_to_write(void **state) {
  (void)state;
  uint8_t *data;
  struct hb_bytes *bytes = hb_bytes_create(4, &data);
  memcpy(data, "abcd", 4);
  assert_true(hb_slice_equal(hb_bytes_view(bytes), hb_slice_text("abcd")));
  hb_bytes_unref(bytes);
}

/* A copy does not follow its original, and nothing can be copied too. */
static void copy_is_its_own(void **state) {
  (void)state;
  char original[] = "abc";
  struct hb_bytes *bytes = hb_bytes_copy(hb_slice_text(original));
  original[0] = 'x';
  assert_true(hb_slice_equal(hb_bytes_view(bytes), hb_slice_text("abc")));
  hb_bytes_unref(bytes);
  bytes = hb_bytes_copy((struct hb_slice){0});
  assert_int_equal(hb_bytes_view(bytes).size, 0);
  hb_bytes_unref(bytes);
}

/* Lent bytes are not copied, and given back exactly when the last reference goes. */
static void wrap_gives_back_once(void **state) {
  (void)state;
  _Atomic int released = 0;
  static const uint8_t lent[3] = "ab";
  struct hb_bytes *bytes = hb_bytes_wrap(lent, sizeof lent, count_release, &released);
  assert_ptr_equal(hb_bytes_view(bytes).data, lent);
  assert_ptr_equal(hb_bytes_ref(bytes), bytes);
  hb_bytes_unref(bytes);
  assert_int_equal(released, 0);
  hb_bytes_unref(bytes);
  assert_int_equal(released, 1);
}

static void unref_of_null_is_nothing(void **state) {
  (void)state;
  hb_bytes_unref(NULL);
}

static void *ref_and_unref(void *argument) {
  struct hb_bytes *bytes = argument;
  for (int i = 0; i < ROUNDS; i++) hb_bytes_unref(hb_bytes_ref(bytes));
  hb_bytes_unref(bytes);
  return NULL;
}

/* Threads that take and drop references at once release the bytes once, after the last of them. */
static void threads_share_the_count(void **state) {
  (void)state;
  _Atomic int released = 0;
  struct hb_bytes *bytes = hb_bytes_wrap((const uint8_t *)"x", 1, count_release, &released);
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++) {
    hb_bytes_ref(bytes);
    assert_int_equal(pthread_create(&threads[i], NULL, ref_and_unref, bytes), 0);
  }
  assert_int_equal(released, 0);
  hb_bytes_unref(bytes);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  assert_int_equal(released, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(create_gives_room_to_write), cmocka_unit_test(copy_is_its_own),
      cmocka_unit_test(wrap_gives_back_once),       cmocka_unit_test(unref_of_null_is_nothing),
      cmocka_unit_test(threads_share_the_count),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
