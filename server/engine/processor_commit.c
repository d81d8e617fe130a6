/* Decides what a processor's bundle is to the store, and what is written around the code of others.
 *
 * States come in key order, for RocksDB takes ascending keys several times faster. The write is
 * filled on the processor's thread; the sequencer applies it, in its own write and without waiting
 * for the disk: results are shown after the next fsync (I2), which is at most async_sync_ms away.
 *
 * Loaded code may end the process. So a mark with the place and the number of attempts is durable
 * before it runs. A start that finds a mark gives the place another attempt, event by event, so
 * that the next mark names the very event; after two attempts at one place it is suspended. A stop
 * takes the mark away; where the store takes no writes then, the next start does not count it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "server/engine/engine_internal.h"

enum { ATTEMPTS_MAX = 2, LINGER = 8, LINGER_MS_MAX = 200 };

/* ---- filling */

static void fill(struct hb_processor *processor, const struct hb_bundle *bundle) {
  struct hb_write *write = processor->write;
  struct hb_processor_id id = processor->id;
  for (size_t i = 0; i < bundle->states_count; i++) {
    const struct hb_state_row *row = &bundle->states[i];
    hb_write_put_state(write, id, row);
    processor->commit.bytes += row->key.size + row->name.size + row->value.size;
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
    processor->commit.bytes += bundle->results[i].block->size;
  }
  for (size_t i = 0; i < bundle->statuses_count; i++) {
    hb_write_put_key_status(write, id, &bundle->statuses[i]);
    processor->commit.bytes += bundle->statuses[i].key.size + sizeof bundle->statuses[i].status;
  }
  for (size_t i = 0; i < bundle->told_count; i++) {
    hb_write_put_results(write, hb_statuses_id(id), bundle->told[i].from,
                         hb_bytes_view(bundle->told[i].block));
    processor->commit.bytes += bundle->told[i].block->size;
  }
  for (size_t i = 0; i < bundle->unblocked_count; i++) {
    hb_write_delete_blocked(write, id, bundle->unblocked[i]);
  }
  for (size_t i = 0; i < bundle->blocked_count; i++) {
    hb_write_put_blocked(write, id, &bundle->blocked[i]);
    processor->commit.bytes += bundle->blocked[i].key.size + sizeof bundle->blocked[i];
  }
  for (size_t i = 0; i < bundle->failures_count; i++) {
    hb_write_put_failure(write, id, &bundle->failures[i], hb_clock_wall_ms());
  }
  hb_write_put_place(write, id, &bundle->place);
}

/* ---- handing over */

/* The store is held while rows are put: a write knows it. False: it is another one by now. */
static bool begin_rows(struct hb_processor *processor) {
  processor->commit = (struct hb_processor_commit){.processor = processor};
  return hb_processor_enter_store(processor);
}

static void end_rows(struct hb_processor *processor) {
  processor->commit.epoch = processor->epoch;
  processor->commit.write = processor->write;
  hb_processor_leave_store(processor);
}

static enum hb_bundle_fate post(struct hb_processor *processor) {
  pthread_mutex_lock(&processor->mutex);
  processor->fate = HB_BUNDLE_OUT;
  processor->kicked = false;
  pthread_mutex_unlock(&processor->mutex);
  hb_mailbox_post(processor->engine->sequencer.bundles, &processor->commit.node);
  pthread_mutex_lock(&processor->mutex);
  while (processor->fate == HB_BUNDLE_OUT) {
    pthread_cond_wait(&processor->changed, &processor->mutex);
  }
  enum hb_bundle_fate fate = processor->fate;
  pthread_mutex_unlock(&processor->mutex);
  return fate;
}

/* False: the thread is to end, and the bundle will be made again after the next start. */
static bool wait_for_space(struct hb_processor *processor) {
  pthread_mutex_lock(&processor->mutex);
  while (!processor->kicked && !processor->stopping) {
    pthread_cond_wait(&processor->changed, &processor->mutex);
  }
  bool stopping = processor->stopping;
  pthread_mutex_unlock(&processor->mutex);
  return !stopping;
}

static bool send(struct hb_processor *processor) {
  enum hb_bundle_fate fate;
  do {
    fate = post(processor);
  } while (fate == HB_BUNDLE_LATER && wait_for_space(processor));
  hb_write_clear(processor->write);
  if (fate == HB_BUNDLE_WRITTEN) return true;
  processor->lost = true;
  if (fate == HB_BUNDLE_GONE) hb_processor_end(processor);
  return false;
}

/* ---- attempts */

static void put_attempt(struct hb_processor *processor, int64_t frontier, uint32_t attempts) {
  struct hb_processor_mark *mark = &processor->mark;
  *mark = (struct hb_processor_mark){
      .stored = true,
      .ours = true,
      .attempt = {.position = hb_host_place(processor->host)->position,
                  .attempts = attempts,
                  .until = frontier > processor->one_by_one_until ? frontier
                                                                  : processor->one_by_one_until}};
  processor->has_marked = true;
  hb_write_put_attempt(processor->write, processor->id, &mark->attempt);
}

static bool is_marked(const struct hb_processor *processor) {
  const struct hb_processor_mark *mark = &processor->mark;
  return mark->stored && mark->ours &&
         mark->attempt.position == hb_host_place(processor->host)->position;
}

bool hb_processor_begin_attempt(struct hb_processor *processor, int64_t frontier) {
  if (!processor->attached.library || is_marked(processor)) return true;
  const struct hb_processor_mark before = processor->mark;
  uint32_t attempts = 1;
  if (before.stored && !before.ours) {
    if (before.attempt.attempts >= ATTEMPTS_MAX) {
      char why[160];
      (void)snprintf(why, sizeof why,
                     "the process ended %" PRIu32 " times while it ran at this position",
                     before.attempt.attempts);
      hb_processor_suspend(processor, why);
      return false;
    }
    attempts = before.attempt.attempts + 1;
    processor->one_by_one_until = before.attempt.until;
  }
  if (!begin_rows(processor)) return false;
  put_attempt(processor, frontier, attempts);
  processor->commit.durable = true;
  end_rows(processor);
  if (send(processor)) return true;
  processor->mark = before; /* nothing ran: the same attempt is made again, written or not */
  return false;
}

void hb_processor_clear_attempt(struct hb_processor *processor) {
  if (!processor->mark.stored || !processor->mark.ours || !begin_rows(processor)) return;
  hb_write_delete_attempt(processor->write, processor->id);
  processor->commit.frees = true;
  end_rows(processor);
  if (send(processor)) processor->mark = (struct hb_processor_mark){.stored = false};
}

/* With the commit of a bundle: what it says of the next one. One that only counts refusals, or in
 * which all that was tried for keys that wait failed, proves nothing of what is to come: the number
 * of attempts stands. */
static void move_attempt(struct hb_processor *processor, int64_t frontier, bool got_on) {
  if (!processor->attached.library) return;
  int64_t position = hb_host_place(processor->host)->position;
  bool more = position < frontier || hb_processor_has_blocked_work(processor);
  bool same = processor->mark.stored && processor->mark.attempt.position == position;
  if (more && same && !got_on) return;
  if (more) {
    put_attempt(processor, frontier, 1); /* it got on, be it within one event */
  } else {
    processor->mark = (struct hb_processor_mark){.stored = false};
    hb_write_delete_attempt(processor->write, processor->id);
  }
}

/* ---- committing */

static void linger(struct hb_processor *processor, uint64_t began_ns) {
  if (processor->engine->tuning.bundles_untimed) return;
  uint64_t now_ns = hb_clock_mono_ns();
  uint64_t linger_ms = LINGER * (now_ns - began_ns) / 1000000;
  if (linger_ms > LINGER_MS_MAX) linger_ms = LINGER_MS_MAX;
  processor->linger_until_ms = now_ns / 1000000 + linger_ms;
}

bool hb_processor_commit(struct hb_processor *processor, int64_t frontier) {
  if (!hb_host_has_bundle(processor->host)) return true;
  const struct hb_processor_mark before = processor->mark;
  if (!begin_rows(processor)) return false;
  const struct hb_bundle *bundle = hb_host_take(processor->host);
  fill(processor, bundle);
  move_attempt(processor, frontier, bundle->got_on);
  processor->commit.bundle = bundle;
  processor->commit.durable = processor->attached.library != NULL || bundle->gave_up;
  end_rows(processor);
  uint64_t began_ns = hb_clock_mono_ns();
  if (!send(processor)) {
    processor->mark = before;
    return false;
  }
  linger(processor, began_ns);
  hb_host_committed(processor->host);
  hb_processor_show(processor);
  return true;
}

/* The more a commit costs, the more a bundle gathers before the next: a state that changes often is
 * then written less often, and commits take a small part of the sequencer's time. Code that may end
 * the process has a mark that says how far its bundle may go, so there nothing is put off. */
void hb_processor_commit_soon(struct hb_processor *processor, int64_t frontier) {
  bool later = !processor->attached.library && hb_clock_mono_ms() < processor->linger_until_ms;
  if (!later) (void)hb_processor_commit(processor, frontier);
}

uint64_t hb_processor_commit_due_ms(const struct hb_processor *processor) {
  bool usable = processor->host && !processor->lost && !processor->failed;
  bool any = usable && hb_host_has_bundle(processor->host);
  return any ? processor->linger_until_ms : UINT64_MAX;
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

/* Noted as suspended only when that is durable: else it runs on at what is stored, and comes here
 * again. */
void hb_processor_suspend(struct hb_processor *processor, const char *why) {
  int64_t at = hb_host_place(processor->host)->position;
  pthread_mutex_lock(&processor->mutex);
  struct hb_processor_config stored = processor->config;
  pthread_mutex_unlock(&processor->mutex);
  stored.suspended = true;
  stored.suspended_at = at;
  (void)snprintf(stored.suspended_why, sizeof stored.suspended_why, "%s", why);
  if (!begin_rows(processor)) return;
  const struct hb_bundle *bundle = NULL;
  if (hb_host_has_bundle(processor->host)) {
    bundle = hb_host_take(processor->host);
    fill(processor, bundle);
  }
  hb_write_put_processor(processor->write, processor->id, &stored);
  hb_write_delete_attempt(processor->write, processor->id);
  processor->commit.bundle = bundle;
  processor->commit.durable = true;
  end_rows(processor);
  if (!send(processor)) return;
  processor->mark = (struct hb_processor_mark){.stored = false};
  pthread_mutex_lock(&processor->mutex);
  struct hb_processor_config *config = &processor->config; /* its names are read without a lock */
  config->suspended = true;
  config->suspended_at = at;
  memcpy(config->suspended_why, stored.suspended_why, sizeof config->suspended_why);
  pthread_mutex_unlock(&processor->mutex);
  if (bundle) hb_host_committed(processor->host);
  hb_processor_show(processor);
  stand_still(processor, HB_PROCESSOR_SUSPENDED, at, why);
}

void hb_processor_fail(struct hb_processor *processor, const struct hb_err *err) {
  processor->failed = true;
  pthread_mutex_lock(&processor->mutex);
  int64_t at = processor->info.position;
  pthread_mutex_unlock(&processor->mutex);
  stand_still(processor, HB_PROCESSOR_FAILED, at, err->message);
}
