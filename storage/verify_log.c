/* Looks at a stream's log: from `earliest` to the frontier each position lies in exactly one block
 * (I4), each block is one, and each event in it is the one that its place says. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/frame/scan.h"
#include "storage/key_internal.h"
#include "storage/verify_internal.h"

/* ---- the order of blocks */

static void tell_range(struct hb_verify *verify, int64_t from, int64_t to, const char *text) {
  struct hb_range range = {from, to};
  hb_verify_report(verify, "log", &range, "%s", text);
}

/* A place where something is wrong up to the block that comes next, which is not known yet. */
static void set_pending(struct hb_verify *verify, int64_t from, const char *text) {
  struct hb_verify_stream *stream = &verify->stream;
  if (stream->pending) return;
  if (stream->log_began && from > stream->next) {
    tell_range(verify, stream->next, from, "no block accounts for these positions");
  }
  stream->pending = true;
  stream->pending_from = from;
  (void)snprintf(stream->pending_text, sizeof stream->pending_text, "%s", text);
}

/* Whatever was wrong before ends at `to`. */
static void end_pending(struct hb_verify *verify, int64_t to) {
  struct hb_verify_stream *stream = &verify->stream;
  stream->pending = false;
  stream->log_began = true;
  stream->time_known = false;
  stream->next = to;
  tell_range(verify, stream->pending_from, to, stream->pending_text);
}

/* The next good block is [from, to). */
static void follow(struct hb_verify *verify, int64_t from, int64_t to) {
  struct hb_verify_stream *stream = &verify->stream;
  const struct hb_frontier *record = &stream->record;
  if (stream->pending) end_pending(verify, from);
  int64_t expected = stream->log_began ? stream->next : record->earliest;
  if (from > expected) {
    tell_range(verify, expected, from, "no block accounts for these positions");
    stream->time_known = false;
  } else if (stream->log_began && from < expected) {
    tell_range(verify, from, expected < to ? expected : to,
               "two blocks account for these positions");
  }
  if (to > record->frontier) {
    tell_range(verify, record->frontier, to, "a block is above the frontier");
  }
  stream->log_began = true;
  stream->next = to;
}

/* ---- one block */

static bool check_event(struct hb_verify *verify, const struct hb_block *block, uint32_t index,
                        struct hb_event *out) {
  struct hb_slice frame = hb_block_frame(block, index);
  int64_t sequence = hb_block_sequence(block, index);
  struct hb_err err;
  if (hb_scan_frame(frame, out, &err)) {
    tell_range(verify, sequence, sequence + 1, err.message);
    return false;
  }
  if (out->frame_size != frame.size) {
    tell_range(verify, sequence, sequence + 1, "there is more behind its frame");
  }
  bool is_position = verify->stream.config.mode == HB_MODE_PER_KEY;
  if (out->sequence != sequence && !is_position) {
    struct hb_range range = {sequence, sequence + 1};
    hb_verify_report(verify, "log", &range, "the event there has sequence %" PRId64, out->sequence);
  }
  return true;
}

static void add_to_sums(struct hb_verify_stream *stream, const struct hb_block *block,
                        uint32_t index, const struct hb_event *event) {
  int64_t position = hb_block_sequence(block, index);
  if (!hb_verify_is_indexed(stream, position)) return;
  struct hb_index_entry entry = {.key = hb_event_key(event),
                                 .position = position,
                                 .block = block->from,
                                 .offset = (uint32_t)(event->frame - block->frames.data),
                                 .length = event->frame_size};
  hb_verify_add(stream->log_sums, stream, &entry);
}

/* The running maximum is right at this block's end if it was at its start. */
static void check_time(struct hb_verify *verify, const struct hb_block *block,
                       struct hb_time highest) {
  struct hb_verify_stream *stream = &verify->stream;
  if (stream->time_known && hb_time_compare(stream->max_time, highest) > 0) {
    highest = stream->max_time;
  }
  int order = hb_time_compare(block->max_time, highest);
  if (order < 0 || (order > 0 && stream->time_known)) {
    tell_range(verify, block->from, block->to,
               "the largest event time up to there is not what it says");
  }
  stream->max_time = block->max_time;
  stream->time_known = true;
}

/* Positions of a block without an event are right only where `previous` says so. */
static void check_events(struct hb_verify *verify, const struct hb_block *block) {
  struct hb_verify_stream *stream = &verify->stream;
  struct hb_time highest = {0};
  int64_t next = block->from;
  for (uint32_t i = 0; i < block->count; i++) {
    struct hb_event event;
    int64_t sequence = hb_block_sequence(block, i);
    bool scanned = check_event(verify, block, i, &event);
    bool explained = !scanned || sequence == next ||
                     ((event.flags & HB_EVENT_HAS_PREVIOUS) && event.previous < next);
    if (!explained)
      tell_range(verify, next, sequence, "the block has no event for these positions");
    next = sequence + 1;
    if (!scanned) continue;
    if (hb_time_compare(event.time, highest) > 0) highest = event.time;
    if (sequence >= stream->record.earliest) stream->released++;
    if (stream->config.mode == HB_MODE_PER_KEY) hb_verify_keys_add(verify, &event);
    add_to_sums(stream, block, i, &event);
  }
  if (next != block->to) {
    tell_range(verify, next, block->to, "the block has no event for these positions");
  }
  check_time(verify, block, highest);
}

static void look_at_block(struct hb_verify *verify, int64_t from, struct hb_slice value) {
  struct hb_verify_stream *stream = &verify->stream;
  struct hb_block block;
  struct hb_err err;
  verify->counts.blocks++;
  enum hb_code code = hb_block_decode(value, &block, &err);
  if (!code && block.from != from) {
    code = hb_err_set(&err, HB_CORRUPT, NULL, "the block there starts at %" PRId64, block.from);
  }
  if (code) {
    set_pending(verify, from, err.message);
    return;
  }
  verify->counts.events += block.count;
  verify->counts.done += block.count;
  if (block.to > stream->record.earliest) follow(verify, block.from, block.to);
  if (block.kind == HB_BLOCK_EVENTS) check_events(verify, &block);
}

/* ---- the log */

static void look_at_row(struct hb_verify *verify, struct hb_slice key, struct hb_slice value,
                        bool *out_end) {
  const struct hb_verify_stream *stream = &verify->stream;
  uint64_t id;
  int64_t from;
  if (!hb_key_parse_position(key, &id, &from)) {
    char text[HB_KEY_TEXT_SIZE];
    hb_verify_report(verify, "log", NULL, "row %s: not a key of this family",
                     hb_key_text(key, text));
    return;
  }
  bool above = !stream->record.frozen || from >= stream->record.frontier;
  *out_end = verify->options.live && above;
  if (*out_end) return;
  if (!stream->record.frozen) {
    hb_verify_report(verify, "log", NULL, "a block at %" PRId64 ", though nothing was released",
                     from);
    return;
  }
  look_at_block(verify, from, value);
}

/* What can't be read begins where the block before ended. */
static void note_unreadable(struct hb_verify *verify, const char *text) {
  const struct hb_verify_stream *stream = &verify->stream;
  set_pending(verify, stream->log_began ? stream->next : stream->record.earliest, text);
}

static void finish(struct hb_verify *verify) {
  struct hb_verify_stream *stream = &verify->stream;
  const struct hb_frontier *record = &stream->record;
  if (!record->frozen) return;
  if (stream->pending) {
    end_pending(verify, record->frontier);
    return;
  }
  int64_t next = stream->log_began ? stream->next : record->earliest;
  if (next < record->frontier) {
    tell_range(verify, next, record->frontier, "the log ends before the frontier");
  } else if (stream->time_known && next == record->frontier &&
             hb_time_compare(stream->max_time, record->max_event_time) != 0) {
    hb_verify_report(verify, "streams", NULL,
                     "max_event_time is not that of the log up to the frontier");
  }
}

bool hb_verify_log(struct hb_verify *verify) {
  struct hb_scan *scan = &verify->scan;
  struct hb_verify_stream *stream = &verify->stream;
  if (!scan->verify) {
    hb_scan_begin(scan, verify, HB_FAMILY_LOG, stream->id, NULL);
    stream->log_sums = hb_calloc(HB_VERIFY_BUCKETS, sizeof *stream->log_sums);
    stream->time_known = stream->record.earliest == stream->record.first_sequence;
  }
  bool end = false;
  while (!end) {
    struct hb_slice key;
    struct hb_slice value;
    struct hb_err err;
    switch (hb_scan_next(scan, &key, &value, &err)) {
      case HB_SCAN_ROW:
        look_at_row(verify, key, value, &end);
        break;
      case HB_SCAN_UNREADABLE:
        note_unreadable(verify, err.message);
        break;
      case HB_SCAN_PAUSE:
        return false;
      case HB_SCAN_END:
        end = true;
        break;
    }
  }
  finish(verify);
  return true;
}
