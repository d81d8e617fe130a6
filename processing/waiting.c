/* Decides what becomes of a key that waits at an event that failed: its later events are passed
 * over, a good event is tried in place of the failed one, or that one is given up, and what was
 * passed over is run behind it.
 *
 * All of it is of the bundle at hand, the key's row with it, so that a crash finds the key where
 * its states are. A key's timers fire meanwhile as all timers do, on the state that the key has. */
#include <string.h>

#include "base/assert.h"
#include "processing/host_internal.h"

void hb_host_restore_blocked(struct hb_host *host, const struct hb_blocked_row *row) {
  (void)hb_blocked_add(&host->blocked, row, true);
}

struct hb_blocked *hb_host_blocked(struct hb_host *host) {
  return &host->blocked;
}

bool hb_host_may_block(const struct hb_host *host, struct hb_slice key) {
  const struct hb_blocked *blocked = &host->blocked;
  if (hb_blocked_find(blocked, key)) return true; /* it waits already, and will further on */
  return blocked->count < host->budget.blocked_keys &&
         blocked->key_bytes + key.size <= host->budget.blocked_bytes;
}

static void touch(struct hb_host *host, struct hb_blocked_key *key) {
  hb_blocked_touch(&host->blocked, key);
  host->touched = true;
}

void hb_host_block(struct hb_host *host, const struct hb_event *event, int64_t position) {
  struct hb_blocked_row row = {.key = hb_event_key(event),
                               .sequence = event->sequence,
                               .position = position,
                               .next = position};
  hb_blocked_look(hb_blocked_add(&host->blocked, &row, false), false);
}

enum hb_host_result hb_host_pass_over(struct hb_host *host, struct hb_blocked_key *key,
                                      const struct hb_event *event, struct hb_err *err) {
  key->row.passed++;
  touch(host, key);
  if (!(event->flags & HB_EVENT_LAST)) return HB_HOST_DONE;
  struct hb_status_change change = {.key = key->row.key, .event = event, .passed = true};
  return hb_status_note(host, &change, err) == HB_OK ? HB_HOST_DONE : HB_HOST_ERROR;
}

/* ---- a good event */

static void begin_to_catch_up(struct hb_host *host, struct hb_blocked_key *key) {
  key->row.phase = HB_BLOCKED_CATCHES_UP;
  key->row.is_copy = false;
  key->row.copy = 0;
  key->row.run = 0;
  key->row.next = key->row.position + 1;
  key->asked = key->given_up = key->try_failed = key->try_copies = false;
  touch(host, key);
  if (key->row.passed == 0) hb_blocked_remove(&host->blocked, key);
}

static void choose(struct hb_host *host, struct hb_blocked_key *key, uint64_t copy, bool is_copy) {
  key->row.phase = HB_BLOCKED_CHOSEN;
  key->row.is_copy = is_copy;
  key->row.copy = is_copy ? copy : 0;
  touch(host, key);
}

/* Where some of its results are committed it is no good processor, but goes on all the same. */
static void wait_on(struct hb_host *host, struct hb_blocked_key *key, uint64_t copy, bool is_copy) {
  if (key->row.phase == HB_BLOCKED_CHOSEN) {
    key->row.phase = HB_BLOCKED_WAITS;
    touch(host, key);
  }
  if (is_copy && key->tried_count < HB_COPIES_MAX) key->tried[key->tried_count++] = copy;
}

enum hb_host_result hb_host_try(struct hb_host *host, struct hb_blocked_key *key,
                                const struct hb_event *event, enum hb_try kind, bool *out_good,
                                struct hb_err *err) {
  HB_ASSERT(key->row.phase != HB_BLOCKED_CATCHES_UP && event->sequence == key->row.sequence);
  if (hb_host_is_full(host)) return HB_HOST_FULL;
  bool is_copy = kind != HB_TRY_FAILED;
  struct hb_event_call call = {.position = key->row.position,
                               .skip = &key->row.skip,
                               .is_try = true,
                               .is_copy = is_copy,
                               .is_kept = kind == HB_TRY_KEPT};
  uint64_t copy = hb_event_content_hash(event);
  enum hb_host_result result = hb_host_run_event(host, event, &call, err);
  if (result == HB_HOST_FULL) choose(host, key, copy, is_copy);
  if (result != HB_HOST_DONE) return result;
  host->events++;
  *out_good = !host->call.failed;
  if (*out_good) {
    begin_to_catch_up(host, key);
  } else {
    wait_on(host, key, copy, is_copy);
  }
  return HB_HOST_DONE;
}

/* ---- none */

/* Where some results of a good event are committed, and code that is another one by now fails at
 * the rest, those stay: none of them is repeated or taken back. */
enum hb_host_result hb_host_give_up(struct hb_host *host, struct hb_blocked_key *key,
                                    struct hb_err *err) {
  HB_ASSERT(key->row.phase == HB_BLOCKED_WAITS);
  if (hb_host_is_full(host)) return HB_HOST_FULL;
  struct hb_status_change change = {.key = key->row.key, .given_up = true};
  if (hb_status_note(host, &change, err) != HB_OK) return HB_HOST_ERROR;
  key->row.skip = 0;
  host->gave_up = true;
  begin_to_catch_up(host, key);
  return HB_HOST_DONE;
}

/* ---- behind it */

/* It waits at another event now, with what is left of what was passed over. */
static void wait_at(struct hb_blocked_key *key, const struct hb_event *event, int64_t position) {
  struct hb_blocked_row *row = &key->row;
  row->phase = HB_BLOCKED_WAITS;
  row->sequence = event->sequence;
  row->position = row->next = position;
  row->passed -= row->run;
  row->run = 0;
  key->tried_count = 0;
  hb_blocked_look(key, false);
}

enum hb_host_result hb_host_catch_up(struct hb_host *host, struct hb_blocked_key *key,
                                     const struct hb_event *event, int64_t position,
                                     struct hb_err *err) {
  struct hb_blocked_row *row = &key->row;
  HB_ASSERT(row->phase == HB_BLOCKED_CATCHES_UP && row->run < row->passed);
  HB_ASSERT(position >= row->next && position < host->place.position);
  if (hb_host_is_full(host)) return HB_HOST_FULL;
  struct hb_event_call call = {.position = position, .skip = &row->skip};
  enum hb_host_result result = hb_host_run_event(host, event, &call, err);
  if (result == HB_HOST_FULL) touch(host, key);
  if (result != HB_HOST_DONE) return result;
  host->events++;
  row->run++;
  row->next = position + 1;
  touch(host, key);
  if (host->call.failed) {
    wait_at(key, event, position);
  } else if (row->run == row->passed) {
    hb_blocked_remove(&host->blocked, key);
  }
  return HB_HOST_DONE;
}
