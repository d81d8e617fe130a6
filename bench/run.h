/* One measurement under way: a system of one's own on a fresh folder, and threads around it. */
#ifndef HB_BENCH_RUN_H
#define HB_BENCH_RUN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "bench/clients.h"
#include "bench/gate.h"
#include "bench/metrics.h"
#include "bench/options.h"
#include "bench/process.h"
#include "bench/syncs.h"
#include "tests/lib/server.h"
#include "tests/lib/tempdir.h"

struct hb_run;

/* What is measured: Holdback, or what a user would take instead. All get the same load, and their
 * readers check the same. False: it went wrong, and the gate says how. */
struct hb_system {
  const char *name;
  bool (*start)(struct hb_run *run); /* on run->dir, ready to take events at run->address */
  void *(*produce)(void *thread);
  void *(*read)(void *thread);
  bool (*settle)(struct hb_run *run); /* all is received: wait for what was put off, check totals */
  bool (*stop)(struct hb_run *run);   /* in good order; false: it did not end well */
  bool as_sent;                       /* delivers in the order of sending */
  bool counts_syncs;
};

extern const struct hb_system hb_system_holdback;
extern const struct hb_system hb_system_floor; /* speaks the same contract: see floor/ */

struct hb_run {
  const struct hb_system *system;
  struct hb_bench_options options;
  struct hbt_tempdir dir;
  struct hbt_server server; /* Holdback and the floor */
  struct hbt_child *child;  /* others */
  char address[HBT_PATH_SIZE + 8];
  struct hb_syncs syncs;
  struct hb_gate gate;
  uint32_t *order; /* owned */
  uint32_t *place; /* owned; NULL in a closed loop */
  struct hb_bench_setting setting;
  struct hb_bench_thread *producers; /* owned */
  struct hb_bench_thread *readers;   /* owned; options.subscribers, then options.stalled */
  struct hb_usage before;            /* of the system, when the clients start */
  double clients_before_s;
  uint64_t syncs_before;
  struct hb_usage killed; /* of the process that was killed */
  struct hb_metrics metrics;
};

/* Folder, sending order, gate; starts nothing. `counter`: the library that counts syncs, or NULL.
 */
void hb_run_init(struct hb_run *run, const struct hb_system *system,
                 const struct hb_bench_options *options, const char *counter);
void hb_run_done(struct hb_run *run);
pid_t hb_run_pid(const struct hb_run *run);

/* The steps of a measurement, for rows that have more of them than hb_measure. False: it failed. */
bool hb_run_start_system(struct hb_run *run);
void hb_run_start_readers(struct hb_run *run); /* the figures begin here */
void hb_run_start_producers(struct hb_run *run);
/* Until so many times a producer had all its answers, and so many subscribers have everything. */
bool hb_run_wait_for(struct hb_run *run, uint64_t answered, uint64_t finished);
/* Until all are done. */
bool hb_run_wait(struct hb_run *run);
/* CPU, memory, bytes and syncs since hb_run_start_readers; times; latencies. */
void hb_run_fill(struct hb_run *run);
/* Where nobody subscribed during the measurement, somebody checks all of it afterwards. */
bool hb_run_read_afterwards(struct hb_run *run);
/* Ends the clients, then the system; `good` false kills it first. The result so far, or false. */
bool hb_run_finish(struct hb_run *run, bool good);

#endif
