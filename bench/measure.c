/* Decides the order of a plain measurement. */
#include "bench/measure.h"

bool hb_measure(const struct hb_system *system, const struct hb_bench_options *options,
                const char *counter, struct hb_metrics *out) {
  struct hb_run run;
  hb_run_init(&run, system, options, counter);
  bool good = hb_run_start_system(&run);
  if (good) {
    hb_run_start_readers(&run);
    hb_run_start_producers(&run);
    good = hb_run_wait(&run) && system->settle(&run);
    if (good) hb_run_fill(&run);
    good = good && hb_run_read_afterwards(&run);
    good = hb_run_finish(&run, good);
  }
  *out = run.metrics;
  hb_run_done(&run);
  return good;
}
