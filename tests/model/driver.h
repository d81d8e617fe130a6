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
};

/* GLOBAL, DURABLE, default limits. */
struct hb_stream_config hb_driver_config(int64_t first_sequence);
/* options->limits all 0: the defaults. */
void hb_driver_start(struct hb_driver *driver, const struct hb_ordering_options *options);
void hb_driver_stop(struct hb_driver *driver);
void hb_driver_add(struct hb_driver *driver, uint64_t id, const struct hb_stream_config *config);

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
