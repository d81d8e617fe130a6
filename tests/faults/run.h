/* One run of the input against a store, and one look at what is left of it: each in a child of its
 * own. What they have to say stands in memory that survives them. */
#ifndef HB_TESTS_FAULTS_RUN_H
#define HB_TESTS_FAULTS_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "tests/faults/input.h"

struct hb_told_stream {
  bool begun[HB_INPUT_BATCHES];   /* sent, by any run */
  bool acked[HB_INPUT_BATCHES];   /* answered; ASYNC: survives a kill */
  bool durable[HB_INPUT_BATCHES]; /* answered, and an fsync came after it */
  int64_t complete_to;            /* the highest numbers shown to anyone, all of them durable */
  int64_t frontier;
  bool made; /* creating it was acknowledged */
};

/* Numbers of the last life for which a step began, or was acknowledged; 0: of none. */
struct hb_told_brief {
  uint32_t begun;    /* will be made */
  uint32_t made;     /* acknowledged */
  uint32_t filled;   /* its events are acknowledged */
  uint32_t dropping; /* will be deleted */
  uint32_t dropped;  /* acknowledged */
};

struct hb_found_stream {
  bool stored[HB_INPUT_EVENTS];
  int64_t complete_to;
  int64_t frontier;
};

struct hb_told {
  uint32_t streams_count; /* of the input's, the first ones: those that the subject has */
  struct hb_told_stream streams[HB_INPUT_STREAMS];
  struct hb_found_stream found[HB_INPUT_STREAMS]; /* by the last look */
  struct hb_told_brief brief;                     /* engine only */
  enum hb_code code;                              /* how the last run or look ended */
  bool wrote_after_failure;
  char message[HB_ERR_MESSAGE_SIZE]; /* what was wrong, or the error */
};

/* In memory that is shared with children. */
struct hb_told *hb_told_create(void);
void hb_told_destroy(struct hb_told *told);
void hb_told_clear(struct hb_told *told);

enum hb_end {
  HB_END_OK,      /* told->code HB_OK: to the end; else it stopped at that error */
  HB_END_CRASHED, /* faultfs ended it */
  HB_END_ABORTED, /* an assertion of RocksDB (Debian's build has them) or of ours; see stderr */
  HB_END_WRONG,   /* it found something that must not be; told->message */
  HB_END_STUCK    /* it did not end in time, or died otherwise */
};

/* What runs and is looked at: core and store in the smallest shell, one call after the other; or
 * the engine of the server with all of its threads, which also indexes (in files and rows) and has
 * a stream that is made, filled and deleted again and again. */
struct hb_subject {
  const char *name;
  /* Sends all batches from the first on (those that are stored already are DUPLICATE). */
  enum hb_end (*run)(const struct hb_input *input, const char *path, struct hb_told *told);
  /* Opens, reads everything, checks that it is in itself whole, verification included; fills
   * told->found. */
  enum hb_end (*look)(const struct hb_input *input, const char *path, struct hb_told *told);
};
extern const struct hb_subject hb_subject_shell;
extern const struct hb_subject hb_subject_engine;

/* The power is gone: what ASYNC streams acknowledged without an fsync after it is no promise any
 * more, and none again until it is acknowledged again. */
void hb_told_power_lost(struct hb_told *told);
/* What was told against what was found. NULL, or what is wrong; static, and told->message says
 * where. */
const char *hb_check_found(const struct hb_input *input, struct hb_told *told);
/* Everything is there, and released. */
const char *hb_check_finished(const struct hb_told *told);

#endif
