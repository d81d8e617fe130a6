/* crash_sweep [--subject=shell|engine] [--points=N] [--seed=N] [--point=N] [--verbose]: crashes at
 * N points of a run and looks at what is left. Exit code 1: something was lost, or is not as it
 * must be. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/faults/run.h"
#include "tests/faults/sweep.h"

static bool take_number(const char *argument, const char *name, uint64_t *out) {
  size_t size = strlen(name);
  if (strncmp(argument, name, size) != 0) return false;
  char *end = NULL;
  *out = strtoull(argument + size, &end, 10);
  return argument[size] && !*end;
}

static bool take_subject(const char *argument, const struct hb_subject **out) {
  static const struct hb_subject *const subjects[] = {&hb_subject_shell, &hb_subject_engine};
  static const char name[] = "--subject=";
  if (strncmp(argument, name, sizeof name - 1) != 0) return false;
  for (size_t i = 0; i < 2; i++) {
    if (strcmp(argument + sizeof name - 1, subjects[i]->name) != 0) continue;
    *out = subjects[i];
    return true;
  }
  return false;
}

int main(int argc, char **argv) {
  struct hb_sweep sweep = {.subject = &hb_subject_shell, .seed = 1, .points = 500};
  uint64_t point = UINT64_MAX;
  for (int i = 1; i < argc; i++) {
    if (take_subject(argv[i], &sweep.subject)) continue;
    if (take_number(argv[i], "--points=", &sweep.points)) continue;
    if (take_number(argv[i], "--calls=", &sweep.calls)) continue;
    if (take_number(argv[i], "--seed=", &sweep.seed)) continue;
    if (take_number(argv[i], "--point=", &point)) continue;
    bool keep = strcmp(argv[i], "--keep") == 0;
    bool verbose = strcmp(argv[i], "--verbose") == 0;
    sweep.keep = sweep.keep || keep;
    sweep.verbose = sweep.verbose || verbose;
    if (keep || verbose) continue;
    fprintf(stderr,
            "usage: crash_sweep [--subject=shell|engine] [--points=N] [--seed=N] [--point=N] "
            "[--calls=N] [--keep] [--verbose]\n");
    return 64;
  }
  bool good = point == UINT64_MAX ? hb_sweep_crashes(&sweep) : hb_sweep_one(&sweep, point);
  printf("%s: %s, seed %" PRIu64 ", %" PRIu64 " calls in a run; %" PRIu64 " crashes, %" PRIu64
         " of them second ones, %" PRIu64 " power losses\n",
         good ? "good" : "FAILED", sweep.subject->name, sweep.seed, sweep.calls, sweep.crashes,
         sweep.second, sweep.power_losses);
  return good ? 0 : 1;
}
