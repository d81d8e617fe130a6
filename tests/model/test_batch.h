/* Batches for tests of the core, made from what a test wants to say about each event. */
#ifndef HB_TESTS_MODEL_TEST_BATCH_H
#define HB_TESTS_MODEL_TEST_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/frame/scan.h"
#include "base/slice.h"
#include "ordering/batch.h"

struct hb_test_event {
  int64_t sequence;
  uint32_t content; /* two events are the same where sequence and content are */
  uint32_t size;    /* of the payload, at least 4 */
  int64_t seconds;  /* event time; 0 = none */
  const char *key;  /* NULL: one of seven, by content */
  uint32_t flags;   /* HB_EVENT_INITIAL, HB_EVENT_LAST */
};

struct hb_test_batch {
  struct hb_batch batch; /* first: a pointer to it is one to this */
  struct hb_buf bytes;
  struct hb_events events;
  uint64_t number; /* the test's */
  bool answered;   /* set by hb_driver_collect */
};

struct hb_test_batch *hb_test_batch_create(uint64_t stream, uint64_t call,
                                           const struct hb_test_event *events, size_t count);
void hb_test_batch_destroy(struct hb_test_batch *batch);

/* The content that an event of a test batch, or a stored frame, has. */
uint32_t hb_test_content(const struct hb_event *event);
uint32_t hb_test_frame_content(struct hb_slice frame);

#endif
