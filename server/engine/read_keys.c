/* Decides one page of keys that have a released event, in byte order: the lowest ones above the
 * token's, merged from the log's tail that is not indexed yet (looked through in steps, others
 * read in between) and from the index. What the tail and the page may hold is bounded. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/endian.h"
#include "base/frame/scan.h"
#include "server/engine/cursor_internal.h"
#include "server/engine/read_internal.h"
#include "storage/index.h"

enum { TOKEN_VERSION = 1, TOKEN_HEAD = 1 + 8 };

struct keys_state {
  struct hb_slice *keys; /* owned, ascending */
  size_t count;
  size_t cap;
  size_t max;
  size_t bytes;
  size_t bytes_max;
  bool truncated; /* there are more keys above */
  int64_t next;   /* of the tail */
  int64_t end;
  struct hb_standings_pass *pass; /* NULL: the keys are not known yet */
};

void hb_read_keys_done(void *context) {
  struct keys_state *state = context;
  if (!state) return;
  for (size_t i = 0; i < state->count; i++) free((void *)(uintptr_t)state->keys[i].data);
  free(state->keys);
  hb_standings_done(state->pass);
  free(state);
}

/* ---- the lowest keys seen */

static size_t lower_bound(const struct keys_state *state, struct hb_slice key) {
  size_t low = 0;
  size_t high = state->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (hb_slice_compare(state->keys[middle], key) < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

static void drop_last(struct keys_state *state) {
  struct hb_slice last = state->keys[--state->count];
  state->bytes -= last.size;
  state->truncated = true;
  free((void *)(uintptr_t)last.data);
}

/* False: the key is above all that still count. */
static bool add(struct keys_state *state, struct hb_slice key) {
  size_t at = lower_bound(state, key);
  if (at < state->count && hb_slice_equal(state->keys[at], key)) return true;
  if (at == state->count && (state->truncated || state->count == state->max)) {
    state->truncated = true;
    return false;
  }
  hb_reserve((void **)&state->keys, &state->cap, state->count + 1, sizeof *state->keys);
  memmove(state->keys + at + 1, state->keys + at, (state->count - at) * sizeof *state->keys);
  state->keys[at] = hb_slice_of(hb_memdup(key.data, key.size), key.size);
  state->count++;
  state->bytes += key.size;
  while (state->count > state->max || (state->bytes > state->bytes_max && state->count > 1)) {
    drop_last(state);
  }
  return true;
}

/* ---- token: version, hash of stream and prefix, the last key given */

static struct hb_slice after_of(const struct hb_read *read) {
  if (read->token.size < TOKEN_HEAD) return (struct hb_slice){0};
  return hb_slice_of(read->token.data + TOKEN_HEAD, read->token.size - TOKEN_HEAD);
}

static uint64_t purpose_of(const struct hb_read *read) {
  return hb_token_hash(~read->stream->id, read->key);
}

static enum hb_code check_token(const struct hb_read *read, struct hb_err *err) {
  if (read->token.size == 0) return HB_OK;
  if (read->token.size < TOKEN_HEAD || read->token.data[0] != TOKEN_VERSION ||
      hb_get_u64_le(read->token.data + 1) != purpose_of(read)) {
    return hb_token_invalid(err);
  }
  return HB_OK;
}

static void put_token(struct hb_read *read, struct hb_slice last) {
  uint8_t *at = hb_buf_reserve(&read->next_token, TOKEN_HEAD);
  at[0] = TOKEN_VERSION;
  hb_put_u64_le(at + 1, purpose_of(read));
  read->next_token.size += TOKEN_HEAD;
  hb_buf_append(&read->next_token, last.data, last.size);
}

/* ---- steps */

static bool is_wanted(const struct hb_read *read, struct hb_slice key) {
  if (!hb_slice_starts_with(key, read->key)) return false;
  return read->token.size == 0 || hb_slice_compare(key, after_of(read)) > 0;
}

static enum hb_code begin(struct hb_engine *engine, struct hb_read *read, struct hb_err *err) {
  enum hb_code code = check_token(read, err);
  if (code != HB_OK) return code;
  struct keys_state *state = hb_calloc(1, sizeof *state);
  struct hb_stream_status status;
  hb_stream_get_status(read->stream, &status);
  state->max = read->page_size > 0 ? read->page_size : 1;
  if (state->max > engine->limits.page_size_max) state->max = engine->limits.page_size_max;
  state->bytes_max = engine->tuning.key_page_bytes;
  if (read->kind == HB_READ_KEY_STATUS) {
    (void)add(state, read->key);
  } else if (status.record.frozen) {
    int64_t earliest = status.record.earliest;
    state->next = status.indexed_to > earliest ? status.indexed_to : earliest;
    state->end = status.record.frontier;
  }
  read->state = state;
  return HB_OK;
}

static enum hb_code scan_tail(struct hb_engine *engine, struct hb_read *read, struct hb_err *err) {
  struct keys_state *state = read->state;
  struct hb_cursor cursor;
  hb_cursor_init(&cursor, engine->store, read->stream, state->next);
  enum hb_code code = HB_OK;
  for (size_t bytes = 0; bytes < engine->tuning.read_step_bytes; bytes += cursor.bytes->size) {
    bool more;
    code = hb_cursor_next(&cursor, state->end, &more, err);
    if (code != HB_OK || !more) break;
    uint32_t i = hb_block_find(&cursor.block, state->next);
    for (; code == HB_OK && i < cursor.block.count; i++) {
      struct hb_event event;
      code = hb_scan_frame(hb_block_frame(&cursor.block, i), &event, err);
      if (code == HB_OK && is_wanted(read, hb_event_key(&event))) {
        (void)add(state, hb_event_key(&event));
      }
    }
    if (code != HB_OK) break;
    state->next = cursor.next;
  }
  hb_cursor_done(&cursor);
  return code;
}

static bool visit_key(void *context, struct hb_slice key) { return add(context, key); }

static enum hb_code find_keys(struct hb_engine *engine, struct hb_read *read, struct hb_err *err) {
  if (read->kind == HB_READ_KEY_STATUS) return HB_OK;
  return hb_index_keys(engine->store, read->stream->id, read->key, read->token.size > 0,
                       after_of(read), visit_key, read->state, err);
}

static void give(struct hb_read *read) {
  const struct keys_state *state = read->state;
  for (size_t i = 0; i < state->count; i++) {
    hb_put_u32_le(hb_buf_reserve(&read->keys, 4), (uint32_t)state->keys[i].size);
    read->keys.size += 4;
    hb_buf_append(&read->keys, state->keys[i].data, state->keys[i].size);
  }
  read->keys_count = state->count;
  if (state->truncated) put_token(read, state->keys[state->count - 1]);
}

/* The keys are known: their standings, in steps. */
static enum hb_code look(struct hb_engine *engine, struct hb_read *read, bool *out_again,
                         struct hb_err *err) {
  struct keys_state *state = read->state;
  enum hb_code code = HB_OK;
  if (!state->pass) {
    code = hb_standings_begin(engine, read, state->keys, state->count, &state->pass, err);
  }
  bool done = false;
  if (code == HB_OK) code = hb_standings_step(state->pass, &done, err);
  *out_again = code == HB_OK && !done;
  if (code == HB_OK && done) give(read);
  return code;
}

enum hb_code hb_read_keys(struct hb_engine *engine, struct hb_read *read, bool *out_again,
                          struct hb_err *err) {
  enum hb_code code = read->state ? HB_OK : begin(engine, read, err);
  if (code != HB_OK) return code;
  struct keys_state *state = read->state;
  if (state->pass) return look(engine, read, out_again, err);
  code = scan_tail(engine, read, err);
  if (code != HB_OK) return code;
  *out_again = state->next < state->end;
  if (*out_again) return HB_OK;
  code = find_keys(engine, read, err);
  if (code != HB_OK) return code;
  if (read->processor) return look(engine, read, out_again, err);
  give(read);
  return HB_OK;
}
