/* Looks at what a stream holds, as of one moment with its frontier record: coverage from the
 * frontier ends exactly at complete_to, no sequence lies in two bundles (I4, I10), and each bundle
 * is one.
 *
 * Coverage is gathered in a table of bounded size. Where it gets full its upper half is dropped,
 * and the bundles are gone over once more for what lies there. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/frame/scan.h"
#include "storage/key_internal.h"
#include "storage/verify_internal.h"

enum { RUNS_MAX = 1 << 18 };

void hb_verify_held_done(struct hb_verify_held *held) {
  hb_rocks_iter_destroy(held->view);
  free(held->runs);
  *held = (struct hb_verify_held){0};
}

/* ---- the table */

static int compare_runs(const void *a, const void *b) {
  const struct hb_verify_run *left = a;
  const struct hb_verify_run *right = b;
  if (left->range.start != right->range.start) {
    return left->range.start < right->range.start ? -1 : 1;
  }
  return (left->commit > right->commit) - (left->commit < right->commit);
}

static void tell_twice(struct hb_verify *verify, const struct hb_verify_run *a,
                       const struct hb_verify_run *b) {
  int64_t end = a->range.end < b->range.end ? a->range.end : b->range.end;
  struct hb_range range = {b->range.start, end};
  hb_verify_report(verify, "held", &range,
                   "in two bundles: %" PRIu64 "/%" PRIu32 " and %" PRIu64 "/%" PRIu32, a->commit,
                   a->part, b->commit, b->part);
}

/* Sorted; neighbours of one bundle become one. Overlaps stay as they are. */
static void tidy(struct hb_verify_held *held) {
  qsort(held->runs, held->count, sizeof *held->runs, compare_runs);
  size_t kept = 0;
  for (size_t i = 0; i < held->count; i++) {
    const struct hb_verify_run *run = &held->runs[i];
    struct hb_verify_run *last = kept ? &held->runs[kept - 1] : NULL;
    if (last && last->range.end == run->range.start && last->commit == run->commit &&
        last->part == run->part) {
      last->range.end = run->range.end;
    } else {
      held->runs[kept++] = *run;
    }
  }
  held->count = kept;
}

static void make_room(struct hb_verify_held *held) {
  tidy(held);
  if (held->count < held->runs_max) return;
  size_t half = held->count / 2;
  if (held->runs[half].range.start == held->from) { /* one sequence in so many bundles */
    held->runs_max *= 2;
    held->runs = hb_realloc(held->runs, held->runs_max * sizeof *held->runs);
    return;
  }
  held->limit = held->runs[half].range.start;
  held->again = true;
  held->count = half;
}

static void add_run(struct hb_verify_held *held, struct hb_bundle_id id, struct hb_range range) {
  if (range.start < held->from) range.start = held->from;
  if (range.end > held->limit) {
    range.end = held->limit;
    held->again = true;
  }
  if (range.start >= range.end) return;
  struct hb_verify_run *last = held->count ? &held->runs[held->count - 1] : NULL;
  if (last && last->commit == id.commit && last->part == id.part &&
      last->range.end == range.start) {
    last->range.end = range.end;
    return;
  }
  if (held->count == held->runs_max) make_room(held);
  if (range.start >= held->limit) return;
  held->runs[held->count++] =
      (struct hb_verify_run){.range = range, .commit = id.commit, .part = id.part};
}

/* ---- one bundle */

static void look_at_entry(struct hb_verify *verify, struct hb_bundle_id id,
                          const struct hb_block *block, uint32_t index) {
  struct hb_verify_stream *stream = &verify->stream;
  int64_t sequence = hb_block_sequence(block, index);
  bool live = sequence >= stream->record.frontier;
  struct hb_range range = {sequence, sequence + 1};
  struct hb_slice frame = hb_block_frame(block, index);
  struct hb_event event;
  struct hb_err err;
  if (hb_scan_frame(frame, &event, &err)) {
    if (!verify->held.counted) {
      hb_verify_report(verify, "held", &range, "bundle %" PRIu64 "/%" PRIu32 ": %s", id.commit,
                       id.part, err.message);
    }
  } else {
    if (!verify->held.counted && (event.sequence != sequence || event.frame_size != frame.size)) {
      hb_verify_report(verify, "held", &range,
                       "bundle %" PRIu64 "/%" PRIu32 ": the event there has sequence %" PRId64,
                       id.commit, id.part, event.sequence);
    }
    if ((event.flags & HB_EVENT_HAS_PREVIOUS) && event.previous < sequence - 1) {
      range.start = event.previous + 1;
    }
  }
  if (!live) return;
  if (range.start < stream->record.frontier) range.start = stream->record.frontier;
  add_run(&verify->held, id, range);
  if (verify->held.counted) return;
  stream->held++;
  verify->counts.held_events++;
  verify->counts.done++;
  if (!stream->any_held || sequence > stream->highest_held) stream->highest_held = sequence;
  stream->any_held = true;
}

bool hb_verify_bundle(struct hb_verify *verify, struct hb_slice key, struct hb_slice value,
                      struct hb_bundle_id *out_id, struct hb_block *out) {
  bool first = !verify->held.counted;
  struct hb_err err;
  char text[HB_KEY_TEXT_SIZE];
  if (!hb_key_parse_bundle(key, out_id)) {
    if (first) {
      hb_verify_report(verify, "held", NULL, "row %s: not a key of this family",
                       hb_key_text(key, text));
    }
    return false;
  }
  if (first) verify->counts.bundles++;
  if (hb_block_decode(value, out, &err) == HB_OK) return true;
  if (first) {
    hb_verify_report(verify, "held", NULL, "bundle %" PRIu64 "/%" PRIu32 ": %s", out_id->commit,
                     out_id->part, err.message);
  }
  return false;
}

static void look_at_bundle(struct hb_verify *verify, struct hb_slice key, struct hb_slice value) {
  const struct hb_verify_stream *stream = &verify->stream;
  bool first = !verify->held.counted;
  struct hb_bundle_id id;
  struct hb_block block;
  if (!hb_verify_bundle(verify, key, value, &id, &block)) return;
  if (first && (block.kind != HB_BLOCK_EVENTS || !stream->record.frozen)) {
    hb_verify_report(
        verify, "held", NULL, "bundle %" PRIu64 "/%" PRIu32 ": %s", id.commit, id.part,
        stream->record.frozen ? "not a block of events" : "the stream has no first sequence yet");
  }
  if (!stream->record.frozen) return;
  for (uint32_t i = 0; i < block.count; i++) look_at_entry(verify, id, &block, i);
}

/* ---- one pass */

static void tell_hole(struct hb_verify *verify, int64_t from, int64_t to) {
  struct hb_range range = {from, to};
  hb_verify_report(verify, "held", &range,
                   "no bundle has these sequences, though complete_to is %" PRId64,
                   verify->stream.record.complete_to);
}

static void judge_runs(struct hb_verify *verify) {
  struct hb_verify_held *held = &verify->held;
  if (verify->scan.left_view && verify->options.live) held->unsure = true;
  if (held->unsure) return;
  const struct hb_frontier *record = &verify->stream.record;
  tidy(held);
  const struct hb_verify_run *furthest = NULL;
  for (size_t i = 0; i < held->count; i++) {
    const struct hb_verify_run *run = &held->runs[i];
    if (furthest && run->range.start < furthest->range.end) tell_twice(verify, furthest, run);
    if (!furthest || run->range.end > furthest->range.end) furthest = run;
    int64_t start = run->range.start < record->complete_to ? run->range.start : record->complete_to;
    if (start > held->covered_to) tell_hole(verify, held->covered_to, start);
    if (run->range.start <= record->complete_to && run->range.end > record->complete_to) {
      hb_verify_report(verify, "held", &run->range, "complete_to %" PRId64 " is covered",
                       record->complete_to);
    }
    if (run->range.end > held->covered_to) held->covered_to = run->range.end;
  }
}

static void begin_pass(struct hb_verify *verify, int64_t from) {
  struct hb_verify_held *held = &verify->held;
  if (!held->runs) {
    held->runs_max = verify->held_runs_max ? verify->held_runs_max : RUNS_MAX;
    held->runs = hb_calloc(held->runs_max, sizeof *held->runs);
  }
  held->count = 0;
  held->from = from;
  held->limit = INT64_MAX;
  held->again = false;
  hb_scan_begin(&verify->scan, verify, HB_FAMILY_HELD, verify->stream.id, held->view);
}

static void finish(struct hb_verify *verify) {
  struct hb_verify_held *held = &verify->held;
  const struct hb_verify_stream *stream = &verify->stream;
  const struct hb_frontier *record = &stream->record;
  if (!record->frozen || held->unsure) return;
  if (held->covered_to < record->complete_to) {
    tell_hole(verify, held->covered_to, record->complete_to);
  }
  bool above = stream->any_held && stream->highest_held >= record->complete_to;
  int64_t highest = above ? stream->highest_held : record->complete_to - 1;
  if (record->any && record->highest != highest) {
    hb_verify_report(verify, "held", NULL,
                     "the highest sequence that is there is %" PRId64
                     ", the frontier record says %" PRId64,
                     highest, record->highest);
  }
}

/* True: this pass is over. */
static bool pass(struct hb_verify *verify) {
  for (;;) {
    struct hb_slice key;
    struct hb_slice value;
    struct hb_err err;
    switch (hb_scan_next(&verify->scan, &key, &value, &err)) {
      case HB_SCAN_ROW:
        look_at_bundle(verify, key, value);
        break;
      case HB_SCAN_UNREADABLE:
        if (!verify->held.counted) {
          hb_verify_report(verify, "held", NULL, "bundles that can't be read: %s", err.message);
        }
        break;
      case HB_SCAN_PAUSE:
        return false;
      case HB_SCAN_END:
        return true;
    }
  }
}

bool hb_verify_held(struct hb_verify *verify) {
  struct hb_verify_held *held = &verify->held;
  if (verify->stream.config.mode == HB_MODE_PER_KEY) return hb_verify_keys_held(verify);
  if (!verify->scan.verify) {
    held->covered_to = verify->stream.record.frontier;
    begin_pass(verify, held->covered_to);
  }
  while (pass(verify)) {
    judge_runs(verify);
    held->counted = true;
    if (!held->again) {
      finish(verify);
      return true;
    }
    begin_pass(verify, held->limit);
  }
  return false;
}
