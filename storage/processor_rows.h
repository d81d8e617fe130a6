/* What is kept about an attached processor, as values; shared by who runs one and who stores it.
 * Slices are borrowed from whoever gives them. */
#ifndef HB_STORAGE_PROCESSOR_ROWS_H
#define HB_STORAGE_PROCESSOR_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "base/types.h"

enum { HB_PROCESSOR_NAME_MAX = 64, HB_SUSPENDED_WHY_MAX = 1000 };

/* One attached processor: its stream, and a number from the counter that numbers streams. It takes
 * two of these: the one after it is that of its statuses by key. */
struct hb_processor_id {
  uint64_t stream;
  uint64_t processor;
};
static inline struct hb_processor_id hb_statuses_id(struct hb_processor_id id) {
  return (struct hb_processor_id){.stream = id.stream, .processor = id.processor + 1};
}

/* What is kept and told about each key. Numbers as in holdback.v1.KeyStatusMode. */
enum hb_key_status_mode {
  HB_KEY_STATUS_OFF = 0,
  HB_KEY_STATUS_KEPT = 1,        /* to be looked at */
  HB_KEY_STATUS_EVERY_EVENT = 2, /* and told after each event of the key */
  HB_KEY_STATUS_PERIODIC = 3     /* and told for each key that changed, now and then */
};

/* What becomes of an event at which user code fails. Numbers as in holdback.v1.OnError. */
enum hb_on_error {
  HB_ON_ERROR_DEFAULT = 0, /* not stored: WAIT in PER_KEY mode, else CONTINUE */
  HB_ON_ERROR_CONTINUE = 1,
  HB_ON_ERROR_SUSPEND = 2,
  HB_ON_ERROR_WAIT = 3 /* the key waits at it for a good event of its sequence */
};

/* What it was attached with, and whether it runs. */
struct hb_processor_config {
  char name[HB_PROCESSOR_NAME_MAX + 1];      /* of the attachment, unique in its stream */
  char processor[HB_PROCESSOR_NAME_MAX + 1]; /* which code runs */
  struct hb_slice parameters;                /* encoded by who attaches; compared as bytes */
  bool loaded;                               /* from a shared object */
  enum hb_on_error on_error;
  enum hb_key_status_mode key_status;
  uint32_t key_status_ms; /* PERIODIC: how often */
  bool detached;          /* its state is kept, nothing runs */
  bool suspended;
  int64_t suspended_at;                         /* where suspended */
  char suspended_why[HB_SUSPENDED_WHY_MAX + 1]; /* where suspended */
};

/* Written before loaded code runs, since it may end the process: how often it was tried there. */
struct hb_processor_attempt {
  int64_t position;
  uint32_t attempts;
  int64_t until; /* events below were in the bundle that was tried; one by one from now on */
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
  int64_t next_status;         /* position that the next status told gets */
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

/* How one key stands, as of a place. Waiting events are not in it: they are where they wait. */
struct hb_key_status {
  bool any;               /* then last_processed is valid */
  bool last_received;     /* an event flagged as the key's last was processed or failed */
  int64_t last_processed; /* sequence */
  uint64_t processed;
  uint64_t failed;
  uint64_t results;
  uint64_t duplicates;
  uint64_t rejected; /* for any other reason */
};

struct hb_key_status_row {
  struct hb_slice key;
  struct hb_key_status status;
};

struct hb_timer_row {
  struct hb_time time; /* present */
  struct hb_slice key;
  uint64_t creation;
  struct hb_slice name;
};

/* A key that waits at an event that failed, in one processor. */
enum hb_blocked_phase {
  HB_BLOCKED_WAITS = 0,
  HB_BLOCKED_CHOSEN = 1,    /* a good event was found; not all of its results are committed */
  HB_BLOCKED_CATCHES_UP = 2 /* it was run; what the place went past is run after it */
};
struct hb_blocked_row {
  struct hb_slice key;
  enum hb_blocked_phase phase;
  int64_t sequence; /* of the event that failed, and of the good one */
  int64_t position; /* of the event that failed: the cause of the good one's results */
  uint64_t passed;  /* events of the key behind it that the place went past */
  uint64_t run;     /* CATCHES_UP: of these, how many are done */
  int64_t next;     /* CATCHES_UP: the others are at or above it */
  uint64_t skip;    /* results of the call to make next that are committed already */
  bool is_copy;     /* CHOSEN: a copy with this content hash, else the event that failed */
  uint64_t copy;
};

/* What user code gave up. */
struct hb_failure_row {
  int64_t position;
  struct hb_slice frame;
  struct hb_slice explanation;
};

#endif
