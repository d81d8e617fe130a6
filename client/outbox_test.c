/* The outbox: answers in order, each once, and everything unanswered again after a lost call. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs those first. */
#include <cmocka.h>

#include "client/outbox.h"

static struct hbc_batch *push(struct hbc_outbox *outbox) {
  struct hbc_batch *batch = hbc_batch_create(16);
  hbc_outbox_push(outbox, batch);
  return batch;
}

static void assert_answered(struct hbc_outbox *outbox, uint64_t ordinal, struct hbc_batch *batch) {
  assert_ptr_equal(hbc_outbox_answered(outbox, ordinal), batch);
  hbc_batch_unref(batch);
}

/* Batches are sent and answered in the order in which they were pushed. */
static void in_order(void **state) {
  (void)state;
  struct hbc_outbox outbox = {0};
  struct hbc_batch *a = push(&outbox);
  struct hbc_batch *b = push(&outbox);
  assert_ptr_equal(hbc_outbox_unsent(&outbox), a);
  hbc_outbox_sent(&outbox);
  assert_ptr_equal(hbc_outbox_unsent(&outbox), b);
  assert_answered(&outbox, 0, a);
  assert_ptr_equal(hbc_outbox_unsent(&outbox), b);
  hbc_outbox_sent(&outbox);
  assert_null(hbc_outbox_unsent(&outbox));
  assert_answered(&outbox, 1, b);
  assert_int_equal(outbox.count, 0);
}

/* An answer with another ordinal, or for what was not sent, answers nothing. */
static void wrong_answers(void **state) {
  (void)state;
  struct hbc_outbox outbox = {0};
  (void)push(&outbox);
  assert_null(hbc_outbox_answered(&outbox, 0));
  hbc_outbox_sent(&outbox);
  assert_null(hbc_outbox_answered(&outbox, 1));
  struct hbc_batch *batch = hbc_outbox_answered(&outbox, 0);
  assert_non_null(batch);
  hbc_batch_unref(batch);
  assert_null(hbc_outbox_answered(&outbox, 0));
  assert_null(hbc_outbox_answered(&outbox, 1));
}

/* After a lost call what was answered is gone, the rest is sent again with ordinals from 0. */
static void rewound(void **state) {
  (void)state;
  struct hbc_outbox outbox = {0};
  struct hbc_batch *a = push(&outbox);
  struct hbc_batch *b = push(&outbox);
  struct hbc_batch *c = push(&outbox);
  hbc_outbox_sent(&outbox);
  hbc_outbox_sent(&outbox);
  assert_answered(&outbox, 0, a);
  hbc_outbox_rewind(&outbox);
  assert_ptr_equal(hbc_outbox_unsent(&outbox), b);
  hbc_outbox_sent(&outbox);
  assert_ptr_equal(hbc_outbox_unsent(&outbox), c);
  hbc_outbox_sent(&outbox);
  assert_answered(&outbox, 0, b);
  assert_answered(&outbox, 1, c);
}

/* What goes again goes before all that was not sent, and after what was. */
static void pushed_first(void **state) {
  (void)state;
  struct hbc_outbox outbox = {0};
  struct hbc_batch *a = push(&outbox);
  hbc_outbox_sent(&outbox);
  struct hbc_batch *c = push(&outbox);
  struct hbc_batch *b = hbc_batch_create(16);
  hbc_outbox_push_first(&outbox, b);
  assert_ptr_equal(hbc_outbox_unsent(&outbox), b);
  hbc_outbox_sent(&outbox);
  hbc_outbox_sent(&outbox);
  assert_answered(&outbox, 0, a);
  assert_answered(&outbox, 1, b);
  assert_answered(&outbox, 2, c);
  struct hbc_batch *only = hbc_batch_create(16);
  hbc_outbox_push_first(&outbox, only);
  struct hbc_batch *behind = push(&outbox);
  assert_ptr_equal(hbc_outbox_unsent(&outbox), only);
  assert_ptr_equal(only->next, behind);
  hbc_outbox_done(&outbox);
}

/* A batch tells its events' indices as runs, cut where the caller's are not consecutive. */
static void index_runs(void **state) {
  (void)state;
  struct hbc_batch *batch = hbc_batch_create(16);
  static const uint64_t indices[] = {5, 6, 7, 100, 3, 4};
  for (size_t i = 0; i < 6; i++) hbc_batch_added(batch, indices[i]);
  struct hbc_batch_cursor cursor = {.batch = batch};
  uint64_t index;
  assert_int_equal(hbc_batch_next_run(&cursor, 2, &index), 2);
  assert_int_equal(index, 5);
  assert_int_equal(hbc_batch_next_run(&cursor, 4, &index), 1);
  assert_int_equal(index, 7);
  assert_int_equal(hbc_batch_next_run(&cursor, 3, &index), 1);
  assert_int_equal(index, 100);
  assert_int_equal(hbc_batch_next_run(&cursor, 2, &index), 2);
  assert_int_equal(index, 3);
  hbc_batch_unref(batch);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(in_order),     cmocka_unit_test(wrong_answers), cmocka_unit_test(rewound),
      cmocka_unit_test(pushed_first), cmocka_unit_test(index_runs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
