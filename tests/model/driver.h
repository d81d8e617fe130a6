/* Runs a core against the store in memory the way a server would, one step at a time. */
#ifndef HB_TESTS_MODEL_DRIVER_H
#define HB_TESTS_MODEL_DRIVER_H

#include "ordering/ordering.h"
#include "tests/model/fake_store.h"
#include "tests/model/test_batch.h"

struct hb_driver {
  struct hb_ordering *core;
  struct hb_ordering_options options;
  struct hb_fake_store store;
  struct hb_now now;
  struct hb_commit last; /* counts and number of the last commit; its arrays are gone */
  struct hb_test_batch *batches[4096]; /* owned: made by hb_driver_submit */
  size_t batches_count;
};

/* GLOBAL, DURABLE, default limits. */
struct hb_stream_config hb_driver_config(int64_t first_sequence);
/* options->limits all 0: the defaults. */
void hb_driver_start(struct hb_driver *driver, const struct hb_ordering_options *options);
void hb_driver_stop(struct hb_driver *driver);
void hb_driver_add(struct hb_driver *driver, uint64_t id, const struct hb_stream_config *config);

/* Make and submit a batch; it is the driver's and lives until stop. */
struct hb_test_batch *hb_driver_submit(struct hb_driver *driver, uint64_t stream, uint64_t call,
                                       const struct hb_test_event *events, size_t count);
/* Mark the batches that came back as answered. */
void hb_driver_collect(struct hb_driver *driver);
/* Submit one event and settle; its decision. The batch must come back without error. */
struct hb_decision hb_driver_send(struct hb_driver *driver, uint64_t stream,
                                  struct hb_test_event event);
/* Decision `index` of an answered batch is this. */
void hb_driver_expect(const struct hb_test_batch *batch, uint32_t index, enum hb_outcome outcome,
                      enum hb_reason reason);

/* Take and answer every NEED, every FETCH. Return how many. */
size_t hb_driver_needs(struct hb_driver *driver);
size_t hb_driver_fetches(struct hb_driver *driver);
/* decide, write, committed. False: decide had nothing. */
bool hb_driver_commit(struct hb_driver *driver);
/* All of it until nothing is left to do. Returns the commits. */
size_t hb_driver_settle(struct hb_driver *driver);
/* Lose the core as a kill would; batches in it come back HB_UNAVAILABLE. Build it anew. */
void hb_driver_restart(struct hb_driver *driver);
struct hb_stream_status hb_driver_status(struct hb_driver *driver, uint64_t id);

#endif
