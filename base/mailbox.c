/* Decides when a post is refused and when the taker is woken. One lock, held for a few lines. */
#include "base/mailbox.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/alloc.h"
#include "base/assert.h"

struct hb_mailbox {
  pthread_mutex_t mutex;
  pthread_cond_t posted;
  struct hb_node *first; /* protected by mutex, as all below */
  struct hb_node *last;
  size_t weight;
  size_t cap;           /* immutable after create */
  void (*wake)(void *); /* immutable */
  void *context;
};

struct hb_mailbox *hb_mailbox_create(size_t cap, void (*wake)(void *), void *context) {
  struct hb_mailbox *mailbox = hb_calloc(1, sizeof *mailbox);
  mailbox->cap = cap;
  mailbox->wake = wake;
  mailbox->context = context;
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_mutex_init(&mailbox->mutex, NULL);
  pthread_cond_init(&mailbox->posted, &monotonic);
  pthread_condattr_destroy(&monotonic);
  return mailbox;
}

void hb_mailbox_destroy(struct hb_mailbox *mailbox) {
  if (!mailbox) return;
  HB_ASSERT(!mailbox->first);
  pthread_cond_destroy(&mailbox->posted);
  pthread_mutex_destroy(&mailbox->mutex);
  free(mailbox);
}

/* The lock is held. Returns whether the mailbox was empty. */
static bool push_locked(struct hb_mailbox *mailbox, struct hb_node *node, size_t weight) {
  bool was_empty = !mailbox->first;
  node->next = NULL;
  node->weight = weight;
  if (was_empty) {
    mailbox->first = node;
  } else {
    mailbox->last->next = node;
  }
  mailbox->last = node;
  mailbox->weight += weight;
  return was_empty;
}

static void wake_taker(struct hb_mailbox *mailbox, bool was_empty) {
  if (!was_empty) return;
  if (mailbox->wake) {
    mailbox->wake(mailbox->context);
  } else {
    pthread_cond_signal(&mailbox->posted);
  }
}

bool hb_mailbox_try_post(struct hb_mailbox *mailbox, struct hb_node *node, size_t weight) {
  pthread_mutex_lock(&mailbox->mutex);
  bool fits = weight <= mailbox->cap && mailbox->weight <= mailbox->cap - weight;
  fits = fits || mailbox->weight == 0;
  bool was_empty = fits ? push_locked(mailbox, node, weight) : false;
  pthread_mutex_unlock(&mailbox->mutex);
  wake_taker(mailbox, was_empty);
  return fits;
}

void hb_mailbox_post(struct hb_mailbox *mailbox, struct hb_node *node) {
  pthread_mutex_lock(&mailbox->mutex);
  bool was_empty = push_locked(mailbox, node, 0);
  pthread_mutex_unlock(&mailbox->mutex);
  wake_taker(mailbox, was_empty);
}

static void wait_locked(struct hb_mailbox *mailbox, uint64_t deadline_ns) {
  while (!mailbox->first) {
    if (deadline_ns == UINT64_MAX) {
      pthread_cond_wait(&mailbox->posted, &mailbox->mutex);
      continue;
    }
    struct timespec until = {.tv_sec = (time_t)(deadline_ns / 1000000000u),
                             .tv_nsec = (long)(deadline_ns % 1000000000u)};
    if (pthread_cond_timedwait(&mailbox->posted, &mailbox->mutex, &until) == ETIMEDOUT) return;
  }
}

struct hb_node *hb_mailbox_take(struct hb_mailbox *mailbox, size_t weight_max,
                                uint64_t deadline_ns) {
  pthread_mutex_lock(&mailbox->mutex);
  if (deadline_ns > 0) wait_locked(mailbox, deadline_ns);
  struct hb_node *taken = mailbox->first;
  if (taken) {
    struct hb_node *end = taken;
    size_t weight = taken->weight;
    while (end->next && end->next->weight <= weight_max &&
           weight <= weight_max - end->next->weight) {
      end = end->next;
      weight += end->weight;
    }
    mailbox->first = end->next;
    if (!mailbox->first) mailbox->last = NULL;
    end->next = NULL;
    mailbox->weight -= weight;
  }
  pthread_mutex_unlock(&mailbox->mutex);
  return taken;
}

size_t hb_mailbox_weight(struct hb_mailbox *mailbox) {
  pthread_mutex_lock(&mailbox->mutex);
  size_t weight = mailbox->weight;
  pthread_mutex_unlock(&mailbox->mutex);
  return weight;
}
