/* Decides what a processor's bundle is to the store, and what is written around the code of others.
 *
 * States go in key order, for RocksDB takes ascending keys several times faster. The write is
 * filled on the processor's thread; the sequencer applies it, in its own write and without waiting
 * for the disk: results are shown after the next fsync (I2), which is at most async_sync_ms away.
 *
 * Loaded code may end the process. So a mark with the place and the number of attempts is durable
 * before it runs. A start that finds a mark gives the place another attempt, event by event, so
 * that the next mark names the very event; after two attempts at one place it is suspended. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "server/engine/engine_internal.h"

enum { ATTEMPTS_MAX = 2 };

/* ---- filling */

static int compare_states(const void *a, const void *b) {
  const struct hb_state_row *left = a;
  const struct hb_state_row *right = b;
  int order = hb_slice_compare(left->key, right->key);
  return order ? order : hb_slice_compare(left->name, right->name);
}

static void fill(struct hb_processor *processor, const struct hb_bundle *bundle) {
  struct hb_write *write = processor->write;
  struct hb_processor_id id = processor->id;
  if (bundle->states_count > 0) {
    qsort(bundle->states, bundle->states_count, sizeof *bundle->states, compare_states);
  }
  for (size_t i = 0; i < bundle->states_count; i++) {
    hb_write_put_state(write, id, &bundle->states[i]);
  }
  for (size_t i = 0; i < bundle->gone_count; i++) {
    hb_write_delete_timer(write, id, &bundle->gone[i]);
  }
  for (size_t i = 0; i < bundle->timers_count; i++) {
    hb_write_put_timer(write, id, &bundle->timers[i]);
  }
  for (size_t i = 0; i < bundle->results_count; i++) {
    hb_write_put_results(write, id, bundle->results[i].from,
                         hb_bytes_view(bundle->results[i].block));
  }
  for (size_t i = 0; i < bundle->failures_count; i++) {
    hb_write_put_failure(write, id, &bundle->failures[i], hb_clock_wall_ms());
  }
  hb_write_put_place(write, id, &bundle->place);
}

/* ---- handing over */

static bool send(struct hb_processor *processor, const struct hb_bundle *bundle, bool durable) {
  pthread_mutex_lock(&processor->mutex);
  processor->fate = HB_BUNDLE_OUT;
  pthread_mutex_unlock(&processor->mutex);
  processor->commit = (struct hb_processor_commit){
      .processor = processor, .write = processor->write, .bundle = bundle, .durable = durable};
  hb_mailbox_post(processor->engine->sequencer.bundles, &processor->commit.node);
  pthread_mutex_lock(&processor->mutex);
  while (processor->fate == HB_BUNDLE_OUT) {
    pthread_cond_wait(&processor->changed, &processor->mutex);
  }
  bool written = processor->fate == HB_BUNDLE_WRITTEN;
  if (!written) processor->stopping = true;
  pthread_mutex_unlock(&processor->mutex);
  hb_write_clear(processor->write);
  return written;
}

/* ---- attempts */

static void put_attempt(struct hb_processor *processor, int64_t frontier, uint32_t attempts) {
  struct hb_processor_attempt *attempt = &processor->attempt;
  *attempt = (struct hb_processor_attempt){
      .position = hb_host_place(processor->host)->position,
      .attempts = attempts,
      .until = frontier > processor->one_by_one_until ? frontier : processor->one_by_one_until};
  processor->has_attempt = true;
  hb_write_put_attempt(processor->write, processor->id, attempt);
}

static bool is_marked(const struct hb_processor *processor) {
  return processor->has_attempt && processor->attempt_is_ours &&
         processor->attempt.position == hb_host_place(processor->host)->position;
}

bool hb_processor_begin_attempt(struct hb_processor *processor, int64_t frontier) {
  if (!processor->attached.library || is_marked(processor)) return true;
  uint32_t attempts = 1;
  if (processor->has_attempt && !processor->attempt_is_ours) { /* left by a process that ended */
    if (processor->attempt.attempts >= ATTEMPTS_MAX) {
      char why[160];
      (void)snprintf(why, sizeof why,
                     "the process ended %" PRIu32 " times while it ran at this position",
                     processor->attempt.attempts);
      hb_processor_suspend(processor, why);
      return false;
    }
    attempts = processor->attempt.attempts + 1;
    processor->one_by_one_until = processor->attempt.until;
  }
  put_attempt(processor, frontier, attempts);
  processor->attempt_is_ours = true;
  return send(processor, NULL, true);
}

void hb_processor_clear_attempt(struct hb_processor *processor) {
  if (!processor->has_attempt || !processor->attempt_is_ours) return;
  processor->has_attempt = false;
  hb_write_delete_attempt(processor->write, processor->id);
  (void)send(processor, NULL, false);
}

/* With the commit of a bundle: what it says of the next one. */
static void move_attempt(struct hb_processor *processor, int64_t frontier) {
  if (!processor->attached.library) return;
  if (hb_host_place(processor->host)->position < frontier) {
    put_attempt(processor, frontier, 1); /* it got on, be it within one event */
  } else {
    processor->has_attempt = false;
    hb_write_delete_attempt(processor->write, processor->id);
  }
}

/* ---- committing */

bool hb_processor_commit(struct hb_processor *processor, int64_t frontier) {
  if (!hb_host_has_bundle(processor->host)) return true;
  const struct hb_bundle *bundle = hb_host_take(processor->host);
  fill(processor, bundle);
  move_attempt(processor, frontier);
  if (!send(processor, bundle, processor->attached.library != NULL)) return false;
  hb_host_committed(processor->host);
  hb_processor_show(processor);
  return true;
}

/* ---- standing still */

static void stand_still(struct hb_processor *processor, enum hb_processor_state state, int64_t at,
                        const char *why) {
  pthread_mutex_lock(&processor->mutex);
  processor->stopping = true;
  processor->info.state = state;
  processor->info.stopped_at = at;
  (void)snprintf(processor->info.why, sizeof processor->info.why, "%s", why);
  pthread_mutex_unlock(&processor->mutex);
  char quoted[HB_ERR_MESSAGE_SIZE];
  hb_log(HB_LOG_WARN, state == HB_PROCESSOR_SUSPENDED ? "processor_suspended" : "processor_failed",
         "stream=%s processor=%s position=%" PRId64 " cause=%s", processor->stream->name,
         processor->config.name, at, hb_log_quote(why, quoted, sizeof quoted));
}

void hb_processor_suspend(struct hb_processor *processor, const char *why) {
  int64_t at = hb_host_place(processor->host)->position;
  pthread_mutex_lock(&processor->mutex);
  struct hb_processor_config *config = &processor->config;
  config->suspended = true;
  config->suspended_at = at;
  (void)snprintf(config->suspended_why, sizeof config->suspended_why, "%s", why);
  struct hb_processor_config stored = *config;
  pthread_mutex_unlock(&processor->mutex);
  const struct hb_bundle *bundle = NULL;
  if (hb_host_has_bundle(processor->host)) {
    bundle = hb_host_take(processor->host);
    fill(processor, bundle);
  }
  hb_write_put_processor(processor->write, processor->id, &stored);
  hb_write_delete_attempt(processor->write, processor->id);
  processor->has_attempt = false;
  if (!send(processor, bundle, true)) return;
  if (bundle) hb_host_committed(processor->host);
  hb_processor_show(processor);
  stand_still(processor, HB_PROCESSOR_SUSPENDED, at, why);
}

void hb_processor_fail(struct hb_processor *processor, const struct hb_err *err) {
  int64_t at =
      processor->host ? hb_host_place(processor->host)->position : processor->committed.position;
  stand_still(processor, HB_PROCESSOR_FAILED, at, err->message);
}
