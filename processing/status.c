/* Decides what a key's status counts, and when it is told.
 *
 * Nothing is counted that is known from elsewhere: which events of a key wait is where they wait,
 * so what waits can't leak into a counter; and at which one a key is blocked is taken from where
 * the key waits, when it is told. Statuses are changed after a call of user code, not within it,
 * and are committed with what they count. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/frame/wire.h"
#include "processing/host_internal.h"

static const struct hb_slice NO_NAME = {NULL, 0};

/* ---- where they are read */

static enum hb_code get(void *context, struct hb_slice key, struct hb_slice name, bool *out_found,
                        struct hb_buf *out, struct hb_err *err) {
  (void)name;
  const struct hb_statuses *statuses = context;
  const struct hb_state_source *from = statuses->committed;
  struct hb_key_status status;
  enum hb_code code = from->get_status(from->context, key, &status, err);
  if (code != HB_OK) return code;
  hb_buf_append(out, (const uint8_t *)&status, sizeof status);
  *out_found = true;
  return HB_OK;
}

static enum hb_code get_nothing(void *context, struct hb_slice key, struct hb_slice name,
                                bool *out_found, struct hb_buf *out, struct hb_err *err) {
  (void)context;
  (void)key;
  (void)name;
  (void)out;
  (void)err;
  *out_found = false;
  return HB_OK;
}

void hb_statuses_init(struct hb_statuses *statuses, enum hb_key_status_mode mode,
                      const struct hb_state_source *committed, size_t budget) {
  *statuses = (struct hb_statuses){.mode = mode, .committed = committed};
  statuses->source = (struct hb_state_source){.context = statuses, .get = get};
  statuses->nothing = (struct hb_state_source){.get = get_nothing};
  hb_cache_init(&statuses->keys, &statuses->source, budget);
  hb_cache_init(&statuses->changed, &statuses->nothing, 0);
}

void hb_statuses_done(struct hb_statuses *statuses) {
  hb_cache_done(&statuses->keys);
  hb_cache_done(&statuses->changed);
  hb_buf_done(&statuses->frames);
  free(statuses->told);
}

void hb_statuses_committed(struct hb_statuses *statuses) {
  hb_cache_committed(&statuses->keys);
  hb_buf_clear(&statuses->frames);
  statuses->told_count = 0;
}

/* ---- telling */

/* A frame as in holdback.v1.KeyStatusBatch; position and key have the numbers that an Event's have.
 * Numbers that are 0 are left out. */
static void append_status(struct hb_buf *out, uint64_t position, struct hb_slice key,
                          const struct hb_key_status *status, const int64_t *blocked_at,
                          uint64_t wall_ms) {
  const struct {
    uint32_t field;
    uint64_t number;
  } numbers[] = {{10, status->processed},
                 {11, status->failed},
                 {12, status->results},
                 {13, status->duplicates},
                 {14, status->rejected},
                 {15, status->last_received},
                 {20, wall_ms}};
  struct hb_buf body = {0};
  if (position) hb_wire_append_varint(&body, 1, position);
  if (key.size) hb_wire_append_bytes(&body, 2, key);
  if (status->any) hb_wire_append_varint(&body, 9, (uint64_t)status->last_processed);
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    if (numbers[i].number) hb_wire_append_varint(&body, numbers[i].field, numbers[i].number);
  }
  if (blocked_at) hb_wire_append_varint(&body, 21, (uint64_t)*blocked_at);
  hb_wire_append_bytes(out, 1, hb_buf_view(&body));
  hb_buf_done(&body);
}

/* `blocked_at` NULL: the key does not wait at an event that failed. */
static void tell(struct hb_host *host, struct hb_slice key, const struct hb_key_status *status,
                 const int64_t *blocked_at) {
  struct hb_statuses *statuses = &host->statuses;
  size_t offset = statuses->frames.size;
  append_status(&statuses->frames, (uint64_t)host->place.next_status, key, status, blocked_at,
                statuses->wall_ms);
  hb_reserve((void **)&statuses->told, &statuses->told_cap, statuses->told_count + 1,
             sizeof *statuses->told);
  statuses->told[statuses->told_count++] =
      (struct hb_result){.offset = offset, .size = (uint32_t)(statuses->frames.size - offset)};
  host->place.next_status++;
}

void hb_host_set_wall_ms(struct hb_host *host, uint64_t wall_ms) {
  host->statuses.wall_ms = wall_ms;
}

/* ---- counting */

static enum hb_code read(struct hb_host *host, struct hb_slice key, struct hb_key_status *out,
                         struct hb_err *err) {
  struct hb_state *state;
  enum hb_code code = hb_cache_get(&host->statuses.keys, key, NO_NAME, &state, err);
  if (code == HB_OK) memcpy(out, hb_state_value(state).data, sizeof *out);
  return code;
}

/* As of what was done before. */
static const int64_t *blocked_at(const struct hb_host *host, struct hb_slice key) {
  const struct hb_blocked_key *found = hb_blocked_find(&host->blocked, key);
  return found && found->row.phase != HB_BLOCKED_CATCHES_UP ? &found->row.sequence : NULL;
}

/* As of the change, which the key's row does not have yet: an event that is tried or run behind one
 * is the last to keep the key waiting, or makes it wait. */
static const int64_t *blocks_at(const struct hb_host *host, const struct hb_status_change *change) {
  bool blocks = change->event && change->failed && host->on_error == HB_ON_ERROR_WAIT;
  return blocks ? &change->event->sequence : NULL;
}

/* `is_event`: each of these is told of, where somebody asked for that. */
static void put(struct hb_host *host, struct hb_slice key, const struct hb_key_status *status,
                bool is_event, const int64_t *blocked) {
  struct hb_statuses *statuses = &host->statuses;
  hb_cache_put(&statuses->keys, key, NO_NAME, true,
               hb_slice_of((const uint8_t *)status, sizeof *status));
  hb_cache_keep(&statuses->keys);
  if (statuses->mode == HB_KEY_STATUS_EVERY_EVENT && is_event) {
    tell(host, key, status, blocked);
  } else if (statuses->mode == HB_KEY_STATUS_PERIODIC) {
    hb_cache_put(&statuses->changed, key, NO_NAME, true, NO_NAME);
    hb_cache_keep(&statuses->changed);
  }
  host->touched = true;
}

enum hb_code hb_status_note(struct hb_host *host, const struct hb_status_change *change,
                            struct hb_err *err) {
  if (host->statuses.mode == HB_KEY_STATUS_OFF) return HB_OK;
  struct hb_key_status status;
  enum hb_code code = read(host, change->key, &status, err);
  if (code != HB_OK) return code;
  status.results += change->results;
  if (change->event && change->failed) {
    status.failed++;
  } else if (change->event && !change->passed) {
    if (change->made_good && status.failed > 0) status.failed--;
    status.any = true;
    status.last_processed = change->event->sequence;
    status.processed++;
  }
  if (change->event && change->event->flags & HB_EVENT_LAST) status.last_received = true;
  bool is_event = (change->event && !change->passed) || change->given_up;
  put(host, change->key, &status, is_event, blocks_at(host, change));
  return HB_OK;
}

enum hb_host_result hb_host_refused(struct hb_host *host, struct hb_slice key, bool duplicate,
                                    struct hb_err *err) {
  if (hb_host_is_full(host)) return HB_HOST_FULL;
  struct hb_key_status status;
  if (read(host, key, &status, err) != HB_OK) return HB_HOST_ERROR;
  if (duplicate) {
    status.duplicates++;
  } else {
    status.rejected++;
  }
  put(host, key, &status, true, blocked_at(host, key));
  return HB_HOST_DONE;
}

/* ---- now and then */

size_t hb_host_statuses_due(const struct hb_host *host) {
  return host->statuses.changed.dirty_count;
}

enum hb_host_result hb_host_tell_statuses(struct hb_host *host, struct hb_err *err) {
  struct hb_cache *changed = &host->statuses.changed;
  for (size_t i = changed->dirty_count; i > 0; i--) {
    struct hb_slice key = hb_state_key(changed->dirty[i - 1]);
    struct hb_key_status status;
    if (read(host, key, &status, err) != HB_OK) return HB_HOST_ERROR;
    tell(host, key, &status, blocked_at(host, key));
    host->touched = true;
  }
  hb_cache_committed(changed); /* empty again: it has no budget */
  return HB_HOST_DONE;
}
