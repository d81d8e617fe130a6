/* Decides what a subscriber must see: the next event, and only once. */
#include "tests/lib/follower.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "tests/lib/made.h"

enum { STEP_MS = 100, PASS_MS = 30000 };

struct hbt_follower {
  struct holdback_client *client;             /* owned */
  struct holdback_subscription *subscription; /* owned; the thread's after start */
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  /* under lock */
  int64_t next;
  bool failed;
  bool stop;
};

static bool complain(const char *what, const struct holdback_error *error) {
  (void)fprintf(stderr, "follower: %s: %s\n", what, error->message);
  return false;
}

/* Move *next over the events of one message. */
static bool check_events(const struct holdback_message *message, int64_t *next) {
  struct holdback_event event;
  int64_t position = 0;
  for (size_t cursor = 0; holdback_message_event(message, &cursor, &event, &position); ++*next) {
    if (event.sequence == *next && position == *next && hbt_made_is(&event)) continue;
    (void)fprintf(stderr, "follower: due %lld, got sequence %lld at %lld%s\n", (long long)*next,
                  (long long)event.sequence, (long long)position,
                  hbt_made_is(&event) ? "" : ", other content");
    return false;
  }
  return true;
}

static bool subscribe(struct holdback_client *client, const char *stream, int64_t first,
                      struct holdback_subscription **out) {
  struct holdback_error error = {0};
  struct holdback_subscribe_options options = {.stream = stream,
                                               .start = HOLDBACK_START_POSITION,
                                               .position = first,
                                               .progress_interval_ms = 100};
  if (holdback_subscribe(client, &options, out, &error) == HOLDBACK_OK) return true;
  return complain("subscribe", &error);
}

static bool connect_to(const char *server, struct holdback_client **out) {
  struct holdback_error error = {0};
  struct holdback_options options = {.server = server};
  if (holdback_client_create(&options, out, &error) == HOLDBACK_OK) return true;
  return complain("client", &error);
}

/* ---- on a thread */

static bool step(struct hbt_follower *follower, int64_t *next) {
  struct holdback_error error = {0};
  const struct holdback_message *message = NULL;
  if (holdback_next(follower->subscription, STEP_MS, &message, &error) != HOLDBACK_OK) {
    return complain("next", &error);
  }
  if (!message || holdback_message_kind(message) != HOLDBACK_MESSAGE_EVENTS) return true;
  return check_events(message, next);
}

static void *follower_main(void *argument) {
  struct hbt_follower *follower = argument;
  int64_t next = follower->next;
  bool go_on = true;
  while (go_on) {
    bool good = step(follower, &next);
    pthread_mutex_lock(&follower->lock);
    follower->next = next;
    follower->failed = !good;
    go_on = good && !follower->stop;
    pthread_cond_broadcast(&follower->changed);
    pthread_mutex_unlock(&follower->lock);
  }
  return NULL;
}

struct hbt_follower *hbt_follower_start(const char *server, const char *stream, int64_t first) {
  struct hbt_follower *follower = hb_calloc(1, sizeof *follower);
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_mutex_init(&follower->lock, NULL);
  pthread_cond_init(&follower->changed, &attributes);
  pthread_condattr_destroy(&attributes);
  follower->next = first;
  if (!connect_to(server, &follower->client) ||
      !subscribe(follower->client, stream, first, &follower->subscription) ||
      pthread_create(&follower->thread, NULL, follower_main, follower) != 0) {
    abort();
  }
  return follower;
}

static bool wait_for(struct hbt_follower *follower, int64_t next, uint32_t timeout_ms,
                     bool beyond) {
  uint64_t until_ms = hb_clock_mono_ms() + timeout_ms;
  struct timespec deadline = {.tv_sec = (time_t)(until_ms / 1000),
                              .tv_nsec = (long)(until_ms % 1000) * 1000000};
  int rc = 0;
  pthread_mutex_lock(&follower->lock);
  while (follower->next < next && !follower->failed && rc == 0) {
    rc = pthread_cond_timedwait(&follower->changed, &follower->lock, &deadline);
  }
  bool there = beyond ? follower->next >= next : follower->next == next;
  bool good = there && !follower->failed;
  if (!good) {
    (void)fprintf(stderr, "follower: next is %lld, expected %lld\n", (long long)follower->next,
                  (long long)next);
  }
  pthread_mutex_unlock(&follower->lock);
  return good;
}

bool hbt_follower_wait(struct hbt_follower *follower, int64_t next, uint32_t timeout_ms) {
  return wait_for(follower, next, timeout_ms, false);
}

bool hbt_follower_wait_beyond(struct hbt_follower *follower, int64_t next, uint32_t timeout_ms) {
  return wait_for(follower, next, timeout_ms, true);
}

int64_t hbt_follower_next(struct hbt_follower *follower) {
  pthread_mutex_lock(&follower->lock);
  int64_t next = follower->failed ? INT64_MIN : follower->next;
  pthread_mutex_unlock(&follower->lock);
  return next;
}

bool hbt_follower_destroy(struct hbt_follower *follower) {
  if (!follower) return true;
  pthread_mutex_lock(&follower->lock);
  follower->stop = true;
  pthread_mutex_unlock(&follower->lock);
  pthread_join(follower->thread, NULL);
  bool good = !follower->failed;
  holdback_subscription_destroy(follower->subscription);
  holdback_client_destroy(follower->client);
  pthread_cond_destroy(&follower->changed);
  pthread_mutex_destroy(&follower->lock);
  free(follower);
  return good;
}

/* ---- one pass */

static bool pass(struct holdback_subscription *subscription, int64_t *next, int64_t frontier) {
  struct holdback_error error = {0};
  struct holdback_progress progress = {0};
  while (!progress.caught_up || !progress.has_frontier || progress.frontier < frontier) {
    const struct holdback_message *message = NULL;
    if (holdback_next(subscription, PASS_MS, &message, &error) != HOLDBACK_OK) {
      return complain("next", &error);
    }
    if (!message) return complain("silence for too long", &error);
    if (holdback_message_kind(message) == HOLDBACK_MESSAGE_EVENTS) {
      if (!check_events(message, next)) return false;
    } else {
      (void)holdback_message_progress(message, &progress);
    }
  }
  return *next == progress.frontier;
}

bool hbt_follow_once(const char *server, const char *stream, int64_t first, int64_t frontier) {
  struct holdback_client *client = NULL;
  struct holdback_subscription *subscription = NULL;
  int64_t next = first;
  bool good = connect_to(server, &client) && subscribe(client, stream, first, &subscription) &&
              pass(subscription, &next, frontier);
  holdback_subscription_destroy(subscription);
  holdback_client_destroy(client);
  return good;
}
