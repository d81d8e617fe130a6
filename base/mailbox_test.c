/* Rules of base/mailbox.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* clang-format off: cmocka needs the four above */
#include <cmocka.h>
/* clang-format on */
#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/mailbox.h"

enum { POSTERS = 4, POSTS = 5000 };

struct item {
  struct hb_node node; /* first: a node's address is its item's */
  int poster;
  int number;
};

static void drain(struct hb_mailbox *mailbox) {
  while (hb_mailbox_take(mailbox, SIZE_MAX, 0)) continue;
}

/* Taken in posting order, whichever function posted. */
static void order_is_posting_order(void **state) {
  (void)state;
  struct hb_mailbox *mailbox = hb_mailbox_create(100, NULL, NULL);
  struct item items[4];
  assert_true(hb_mailbox_try_post(mailbox, &items[0].node, 1));
  hb_mailbox_post(mailbox, &items[1].node);
  assert_true(hb_mailbox_try_post(mailbox, &items[2].node, 1));
  hb_mailbox_post(mailbox, &items[3].node);
  struct hb_node *node = hb_mailbox_take(mailbox, SIZE_MAX, 0);
  for (int i = 0; i < 4; i++, node = node->next) assert_ptr_equal(node, &items[i].node);
  assert_null(node);
  hb_mailbox_destroy(mailbox);
}

/* The cap is reached exactly and not passed; a refused node leaves no trace. */
static void cap_is_kept(void **state) {
  (void)state;
  struct hb_mailbox *mailbox = hb_mailbox_create(10, NULL, NULL);
  struct item items[3];
  assert_true(hb_mailbox_try_post(mailbox, &items[0].node, 6));
  assert_false(hb_mailbox_try_post(mailbox, &items[1].node, 5));
  assert_int_equal(hb_mailbox_weight(mailbox), 6);
  assert_true(hb_mailbox_try_post(mailbox, &items[1].node, 4));
  assert_false(hb_mailbox_try_post(mailbox, &items[2].node, 1));
  assert_false(hb_mailbox_try_post(mailbox, &items[2].node, SIZE_MAX));
  assert_int_equal(hb_mailbox_weight(mailbox), 10);
  drain(mailbox);
  assert_int_equal(hb_mailbox_weight(mailbox), 0);
  hb_mailbox_destroy(mailbox);
}

/* Control messages pass a full mailbox. */
static void post_is_never_refused(void **state) {
  (void)state;
  struct hb_mailbox *mailbox = hb_mailbox_create(1, NULL, NULL);
  struct item items[2];
  assert_true(hb_mailbox_try_post(mailbox, &items[0].node, 1));
  hb_mailbox_post(mailbox, &items[1].node);
  assert_ptr_equal(hb_mailbox_take(mailbox, SIZE_MAX, 0)->next, &items[1].node);
  hb_mailbox_destroy(mailbox);
}

/* A node heavier than the cap is taken when nothing weighs, so it is not stuck for ever. */
static void one_too_heavy_fits_alone(void **state) {
  (void)state;
  struct hb_mailbox *mailbox = hb_mailbox_create(10, NULL, NULL);
  struct item items[2];
  assert_true(hb_mailbox_try_post(mailbox, &items[0].node, 50));
  assert_false(hb_mailbox_try_post(mailbox, &items[1].node, 50));
  drain(mailbox);
  assert_true(hb_mailbox_try_post(mailbox, &items[1].node, 50));
  drain(mailbox);
  hb_mailbox_destroy(mailbox);
}

static size_t taken_count(struct hb_mailbox *mailbox, size_t weight_max) {
  size_t count = 0;
  struct hb_node *node = hb_mailbox_take(mailbox, weight_max, 0);
  for (; node; node = node->next) count++;
  return count;
}

/* A take is as much as weight_max allows, and at least one; the rest stays in order. */
static void take_is_bounded_by_weight(void **state) {
  (void)state;
  struct hb_mailbox *mailbox = hb_mailbox_create(1000, NULL, NULL);
  struct item items[6];
  static const size_t weights[6] = {4, 6, 1, 50, 3, 3};
  for (int i = 0; i < 6; i++) {
    assert_true(hb_mailbox_try_post(mailbox, &items[i].node, weights[i]));
  }
  assert_int_equal(taken_count(mailbox, 10), 2); /* 4 + 6 fill it */
  assert_int_equal(hb_mailbox_weight(mailbox), 57);
  assert_int_equal(taken_count(mailbox, 10), 1); /* 1, then 50 would pass it */
  assert_int_equal(taken_count(mailbox, 10), 1); /* 50 alone, although too heavy */
  assert_int_equal(taken_count(mailbox, 10), 2);
  assert_int_equal(taken_count(mailbox, 10), 0);
  hb_mailbox_destroy(mailbox);
}

static void count_wake(void *context) { atomic_fetch_add((_Atomic int *)context, 1); }

/* The taker is woken when the mailbox stops being empty, not for each post, nor for a refusal. */
static void wake_comes_once_per_filling(void **state) {
  (void)state;
  _Atomic int wakes = 0;
  struct hb_mailbox *mailbox = hb_mailbox_create(10, count_wake, &wakes);
  struct item items[4];
  assert_true(hb_mailbox_try_post(mailbox, &items[0].node, 5));
  assert_int_equal(wakes, 1);
  assert_true(hb_mailbox_try_post(mailbox, &items[1].node, 5));
  assert_false(hb_mailbox_try_post(mailbox, &items[2].node, 5));
  hb_mailbox_post(mailbox, &items[2].node);
  assert_int_equal(wakes, 1);
  drain(mailbox);
  hb_mailbox_post(mailbox, &items[3].node);
  assert_int_equal(wakes, 2);
  drain(mailbox);
  hb_mailbox_destroy(mailbox);
}

/* A take with a deadline ends without a node when none comes, and not before the deadline. */
static void take_waits_until_the_deadline(void **state) {
  (void)state;
  struct hb_mailbox *mailbox = hb_mailbox_create(1, NULL, NULL);
  assert_null(hb_mailbox_take(mailbox, SIZE_MAX, 0));
  assert_null(hb_mailbox_take(mailbox, SIZE_MAX, 1)); /* long past */
  uint64_t deadline_ns = hb_clock_mono_ns() + 2000000;
  assert_null(hb_mailbox_take(mailbox, SIZE_MAX, deadline_ns));
  assert_true(hb_clock_mono_ns() >= deadline_ns);
  hb_mailbox_destroy(mailbox);
}

struct poster {
  struct hb_mailbox *mailbox;
  struct item items[POSTS];
  int number;
};

static void *post_all(void *argument) {
  struct poster *poster = argument;
  for (int i = 0; i < POSTS; i++) {
    poster->items[i].poster = poster->number;
    poster->items[i].number = i;
    hb_mailbox_post(poster->mailbox, &poster->items[i].node);
  }
  return NULL;
}

/* From many threads to one that waits: nothing is lost, and each poster's order is kept. */
static void many_post_one_takes(void **state) {
  (void)state;
  static struct poster posters[POSTERS];
  pthread_t threads[POSTERS];
  struct hb_mailbox *mailbox = hb_mailbox_create(1, NULL, NULL);
  for (int i = 0; i < POSTERS; i++) {
    posters[i].mailbox = mailbox;
    posters[i].number = i;
    assert_int_equal(pthread_create(&threads[i], NULL, post_all, &posters[i]), 0);
  }
  int next[POSTERS] = {0};
  for (int taken = 0; taken < POSTERS * POSTS;) {
    struct hb_node *node = hb_mailbox_take(mailbox, SIZE_MAX, UINT64_MAX);
    assert_non_null(node);
    for (; node; node = node->next, taken++) {
      struct item *item = (struct item *)node;
      assert_int_equal(item->number, next[item->poster]++);
    }
  }
  for (int i = 0; i < POSTERS; i++) pthread_join(threads[i], NULL);
  hb_mailbox_destroy(mailbox);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(order_is_posting_order),
      cmocka_unit_test(cap_is_kept),
      cmocka_unit_test(post_is_never_refused),
      cmocka_unit_test(one_too_heavy_fits_alone),
      cmocka_unit_test(take_is_bounded_by_weight),
      cmocka_unit_test(wake_comes_once_per_filling),
      cmocka_unit_test(take_waits_until_the_deadline),
      cmocka_unit_test(many_post_one_takes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
