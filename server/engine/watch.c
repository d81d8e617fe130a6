/* Decides who is told of a publication.
 *
 * A stream has three lists: armed watches, which the next publication calls; due ones, which this
 * publication still has to call; and idle ones, which it never looks at: a subscriber that is busy
 * costs a publication nothing. `changed` runs with the stream's lock let go; `calling` names the
 * watch meanwhile, and hb_watch_stop waits for just that, so it can't deadlock with what another
 * watch does. */
#include "base/assert.h"
#include "base/live.h"
#include "server/engine/stream_internal.h"

static void link_in(struct hb_watch **list, struct hb_watch *watch) {
  watch->previous = NULL;
  watch->next = *list;
  if (*list) (*list)->previous = watch;
  *list = watch;
}

static void unlink_from(struct hb_watch **list, struct hb_watch *watch) {
  if (watch->previous) {
    watch->previous->next = watch->next;
  } else {
    HB_ASSERT(*list == watch);
    *list = watch->next;
  }
  if (watch->next) watch->next->previous = watch->previous;
  watch->next = watch->previous = NULL;
}

static struct hb_watch **list_of(struct hb_stream *stream, const struct hb_watch *watch) {
  if (!watch->armed) return &stream->idle;
  return watch->seen == stream->version ? &stream->armed : &stream->due;
}

void hb_watch_start(struct hb_watch *watch, struct hb_stream *stream) {
  pthread_mutex_lock(&stream->mutex);
  watch->stream = stream;
  watch->armed = true;
  watch->seen = stream->version;
  link_in(&stream->armed, watch);
  hb_live_born(HB_LIVE_watches);
  pthread_mutex_unlock(&stream->mutex);
}

bool hb_watch_arm(struct hb_watch *watch) {
  struct hb_stream *stream = watch->stream;
  pthread_mutex_lock(&stream->mutex);
  bool missed = watch->seen != stream->version;
  unlink_from(list_of(stream, watch), watch);
  watch->seen = stream->version;
  watch->armed = !missed;
  link_in(list_of(stream, watch), watch);
  pthread_mutex_unlock(&stream->mutex);
  return missed;
}

void hb_watch_stop(struct hb_watch *watch) {
  struct hb_stream *stream = watch->stream;
  HB_ASSERT(stream);
  pthread_mutex_lock(&stream->mutex);
  while (stream->calling == watch) pthread_cond_wait(&stream->settled, &stream->mutex);
  unlink_from(list_of(stream, watch), watch);
  watch->stream = NULL;
  watch->armed = false;
  hb_live_gone(HB_LIVE_watches);
  pthread_mutex_unlock(&stream->mutex);
}

void hb_watches_call_locked(struct hb_stream *stream) {
  /* Whoever is armed again while this runs has seen this version: it waits for the next one. */
  HB_ASSERT(!stream->due);
  stream->due = stream->armed;
  stream->armed = NULL;
  struct hb_watch *watch;
  while ((watch = stream->due) != NULL) {
    unlink_from(&stream->due, watch);
    watch->armed = false;
    watch->seen = stream->version;
    link_in(&stream->idle, watch);
    stream->calling = watch;
    pthread_mutex_unlock(&stream->mutex);
    watch->changed(watch);
    pthread_mutex_lock(&stream->mutex);
    stream->calling = NULL;
    pthread_cond_broadcast(&stream->settled);
  }
}
