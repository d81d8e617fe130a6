/* What the tables of cases share: a server with the test's processor, how a row is sent to it, and
 * how what came of it is compared. A row runs as its events stand in the table, or shuffled: what
 * is refused, results and final statuses must be the same. A mismatch fails the test that runs. */
#ifndef TESTS_CONFORMANCE_RUNNER_H
#define TESTS_CONFORMANCE_RUNNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/holdback.h"
#include "tests/lib/rng.h"
#include "tests/lib/server.h"

/* ---- rows */

enum { HBT_EVENTS_MAX = 12, HBT_KEYS_MAX = 3, HBT_SHUFFLED = 3, HBT_DOTS = 300 };
#define HBT_NONE INT64_MIN

struct hbt_sent {
  int64_t sequence;
  const char *key;     /* NULL ends a list */
  const char *payload; /* "z" in PER_KEY mode: flagged `last`, as in Beam's tests */
};

/* A status of Beam's: last processed, buffered, earliest, latest, received, results, duplicates;
 * beside it what Beam tells as unprocessed events, failed and rejected; and "last received". */
struct hbt_standing {
  const char *key; /* NULL ends a list */
  int64_t last;    /* HBT_NONE: nothing was processed */
  uint64_t waiting;
  int64_t earliest;
  int64_t latest;
  uint64_t received;
  uint64_t results;
  uint64_t duplicates;
  uint64_t failed;
  uint64_t rejected;
  bool last_received;
};

/* How the stream knows where it begins. */
enum hbt_mode {
  HBT_GLOBAL,       /* first_sequence */
  HBT_PER_KEY,      /* first_sequence, of every key */
  HBT_PER_KEY_SEEN, /* an event with `initial`: the one whose sequence is the row's `first` */
};

struct hbt_case {
  const char *id;
  int64_t first;
  const char *every; /* F: each F-th result is emitted */
  struct hbt_sent events[HBT_EVENTS_MAX];
  /* "key payload key payload ...": GLOBAL in the order of causes, PER_KEY by key (of two bytes). */
  const char *results;
  int64_t complete_to; /* PER_KEY: events released */
  struct hbt_standing standings[HBT_KEYS_MAX + 1];
};

/* ---- the server: setup and teardown for cmocka */

struct hbt_conformance {
  struct hbt_tempdir dir;
  struct hbt_server server;
  struct holdback_client *client;
  struct hbt_rng rng;
  int streams;
};

/* Arguments of the test: the server, then a file in the folder of processors. */
bool hbt_conformance_arguments(int argc, char **argv);
int hbt_conformance_setup(void **state);
int hbt_conformance_teardown(void **state);
void hbt_conformance_kill_and_start(struct hbt_conformance *world);

/* ---- one stream */

/* The name of the next one, "case-1" and so on, and of the n-th. */
const char *hbt_name_next(struct hbt_conformance *world, char out[32]);
const char *hbt_name(int number, char out[32]);
/* A stream with processor "p". `key_status` as enum holdback_key_status_mode. */
void hbt_attach(struct hbt_conformance *world, const char *stream, enum hbt_mode mode,
                int64_t first, const char *every, int key_status);
/* One event, as a batch of its own; its outcome. */
int hbt_send(struct hbt_conformance *world, const char *stream, enum hbt_mode mode,
             const struct hbt_sent *event, bool initial);
/* Exactly these results, in this order. */
void hbt_check_results(struct hbt_conformance *world, const char *id, const char *stream,
                       enum hbt_mode mode, const char *results);
/* Those of a key "k1" whose payloads are all ".": one dot, two, ... up to `count`. */
void hbt_check_dots(struct hbt_conformance *world, const char *id, const char *stream, int count);
/* GetKeyStatus says so, within 20 s: refusals are counted after they were answered. */
void hbt_check_standing(struct hbt_conformance *world, const char *id, const char *stream,
                        const struct hbt_standing *wanted);

/* Statuses told after each event are these `count`, and no more: of them position, key, last
 * processed, results, duplicates, failed, rejected and "last received" are compared; what waits
 * is not told. */
void hbt_check_told(struct hbt_conformance *world, const char *id, const char *stream,
                    const struct hbt_standing *wanted, size_t count);

/* ---- rows on streams of their own */

void hbt_run_case(struct hbt_conformance *world, const struct hbt_case *row, enum hbt_mode mode,
                  bool shuffled);
/* Results, the range and final statuses of a row that ran on `stream`. */
void hbt_check_case(struct hbt_conformance *world, const struct hbt_case *row, enum hbt_mode mode,
                    const char *stream);
/* Every row: in order and HBT_SHUFFLED times shuffled. */
void hbt_run_cases(struct hbt_conformance *world, const struct hbt_case *rows, size_t count,
                   enum hbt_mode mode);
/* Every row once, shuffled; and what they left is the same after a kill. In a world that is new. */
void hbt_run_killed(struct hbt_conformance *world, const struct hbt_case *rows, size_t count,
                    enum hbt_mode mode);

void hbt_must(int status, const struct holdback_error *error);
struct holdback_bytes hbt_text(const char *text);

#endif
