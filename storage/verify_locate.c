/* Finds what log and index say differently, in the buckets whose sums differ: first, by the log,
 * the events that have no entry or a wrong one; then, by the index, the entries that no event has.
 * What can't be read, on either side, was told before and is passed over. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/frame/scan.h"
#include "storage/key_internal.h"
#include "storage/read.h"
#include "storage/record_internal.h"
#include "storage/verify_internal.h"

static void drop_block(struct hb_verify_locate *locate) {
  hb_log_reader_close(locate->reader);
  hb_bytes_unref(locate->block_bytes);
  locate->reader = NULL;
  locate->block_bytes = NULL;
}

void hb_verify_locate_done(struct hb_verify_locate *locate) {
  drop_block(locate);
  *locate = (struct hb_verify_locate){0};
}

static bool differs(const struct hb_verify_stream *stream, size_t bucket) {
  const struct hb_verify_sum *log = &stream->log_sums[bucket];
  const struct hb_verify_sum *index = &stream->index_sums[bucket];
  return log->hash != index->hash || log->count != index->count;
}

static bool any_differs(const struct hb_verify_stream *stream) {
  for (size_t i = 0; i < HB_VERIFY_BUCKETS; i++) {
    if (differs(stream, i)) return true;
  }
  return false;
}

static int64_t bucket_start(const struct hb_verify_stream *stream, size_t bucket) {
  uint64_t width = (uint64_t)stream->indexed_to - (uint64_t)stream->record.earliest;
  uint64_t offset = (width / HB_VERIFY_BUCKETS + 1) * bucket;
  return offset < width ? (int64_t)((uint64_t)stream->record.earliest + offset)
                        : stream->indexed_to;
}

/* The block that contains `position`, or the next one above it. False: none, or it can't be read.
 */
static bool read_block(struct hb_verify *verify, int64_t position) {
  struct hb_verify_locate *locate = &verify->locate;
  if (locate->block_bytes && position >= locate->block.from && position < locate->block.to) {
    return true;
  }
  drop_block(locate);
  enum hb_code code =
      hb_log_reader_open(verify->options.store, verify->stream.id, position, &locate->reader, NULL);
  if (!code) code = hb_log_reader_next(locate->reader, &locate->block_bytes, NULL);
  if (code || !locate->block_bytes) return false;
  verify->budget -= (int64_t)locate->block_bytes->size;
  return hb_block_decode(hb_bytes_view(locate->block_bytes), &locate->block, NULL) == HB_OK;
}

/* ---- from log to index */

static const char missing[] = "the index has no entry for these events";
static const char astray[] = "the index points to another place than that of these events";

static void end_run(struct hb_verify *verify) {
  struct hb_verify_locate *locate = &verify->locate;
  const char *run = locate->run;
  locate->run = NULL;
  if (run) hb_verify_report(verify, "lists", &locate->range, "%s", run);
}

/* Events in a row with the same fault are one finding. */
static void note(struct hb_verify *verify, int64_t position, const char *wrong) {
  struct hb_verify_locate *locate = &verify->locate;
  if (locate->run && (locate->run != wrong || locate->range.end != position)) end_run(verify);
  if (!locate->run) locate->range.start = position;
  locate->run = wrong;
  locate->range.end = position + 1;
}

static void look_up(struct hb_verify *verify, uint32_t index) {
  const struct hb_block *block = &verify->locate.block;
  int64_t position = hb_block_sequence(block, index);
  struct hb_event event;
  if (hb_scan_frame(hb_block_frame(block, index), &event, NULL)) return;
  struct hb_buf *key = &verify->key;
  hb_buf_clear(key);
  hb_key_list(key, verify->stream.id, hb_event_key(&event), position);
  struct hb_bytes *value = NULL;
  verify->budget -= 256;
  if (hb_rocks_get(verify->options.store->engine, HB_FAMILY_LISTS, hb_buf_view(key), &value,
                   NULL)) {
    return;
  }
  if (!value) {
    note(verify, position, missing);
    return;
  }
  struct hb_index_entry entry;
  bool decoded = hb_record_get_index(hb_bytes_view(value), &entry, NULL) == HB_OK;
  hb_bytes_unref(value);
  bool right = decoded && entry.block == block->from && entry.length == event.frame_size &&
               entry.offset == (uint32_t)(event.frame - block->frames.data);
  if (decoded && !right) note(verify, position, astray);
}

/* The events of one block that lie in the current bucket. */
static void look_up_block(struct hb_verify *verify, int64_t end) {
  struct hb_verify_locate *locate = &verify->locate;
  const struct hb_block *block = &locate->block;
  for (uint32_t i = hb_block_find(block, locate->position); i < block->count; i++) {
    if (hb_block_sequence(block, i) >= end) break;
    look_up(verify, i);
  }
  locate->position = block->to;
}

/* True: all buckets were looked at. */
static bool from_log(struct hb_verify *verify) {
  struct hb_verify_stream *stream = &verify->stream;
  struct hb_verify_locate *locate = &verify->locate;
  while (locate->bucket < HB_VERIFY_BUCKETS) {
    int64_t end = bucket_start(stream, locate->bucket + 1);
    if (!differs(stream, locate->bucket) || locate->position >= end) {
      locate->position = end;
      locate->bucket++;
      continue;
    }
    if (verify->budget <= 0) return false;
    if (read_block(verify, locate->position)) {
      look_up_block(verify, end);
    } else {
      locate->position = end; /* told when the log was looked at */
    }
  }
  end_run(verify);
  return true;
}

/* ---- from index to log */

/* NULL: the log has the event, as far as it can be read. What is wrong with a place that has it was
 * told on the way from log to index. */
static const char *contradiction(struct hb_verify *verify, struct hb_slice key, int64_t position) {
  if (!read_block(verify, position)) return NULL;
  const struct hb_block *block = &verify->locate.block;
  if (position < block->from) return NULL; /* a hole, told already */
  uint32_t index = hb_block_find(block, position);
  if (index == block->count || hb_block_sequence(block, index) != position) {
    return "an entry for a position that has no event";
  }
  struct hb_event event;
  if (hb_scan_frame(hb_block_frame(block, index), &event, NULL)) return NULL;
  return hb_slice_equal(hb_event_key(&event), key) ? NULL
                                                   : "an entry under a key that the event has not";
}

static void look_at_entry(struct hb_verify *verify, struct hb_slice row) {
  const struct hb_verify_stream *stream = &verify->stream;
  uint64_t id;
  int64_t position;
  if (!hb_key_parse_list(row, &id, &verify->key, &position)) return;
  if (!hb_verify_is_indexed(stream, position)) {
    if (verify->options.live) hb_verify_skip_key(verify);
    return;
  }
  if (!differs(stream, hb_verify_bucket(stream, position))) return;
  const char *text = contradiction(verify, hb_buf_view(&verify->key), position);
  struct hb_range range = {position, position + 1};
  if (text) hb_verify_report(verify, "lists", &range, "%s", text);
}

static bool from_index(struct hb_verify *verify) {
  for (;;) {
    struct hb_slice key;
    struct hb_slice value;
    struct hb_err err;
    switch (hb_scan_next(&verify->scan, &key, &value, &err)) {
      case HB_SCAN_ROW:
        look_at_entry(verify, key);
        break;
      case HB_SCAN_UNREADABLE:
        break;
      case HB_SCAN_PAUSE:
        drop_block(&verify->locate);
        return false;
      case HB_SCAN_END:
        return true;
    }
  }
}

bool hb_verify_locate(struct hb_verify *verify) {
  struct hb_verify_locate *locate = &verify->locate;
  struct hb_verify_stream *stream = &verify->stream;
  if (!any_differs(stream)) return true;
  if (!locate->begun) {
    locate->begun = true;
    locate->in_log = true;
    locate->position = stream->record.earliest;
  }
  if (locate->in_log) {
    bool over = from_log(verify);
    drop_block(locate);
    if (!over) return false;
    locate->in_log = false;
    hb_scan_begin(&verify->scan, verify, HB_FAMILY_LISTS, stream->id, NULL);
  }
  return from_index(verify);
}
