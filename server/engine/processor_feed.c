/* Decides how much of the log user code sees at a time, and what is held meanwhile.
 *
 * Blocks are taken by reference, a few at a time, mostly from the shared tail; then the store is
 * let go, for user code may take long, and a store that is to be opened again waits for whoever
 * holds it. A bundle ends when the host says that it is full, at the published frontier, or when it
 * has been growing for 200 ms (500 ms where more waits than one holds: fewer commits are less
 * work).
 */
#include <string.h>

#include "base/clock.h"
#include "base/endian.h"
#include "base/frame/scan.h"
#include "server/engine/cursor_internal.h"
#include "server/engine/engine_internal.h"

enum { BUNDLE_MS = 200, BEHIND_MS = 500, CHUNK_BLOCKS = 16, CHUNK_BYTES = 1 << 20, AHEAD = 4 };

/* ---- around user code */

void hb_processor_call_begin(struct hb_processor *processor, uint64_t now_ms) {
  processor->began_ms = now_ms;
  atomic_store(&processor->call_began_ms, processor->began_ms);
}

bool hb_processor_call_end(struct hb_processor *processor) {
  uint64_t before = atomic_exchange(&processor->call_began_ms, HB_CALL_NONE);
  processor->abandoned = processor->abandoned || before == HB_CALL_ABANDONED;
  return !processor->abandoned;
}

/* From within a call. False: it was abandoned, and stays so. */
static bool call_pause(struct hb_processor *processor) {
  uint64_t began = processor->began_ms;
  return atomic_compare_exchange_strong(&processor->call_began_ms, &began, HB_CALL_IN_STORE);
}

static void call_resume(struct hb_processor *processor) {
  atomic_store(&processor->call_began_ms, processor->began_ms);
}

/* ---- what the host reads */

static enum hb_code get(void *context, struct hb_slice key, struct hb_slice name, bool *out_found,
                        struct hb_buf *out, struct hb_err *err) {
  struct hb_processor *processor = context;
  if (!call_pause(processor)) return hb_err_stops(err);
  enum hb_code code = HB_OK;
  if (hb_processor_enter_store(processor)) {
    code = hb_state_read(processor->engine->store, processor->id, key, name, out_found, out, err);
    hb_processor_leave_store(processor);
  } else {
    code = hb_err_no_store(err);
  }
  call_resume(processor);
  return code;
}

static enum hb_code next_key(void *context, bool has_after, struct hb_slice after, bool *out_found,
                             struct hb_buf *out, struct hb_err *err) {
  struct hb_processor *processor = context;
  if (!call_pause(processor)) return hb_err_stops(err);
  enum hb_code code = HB_OK;
  if (hb_processor_enter_store(processor)) {
    code = hb_state_next_key(processor->engine->store, processor->id, has_after, after, out_found,
                             out, err);
    hb_processor_leave_store(processor);
  } else {
    code = hb_err_no_store(err);
  }
  call_resume(processor);
  return code;
}

static enum hb_code get_status(void *context, struct hb_slice key, struct hb_key_status *out,
                               struct hb_err *err) {
  struct hb_processor *processor = context;
  if (!call_pause(processor)) return hb_err_stops(err);
  enum hb_code code = HB_OK;
  if (hb_processor_enter_store(processor)) {
    code = hb_key_status_read(processor->engine->store, processor->id, key, out, err);
    hb_processor_leave_store(processor);
  } else {
    code = hb_err_no_store(err);
  }
  call_resume(processor);
  return code;
}

const struct hb_state_source hb_processor_source = {
    .get = get, .next_key = next_key, .get_status = get_status};

/* ---- after a call */

static uint64_t bundle_ends_ms(const struct hb_processor *processor, uint64_t ms) {
  return processor->engine->tuning.bundles_untimed ? UINT64_MAX : hb_clock_mono_ms() + ms;
}

struct hb_feeding hb_feeding_begin(struct hb_processor *processor, int64_t frontier) {
  return (struct hb_feeding){.processor = processor,
                             .frontier = frontier,
                             .until_ms = bundle_ends_ms(processor, BUNDLE_MS)};
}

void hb_feeding_fail(struct hb_feeding *feeding, const struct hb_err *err) {
  feeding->over = true;
  if (feeding->processor->lost) return;
  hb_processor_fail(feeding->processor, err);
}

static void suspend(struct hb_processor *processor) {
  int64_t at;
  struct hb_slice why = hb_host_failure(processor->host, &at);
  char text[HB_SUSPENDED_WHY_MAX + 1];
  size_t size = why.size < HB_SUSPENDED_WHY_MAX ? why.size : HB_SUSPENDED_WHY_MAX;
  memcpy(text, why.data, size);
  text[size] = '\0';
  hb_processor_suspend(processor, text);
}

bool hb_feeding_go_on(struct hb_feeding *feeding, enum hb_host_result result,
                      const struct hb_err *err) {
  struct hb_processor *processor = feeding->processor;
  processor->now_ms = hb_clock_mono_coarse_ms(); /* the next call begins now */
  if (!hb_processor_call_end(processor)) {
    feeding->over = true;
    return false;
  }
  if (result == HB_HOST_ERROR) {
    hb_feeding_fail(feeding, err);
    return false;
  }
  if (result == HB_HOST_FAILED) {
    feeding->over = true;
    suspend(processor);
    return false;
  }
  bool cut = result == HB_HOST_FULL || processor->now_ms >= feeding->until_ms ||
             hb_host_place(processor->host)->position <= processor->one_by_one_until;
  if (!cut) return true;
  feeding->over = true;
  (void)hb_processor_commit(processor, feeding->frontier);
  return false;
}

/* ---- statuses */

/* The first of `bytes`: is it a duplicate, which key has it. */
static struct hb_slice take_refused(struct hb_slice bytes, bool *out_duplicate) {
  *out_duplicate = bytes.data[0] != 0;
  return hb_slice_of(bytes.data + 5, hb_get_u32_le(bytes.data + 1));
}

/* What a lost bundle had counted stays uncounted: a refusal may be told too rarely, never twice. */
bool hb_processor_count_refusals(struct hb_processor *processor, int64_t frontier) {
  if (processor->config.key_status == HB_KEY_STATUS_OFF) return false;
  struct hb_buf *counting = &processor->counting;
  if (processor->counted == counting->size) {
    hb_buf_clear(counting);
    processor->counted = 0;
    pthread_mutex_lock(&processor->mutex);
    struct hb_buf taken = processor->refused;
    processor->refused = *counting;
    pthread_mutex_unlock(&processor->mutex);
    *counting = taken;
  }
  if (counting->size == 0) return false;
  struct hb_feeding feeding = {
      .processor = processor, .frontier = frontier, .until_ms = UINT64_MAX};
  while (!feeding.over && processor->counted < counting->size) {
    bool duplicate;
    struct hb_slice key = take_refused(
        hb_slice_of(counting->data + processor->counted, counting->size - processor->counted),
        &duplicate);
    struct hb_err err = {0};
    hb_processor_call_begin(processor, hb_clock_mono_ms());
    enum hb_host_result result = hb_host_refused(processor->host, key, duplicate, &err);
    if (result == HB_HOST_DONE) processor->counted += 5 + key.size;
    (void)hb_feeding_go_on(&feeding, result, &err);
  }
  if (!feeding.over) (void)hb_processor_commit(processor, frontier);
  return true;
}

/* ---- events */

struct chunk {
  struct hb_bytes *bytes[CHUNK_BLOCKS]; /* references */
  struct hb_block blocks[CHUNK_BLOCKS];
  size_t count;
  int64_t next; /* after the last of them */
};

static void drop(struct chunk *chunk) {
  for (size_t i = 0; i < chunk->count; i++) hb_bytes_unref(chunk->bytes[i]);
  chunk->count = 0;
}

/* The blocks at chunk->next and after. */
static enum hb_code take(struct hb_feeding *feeding, struct chunk *chunk, struct hb_err *err) {
  struct hb_processor *processor = feeding->processor;
  if (!hb_processor_enter_store(processor)) return hb_err_no_store(err);
  struct hb_cursor cursor;
  hb_cursor_init(&cursor, processor->engine->store, processor->stream, chunk->next);
  enum hb_code code = HB_OK;
  bool more = true;
  for (size_t bytes = 0; chunk->count < CHUNK_BLOCKS && bytes < CHUNK_BYTES;) {
    code = hb_cursor_next(&cursor, feeding->frontier, &more, err);
    if (code != HB_OK || !more) break;
    chunk->bytes[chunk->count] = hb_bytes_ref(cursor.bytes);
    chunk->blocks[chunk->count++] = cursor.block;
    bytes += cursor.bytes->size;
  }
  chunk->next = cursor.next;
  hb_cursor_done(&cursor);
  hb_processor_leave_store(processor);
  if (chunk->count > 0) return HB_OK; /* what is wrong behind them is met again */
  return code;
}

/* Events are scanned a little before their turn. */
struct ahead {
  const struct hb_block *block;
  struct hb_event events[AHEAD];
  bool sound[AHEAD];
  uint32_t next; /* to be scanned */
};

static void look_ahead(struct hb_host *host, struct ahead *ahead, uint32_t to) {
  if (to > ahead->block->count) to = ahead->block->count;
  for (; ahead->next < to; ahead->next++) {
    struct hb_event *event = &ahead->events[ahead->next % AHEAD];
    struct hb_err err; /* told in its turn */
    bool sound = hb_scan_frame(hb_block_frame(ahead->block, ahead->next), event, &err) == HB_OK;
    ahead->sound[ahead->next % AHEAD] = sound;
    if (sound) hb_host_expect(host, hb_event_key(event));
  }
}

static enum hb_host_result run_event(struct hb_host *host, const struct ahead *ahead, uint32_t i,
                                     struct hb_err *err) {
  struct hb_event again;
  const struct hb_event *event = &ahead->events[i % AHEAD];
  if (!ahead->sound[i % AHEAD]) {
    if (hb_scan_frame(hb_block_frame(ahead->block, i), &again, err) != HB_OK) return HB_HOST_ERROR;
    event = &again;
  }
  return hb_host_event(host, event, hb_block_sequence(ahead->block, i), err);
}

static void feed_block(struct hb_feeding *feeding, const struct hb_block *block) {
  struct hb_processor *processor = feeding->processor;
  struct hb_err err = {0};
  uint32_t first = hb_block_find(block, hb_host_place(processor->host)->position);
  struct ahead ahead = {.block = block, .next = first};
  processor->now_ms = hb_clock_mono_coarse_ms();
  for (uint32_t i = first; i < block->count; i++) {
    look_ahead(processor->host, &ahead, i + AHEAD);
    hb_processor_call_begin(processor, processor->now_ms);
    enum hb_host_result result = run_event(processor->host, &ahead, i, &err);
    if (!hb_feeding_go_on(feeding, result, &err)) return;
    if (i % 64 == 0 && hb_processor_should_stop(processor)) {
      (void)hb_processor_commit(processor, feeding->frontier);
      feeding->over = true;
      return;
    }
  }
  hb_host_skip_to(processor->host, block->to);
}

void hb_processor_feed(struct hb_processor *processor, int64_t position, int64_t frontier,
                       bool behind) {
  uint64_t until_ms = bundle_ends_ms(processor, behind ? BEHIND_MS : BUNDLE_MS);
  struct hb_feeding feeding = {.processor = processor, .frontier = frontier, .until_ms = until_ms};
  struct chunk chunk = {.next = position};
  struct hb_err err = {0};
  while (!feeding.over && chunk.next < frontier) {
    if (take(&feeding, &chunk, &err) != HB_OK) {
      hb_feeding_fail(&feeding, &err);
      break;
    }
    for (size_t i = 0; i < chunk.count && !feeding.over; i++) {
      feed_block(&feeding, &chunk.blocks[i]);
    }
    drop(&chunk);
  }
  if (!feeding.over) hb_processor_commit_soon(processor, frontier);
}

/* ---- the end of a sealed stream */

void hb_processor_finish(struct hb_processor *processor, int64_t end) {
  struct hb_feeding feeding = hb_feeding_begin(processor, end);
  struct hb_err err = {0};
  hb_processor_call_begin(processor, hb_clock_mono_ms());
  enum hb_host_result result = hb_host_end(processor->host, end, &err);
  if (hb_feeding_go_on(&feeding, result, &err)) (void)hb_processor_commit(processor, end);
}
