/* Crashes at chosen points of a run, what a power loss takes, and what has to be there then. */
#ifndef HB_TESTS_FAULTS_SWEEP_H
#define HB_TESTS_FAULTS_SWEEP_H

#include <stdbool.h>
#include <stdint.h>

struct hb_subject;

struct hb_sweep {
  const struct hb_subject *subject; /* run.h */
  uint64_t seed;
  uint64_t points;
  bool verbose;
  bool keep;      /* a store is copied before it is looked at; it stays where the point fails */
  uint64_t calls; /* of a run without a fault; 0: they are counted. They are not always as many, and
                     which one a point crashes at depends on it */
  /* Filled: */
  uint64_t crashes; /* that happened */
  uint64_t second;  /* of them, while recovering from the first */
  uint64_t power_losses;
};

/* False: a point failed; it was printed, with the command that replays it. */
bool hb_sweep_crashes(struct hb_sweep *sweep);
/* One point, by its number. */
bool hb_sweep_one(struct hb_sweep *sweep, uint64_t point);

#endif
