/* Decides what the first act shows, and checks each sentence that it prints.
 *
 * Three subscribers stay connected from before the first event until after the last: to all, to
 * key1, to key2. They live through the crash as any subscriber does: the library reconnects and
 * goes on at the next position. */
#include "demo/founding.h"

#include <stdio.h>
#include <string.h>

enum { ALL, KEY1, KEY2, SUBSCRIBERS, EVENTS_MAX = 8 };

static const char *const keys[SUBSCRIBERS] = {NULL, "key1", "key2"};

struct act {
  struct demo_stage *stage;
  struct holdback_appender *appender;                     /* owned */
  struct holdback_subscription *subscribers[SUBSCRIBERS]; /* owned */
};

struct item {
  int64_t sequence;
  const char *key;
};

static struct holdback_bytes text(const char *string) {
  return (struct holdback_bytes){string, strlen(string)};
}

/* ---- sending */

static bool send_items(struct act *act, const struct item *items, size_t count) {
  struct holdback_error error = {0};
  (void)printf("  sent      ");
  for (size_t i = 0; i < count; i++) {
    struct holdback_event event = {
        .sequence = items[i].sequence, .key = text(items[i].key), .payload = text("an event")};
    (void)printf(" [%lld,%s]", (long long)items[i].sequence, items[i].key);
    if (holdback_append(act->appender, i, &event, &error) != HOLDBACK_OK) {
      return demo_fail("append", &error);
    }
  }
  if (holdback_appender_flush(act->appender, &error) != HOLDBACK_OK) {
    return demo_fail("append", &error);
  }
  (void)printf("  (answered: on disk)\n");
  return true;
}

/* ---- receiving */

/* Print what a message brings and compare it with what is due; *at counts on. */
static bool take_events(const struct holdback_message *message, const int64_t *due, size_t count,
                        size_t *at) {
  struct holdback_event event;
  int64_t position = 0;
  for (size_t cursor = 0; holdback_message_event(message, &cursor, &event, &position); ++*at) {
    (void)printf(" %lld", (long long)event.sequence);
    if (!demo_expect(*at < count && event.sequence == due[*at], "the next event in order")) {
      return false;
    }
  }
  return true;
}

static bool receive(struct act *act, int who, const int64_t *due, size_t count) {
  struct holdback_error error = {0};
  (void)printf("  %-4s gets ", keys[who] ? keys[who] : "all");
  for (size_t at = 0; at < count;) {
    const struct holdback_message *message = NULL;
    if (holdback_next(act->subscribers[who], DEMO_WAIT_MS, &message, &error) != HOLDBACK_OK) {
      return demo_fail("subscription", &error);
    }
    if (!demo_expect(message != NULL, "an event in time")) return false;
    if (!take_events(message, due, count, &at)) return false;
  }
  (void)printf("\n");
  return true;
}

/* The server tells a subscriber what it waits for. An event before that message would be a 7 that
 * came too early. */
static bool told_of_gap(struct act *act) {
  struct holdback_error error = {0};
  struct holdback_progress progress = {0};
  while (!(progress.caught_up && progress.blocked && progress.held_events == 1)) {
    const struct holdback_message *message = NULL;
    if (holdback_next(act->subscribers[ALL], DEMO_WAIT_MS, &message, &error) != HOLDBACK_OK) {
      return demo_fail("subscription", &error);
    }
    if (!demo_expect(message && holdback_message_kind(message) == HOLDBACK_MESSAGE_PROGRESS,
                     "no event, but news of what is missing")) {
      return false;
    }
    (void)holdback_message_progress(message, &progress);
  }
  return demo_expect(progress.blocked_by.start == 6 && progress.blocked_by.end == 7,
                     "subscribers are told that 6 is missing");
}

/* Asked of the server that runs now: news of an earlier one may still be on the way to us. */
static bool seven_waits(struct act *act) {
  struct holdback_error error = {0};
  struct holdback_stream_status now = {0};
  if (holdback_stream_get(act->stage->client, "founding", NULL, &now, &error) != HOLDBACK_OK) {
    return demo_fail("status", &error);
  }
  if (!demo_expect(now.frontier == 6 && now.highest == 7 && now.held_events == 1 &&
                       now.gaps_total == 1 && now.gaps[0].start == 6 && now.gaps[0].end == 7,
                   "released up to 5, one event held, exactly 6 missing")) {
    return false;
  }
  (void)printf("  7 waits: %lld is missing\n", (long long)now.gaps[0].start);
  return told_of_gap(act);
}

/* ---- the act */

static bool act_open(struct act *act) {
  struct holdback_error error = {0};
  struct holdback_appender_options appending = {.stream = "founding"};
  if (!demo_stage_add_stream(act->stage, "founding")) return false;
  if (holdback_appender_create(act->stage->client, &appending, &act->appender, &error) !=
      HOLDBACK_OK) {
    return demo_fail("appender", &error);
  }
  for (int i = 0; i < SUBSCRIBERS; i++) {
    struct holdback_bytes key = keys[i] ? text(keys[i]) : (struct holdback_bytes){0};
    struct holdback_subscribe_options options = {.stream = "founding",
                                                 .start = HOLDBACK_START_EARLIEST,
                                                 .keys = &key,
                                                 .keys_count = keys[i] ? 1 : 0,
                                                 .progress_interval_ms = 100};
    if (holdback_subscribe(act->stage->client, &options, &act->subscribers[i], &error) !=
        HOLDBACK_OK) {
      return demo_fail("subscribe", &error);
    }
  }
  return true;
}

static bool act_play(struct act *act) {
  static const struct item first[] = {{1, "key1"}, {2, "key2"}, {3, "key1"},
                                      {4, "key1"}, {5, "key2"}, {7, "key2"}};
  static const struct item missing = {6, "key1"};
  if (!send_items(act, first, sizeof first / sizeof *first) ||
      !receive(act, KEY1, (const int64_t[]){1, 3, 4}, 3) ||
      !receive(act, KEY2, (const int64_t[]){2, 5}, 2) ||
      !receive(act, ALL, (const int64_t[]){1, 2, 3, 4, 5}, 5) || !seven_waits(act)) {
    return false;
  }
  (void)printf("\n  What was answered must outlive the server:\n");
  if (!demo_stage_crash(act->stage) || !seven_waits(act)) return false;
  (void)printf("\n  Now the missing one:\n");
  return send_items(act, &missing, 1) && receive(act, ALL, (const int64_t[]){6, 7}, 2) &&
         receive(act, KEY1, (const int64_t[]){6}, 1) && receive(act, KEY2, (const int64_t[]){7}, 1);
}

bool demo_founding(struct demo_stage *stage) {
  struct act act = {.stage = stage};
  (void)printf(
      "1. Six events with numbers of one global sequence, two keys; number 6 is not there "
      "yet.\n\n");
  bool good = act_open(&act) && act_play(&act);
  for (int i = 0; i < SUBSCRIBERS; i++) holdback_subscription_destroy(act.subscribers[i]);
  holdback_appender_destroy(act.appender);
  return good;
}
