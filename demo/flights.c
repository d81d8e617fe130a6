/* Decides what the second act shows: real disorder, what is held when, and a crash in the middle
 * of batches in flight that neither the sender nor the reader has to know of. */
#include "demo/flights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "demo/picture.h"
#include "demo/reader.h"
#include "tests/lib/input.h"

enum {
  STRETCH = 1200, /* sent one by one for the picture */
  ROWS = 22,
  BATCH = 200 /* small, so that several are in flight at the crash */
};

static const char expected_sha256[] =
    "bf3fb79564e0c0ec0bdc21d3022517a7fdaf12224be1b022448c59c6393af5d1";

struct act {
  struct demo_stage *stage;
  struct hbt_input input;
  struct demo_reader reader;
  struct holdback_appender *appender; /* owned */
};

static bool append_range(struct act *act, size_t from, size_t end) {
  struct holdback_error error = {0};
  for (size_t i = from; i < end; i++) {
    const struct hbt_event *flight = &act->input.events[i];
    struct holdback_event event = {.sequence = flight->sequence,
                                   .key = {flight->key, strlen(flight->key)},
                                   .payload = {flight->payload, strlen(flight->payload)}};
    if (holdback_append(act->appender, i, &event, &error) != HOLDBACK_OK) {
      return demo_fail("append", &error);
    }
  }
  return true;
}

static bool flush(struct act *act, struct holdback_append_progress *out) {
  struct holdback_error error = {0};
  if (holdback_appender_flush(act->appender, &error) != HOLDBACK_OK) {
    return demo_fail("append", &error);
  }
  holdback_appender_progress(act->appender, out);
  return true;
}

static bool send_stretch(struct act *act) {
  struct demo_step *steps = hb_calloc(STRETCH, sizeof *steps);
  bool good = true;
  for (size_t i = 0; good && i < STRETCH; i++) {
    struct holdback_append_progress progress = {0};
    good = append_range(act, i, i + 1) && flush(act, &progress);
    steps[i] = (struct demo_step){act->input.events[i].sequence, progress.frontier};
  }
  if (good) {
    (void)printf(
        "  The first flights, sent one by one, each answer awaited (the rest waits on disk):\n\n");
    demo_picture_rows(steps, ROWS);
    (void)printf("\n  How many were held, over the first %d:\n\n", STRETCH);
    size_t most = demo_picture_chart(steps, STRETCH);
    (void)printf("  At most %zu at once: memory follows what waits, not what has passed.\n\n",
                 most);
  }
  free(steps);
  return good;
}

static bool send_rest(struct act *act) {
  size_t middle = act->input.count / 2;
  struct holdback_append_progress progress = {0};
  (void)printf("  Then in batches, and in the middle, with batches on their way:\n");
  if (!append_range(act, STRETCH, middle) || !demo_stage_crash(act->stage) ||
      !append_range(act, middle, act->input.count) || !flush(act, &progress)) {
    return false;
  }
  (void)printf(
      "  The sender's library sent again what had no answer: %llu stored, %llu of them known\n"
      "  already and recognised as duplicates. The reader went on where it was.\n\n",
      (unsigned long long)(progress.stored + progress.duplicate),
      (unsigned long long)progress.duplicate);
  return demo_expect(progress.stored + progress.duplicate == act->input.count,
                     "every flight stored");
}

static bool conclude(struct act *act) {
  char hex[2 * DEMO_SHA256_SIZE + 1] = "";
  for (size_t i = 0; i < DEMO_SHA256_SIZE; i++) {
    (void)snprintf(hex + 2 * i, 3, "%02x", act->reader.sha256[i]);
  }
  if (!demo_expect(strcmp(hex, expected_sha256) == 0, "the file's own sha256")) return false;
  (void)printf(
      "  The reader got every flight once, in scheduled order; the sha256 of what it got is the\n"
      "  file's.\n\n"
      "Try next, in two terminals (or read the 60-second tour in README.md):\n"
      "  .bazel/bin/server/holdbackd --data-dir /tmp/holdback\n"
      "  .bazel/bin/client/cmd/holdback send examples/flights.jsonl     # into stream 'default'\n"
      "  .bazel/bin/client/cmd/holdback tail --from start --until-caught-up\n"
      "  .bazel/bin/client/cmd/holdback status\n\n");
  (void)printf("demo: ok, %lld delivered in order, %zu waited, sha256 %.16s…\n",
               (long long)act->reader.delivered, hbt_input_waiting(&act->input), hex);
  return true;
}

static bool play(struct act *act) {
  struct holdback_appender_options options = {.stream = "flights", .batch_events = BATCH};
  struct holdback_error error = {0};
  if (holdback_appender_create(act->stage->client, &options, &act->appender, &error) !=
      HOLDBACK_OK) {
    return demo_fail("appender", &error);
  }
  act->reader = (struct demo_reader){
      .client = act->stage->client, .stream = "flights", .count = (int64_t)act->input.count};
  if (!demo_reader_start(&act->reader)) return false;
  bool sent = send_stretch(act) && send_rest(act);
  /* A reader whose events never come ends by its own deadline. */
  return demo_reader_join(&act->reader) && sent && conclude(act);
}

bool demo_flights(struct demo_stage *stage, const char *path) {
  struct act act = {.stage = stage};
  if (!hbt_input_load(&act.input, path)) return false;
  (void)printf(
      "\n2. %zu US flights of 2001 in the order they really left. Their sequence is the\n"
      "   schedule, their key the airport: %zu of them left before one that was due earlier.\n\n",
      act.input.count, hbt_input_waiting(&act.input));
  bool good = demo_expect(act.input.count > STRETCH, "a longer file") &&
              demo_stage_add_stream(stage, "flights") && play(&act);
  holdback_appender_destroy(act.appender);
  hbt_input_done(&act.input);
  return good;
}
