/* What is kept about an attached processor, as values; shared by who runs one and who stores it.
 * Slices are borrowed from whoever gives them. */
#ifndef HB_STORAGE_PROCESSOR_ROWS_H
#define HB_STORAGE_PROCESSOR_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "base/types.h"

/* One attached processor, in all the store: its stream and a number given once. */
struct hb_processor_id {
  uint64_t stream;
  uint32_t processor;
};

/* How far it is. Written by the commit that carries what was done up to here, so that it always
 * says what the other rows contain (exactly once). */
enum hb_phase {
  HB_PHASE_EVENTS = 0, /* position: the next event */
  HB_PHASE_TIMERS = 1, /* the stream is sealed and its events are done: timers that are left */
  HB_PHASE_KEYS = 2,   /* then on_end, key by key */
  HB_PHASE_ENDED = 3   /* nothing will come any more */
};
struct hb_processor_place {
  enum hb_phase phase;
  int64_t position; /* everything below it is done */
  uint64_t skip;    /* results of the call to make next that are committed already */
  bool has_end_key; /* KEYS: end_key and all before it are done */
  struct hb_slice end_key;
  struct hb_time watermark;    /* of the events below `position` */
  int64_t next_result;         /* position that the next result gets */
  struct hb_time results_time; /* the largest event time of a result */
  uint64_t next_creation;      /* order in which timers were set */
  uint64_t events;
  uint64_t timers_fired;
  uint64_t failed;            /* events, timers and ends that user code gave up */
  uint64_t unprocessed_bytes; /* kept of them */
};

/* A state: `key` is the user's, `name` the processor's. */
struct hb_state_row {
  struct hb_slice key;
  struct hb_slice name;
  bool present; /* false: to be removed */
  struct hb_slice value;
};

struct hb_timer_row {
  struct hb_time time; /* present */
  struct hb_slice key;
  uint64_t creation;
  struct hb_slice name;
};

/* What user code gave up. */
struct hb_failure_row {
  int64_t position;
  struct hb_slice frame;
  struct hb_slice explanation;
};

#endif
