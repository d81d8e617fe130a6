/* Decides what is done where somebody asks for keys that wait to be tried again, or for one to go
 * on without its event, and who is told of what came of it: asked on any thread, begun, ended and
 * answered on the processor's, one at a time, in the order in which they were asked for.
 *
 * An event is given up only where the key waits at it when its turn comes: a sequence that is given
 * with the key guards against one that the asker has not seen fail. */
#include <inttypes.h>
#include <string.h>

#include "server/engine/engine_internal.h"
#include "server/engine/processor_wait_internal.h"

void hb_processor_open_retries(struct hb_processor *processor) {
  pthread_mutex_lock(&processor->mutex);
  processor->retries_open = true;
  pthread_mutex_unlock(&processor->mutex);
}

static struct hb_retry *take_first(struct hb_processor *processor, bool begun_only) {
  pthread_mutex_lock(&processor->mutex);
  struct hb_retry *first = processor->retries;
  if (first && begun_only && !first->begun) first = NULL;
  if (first) processor->retries = first->next;
  pthread_mutex_unlock(&processor->mutex);
  return first;
}

static void answer_lost(struct hb_retry *retry) {
  (void)hb_err_set(&retry->error, HB_UNAVAILABLE, "RETRY_ENDED",
                   "processor '%s' ended, or began anew, meanwhile; what came of it is not known",
                   retry->name);
  retry->done(retry);
}

void hb_processor_close_retries(struct hb_processor *processor) {
  pthread_mutex_lock(&processor->mutex);
  processor->retries_open = false;
  pthread_mutex_unlock(&processor->mutex);
  struct hb_retry *retry;
  while ((retry = take_first(processor, false)) != NULL) answer_lost(retry);
}

void hb_processor_lose_retry(struct hb_processor *processor) {
  struct hb_retry *retry = take_first(processor, true);
  if (retry) answer_lost(retry);
}

static bool submit(struct hb_processor *processor, struct hb_retry *retry) {
  pthread_mutex_lock(&processor->mutex);
  bool open = processor->retries_open;
  if (open) {
    struct hb_retry **at = &processor->retries;
    while (*at) at = &(*at)->next;
    *at = retry;
    processor->news = true;
    pthread_cond_broadcast(&processor->changed);
  }
  pthread_mutex_unlock(&processor->mutex);
  return open;
}

void hb_engine_retry_blocked(struct hb_engine *engine, struct hb_stream *stream,
                             struct hb_retry *retry) {
  retry->next = NULL;
  retry->begun = false;
  retry->tried = retry->good = retry->blocked = 0;
  retry->why[0] = '\0';
  retry->is_blocked = false;
  retry->given_up = retry->blocked_at = 0;
  retry->error = (struct hb_err){0};
  struct hb_processor *processor = hb_processors_find(engine, stream->id, retry->name);
  if (!processor) {
    (void)hb_err_set(&retry->error, HB_NOT_FOUND, "PROCESSOR_NOT_FOUND",
                     "stream '%s' has no processor '%.64s'", stream->name, retry->name);
    retry->done(retry);
    return;
  }
  if (!submit(processor, retry)) {
    (void)hb_err_set(&retry->error, HB_PRECONDITION, "PROCESSOR_NOT_RUNNING",
                     "processor '%s' does not run", retry->name);
    retry->done(retry);
  }
  hb_processor_unref(processor);
}

static bool is_meant(const struct hb_retry *retry, const struct hb_blocked_key *key) {
  bool waits = key->row.phase != HB_BLOCKED_CATCHES_UP;
  return waits && (!retry->has_key || hb_slice_equal(retry->key, key->row.key));
}

static void look_again(struct hb_retry *retry, struct hb_blocked *blocked) {
  for (size_t i = 0; i < blocked->count; i++) {
    struct hb_blocked_key *key = blocked->items[i];
    if (!is_meant(retry, key)) continue;
    hb_blocked_look(key, true);
    key->asked = true;
    retry->tried++;
  }
}

/* While a good event is half committed, or what waited is run, there is nothing to give up. */
static enum hb_code give_up(struct hb_retry *retry, const struct hb_blocked *blocked) {
  struct hb_blocked_key *key = hb_blocked_find(blocked, retry->key);
  if (!key || key->row.phase != HB_BLOCKED_WAITS) {
    return hb_err_set(&retry->error, HB_PRECONDITION, "KEY_NOT_BLOCKED",
                      "key waits at no event that failed in processor '%s'", retry->name);
  }
  if (retry->has_sequence && retry->sequence != key->row.sequence) {
    return hb_err_set(&retry->error, HB_PRECONDITION, "KEY_BLOCKED_ELSEWHERE",
                      "sequence %" PRId64 " is not where the key waits in processor '%s': %" PRId64,
                      retry->sequence, retry->name, key->row.sequence);
  }
  key->given_up = key->asked = true;
  retry->tried = 1;
  retry->given_up = key->row.sequence;
  return HB_OK;
}

void hb_retry_begin(struct hb_processor *processor) {
  pthread_mutex_lock(&processor->mutex);
  struct hb_retry *retry = processor->retries;
  bool begins = retry && !retry->begun;
  if (begins) retry->begun = true;
  pthread_mutex_unlock(&processor->mutex);
  if (!begins) return;
  struct hb_blocked *blocked = hb_host_blocked(processor->host);
  if (!retry->gives_up) {
    look_again(retry, blocked);
  } else if (give_up(retry, blocked) != HB_OK) {
    (void)take_first(processor, true); /* it is the first, and has begun */
    retry->done(retry);
  }
}

bool hb_retry_end(struct hb_processor *processor) {
  struct hb_retry *retry = take_first(processor, true);
  if (!retry) return false;
  struct hb_blocked *blocked = hb_host_blocked(processor->host);
  uint64_t bad = 0;
  for (size_t i = 0; i < blocked->count; i++) {
    bad += blocked->items[i]->asked;
    blocked->items[i]->asked = false;
  }
  retry->good = retry->tried - bad;
  retry->blocked = blocked->count;
  const struct hb_blocked_key *key = retry->has_key ? hb_blocked_find(blocked, retry->key) : NULL;
  retry->is_blocked = key && key->row.phase == HB_BLOCKED_WAITS;
  retry->blocked_at = retry->is_blocked ? key->row.sequence : 0;
  if (bad > 0) {
    int64_t at;
    struct hb_slice why = hb_host_failure(processor->host, &at);
    size_t size = why.size < HB_SUSPENDED_WHY_MAX ? why.size : HB_SUSPENDED_WHY_MAX;
    if (size) memcpy(retry->why, why.data, size);
    retry->why[size] = '\0';
  }
  retry->done(retry);
  return true;
}
