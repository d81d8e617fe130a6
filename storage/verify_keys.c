/* Looks at what a PER_KEY stream knows of its keys: their rows, what is held of them, and whether
 * the log has exactly the events that the rows say were released.
 *
 * Rows and bundles are of one moment with the frontier record. An event in a bundle waits where it
 * is at or above its key's `next`, or below its `first`; it lies in one bundle only (I10). That the
 * log has each event [first, next) of each key once is found by sums, order-free, into buckets of
 * keys: equal sums, the same events (but for one chance in 2^64). Where they differ the bucket is
 * told, not the key.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/endian.h"
#include "base/frame/scan.h"
#include "storage/key_internal.h"
#include "storage/key_record_internal.h"
#include "storage/verify_internal.h"

enum { HASHES_MAX = 1 << 18, SUMMED_BYTES = 16 };

static uint64_t hash_key(struct hb_slice key) {
  return key.size ? XXH3_64bits(key.data, key.size) : 0;
}

static uint64_t hash_event(uint64_t key_hash, int64_t sequence) {
  uint8_t bytes[16];
  hb_put_u64_le(bytes, key_hash);
  hb_put_u64_le(bytes + 8, (uint64_t)sequence);
  return XXH3_64bits(bytes, sizeof bytes);
}

static void add(struct hb_verify_sum *sums, uint64_t key_hash, int64_t sequence) {
  struct hb_verify_sum *sum = &sums[key_hash % HB_VERIFY_BUCKETS];
  sum->hash += hash_event(key_hash, sequence);
  sum->count++;
}

/* ---- the log's part */

void hb_verify_keys_add(struct hb_verify *verify, const struct hb_event *event) {
  struct hb_verify_keys *keys = &verify->keys;
  if (!keys->log_sums) keys->log_sums = hb_calloc(HB_VERIFY_BUCKETS, sizeof *keys->log_sums);
  add(keys->log_sums, hash_key(hb_event_key(event)), event->sequence);
}

void hb_verify_keys_done(struct hb_verify_keys *keys) {
  hb_rocks_iter_destroy(keys->view);
  free(keys->log_sums);
  free(keys->row_sums);
  free(keys->hashes);
  *keys = (struct hb_verify_keys){0};
}

/* ---- rows */

/* NULL: well. */
static const char *check_row(const struct hb_verify_stream *stream,
                             const struct hb_key_record *record) {
  uint64_t released = (uint64_t)record->next - (uint64_t)record->first;
  if (!stream->record.frozen || released > (uint64_t)stream->record.frontier) {
    return "it says that more was released than the log has positions";
  }
  if (released && record->last_position >= stream->record.frontier) {
    return "its last position is at or above the frontier";
  }
  if (!stream->config.first_seen && record->first != stream->config.first_sequence) {
    return "its first sequence is not that of the stream";
  }
  return NULL;
}

static void look_at_row(struct hb_verify *verify, struct hb_slice key, struct hb_slice value) {
  const struct hb_verify_stream *stream = &verify->stream;
  struct hb_verify_keys *keys = &verify->keys;
  uint64_t id;
  struct hb_key_record record = {0};
  struct hb_err err;
  const char *wrong = NULL;
  if (!hb_key_parse_row(key, &id, &verify->key)) {
    wrong = "not a key of this family";
  } else if (stream->config.mode != HB_MODE_PER_KEY) {
    wrong = "the record of a key, though the stream is GLOBAL";
  } else if (hb_record_get_key(value, &record, &err)) {
    wrong = err.message;
  } else {
    wrong = check_row(stream, &record);
  }
  if (wrong) {
    char text[HB_KEY_TEXT_SIZE];
    hb_verify_report(verify, "keys", NULL, "row %s: %s", hb_key_text(key, text), wrong);
    keys->unsure = true;
    return;
  }
  keys->key_hash = hash_key(hb_buf_view(&verify->key));
  keys->at = record.first;
  keys->end = record.next;
}

/* The events that the row says were released; false: the step is over before the last. */
static bool add_released(struct hb_verify *verify) {
  struct hb_verify_keys *keys = &verify->keys;
  for (; keys->at < keys->end; keys->at++) {
    if (verify->budget <= 0) return false;
    verify->budget -= SUMMED_BYTES;
    add(keys->row_sums, keys->key_hash, keys->at);
  }
  return true;
}

static void judge_sums(struct hb_verify *verify) {
  struct hb_verify_keys *keys = &verify->keys;
  const struct hb_verify_stream *stream = &verify->stream;
  bool whole = stream->record.frozen && stream->record.earliest == stream->record.first_sequence;
  bool sound = verify->counts.findings == stream->findings_before;
  if (verify->scan.left_view && verify->options.live) keys->unsure = true;
  if (keys->unsure || !whole || !sound) return;
  static const struct hb_verify_sum none;
  for (size_t i = 0; i < HB_VERIFY_BUCKETS; i++) {
    const struct hb_verify_sum *log = keys->log_sums ? &keys->log_sums[i] : &none;
    const struct hb_verify_sum *rows = &keys->row_sums[i];
    if (log->count == rows->count && log->hash == rows->hash) continue;
    hb_verify_report(verify, "keys", NULL,
                     "of the keys in bucket %zu of %d the rows say that %" PRIu64
                     " events were released, the log has %" PRIu64 "%s",
                     i, HB_VERIFY_BUCKETS, rows->count, log->count,
                     log->count == rows->count ? ", and not the same ones" : "");
  }
}

bool hb_verify_keys(struct hb_verify *verify) {
  struct hb_verify_keys *keys = &verify->keys;
  struct hb_scan *scan = &verify->scan;
  if (!scan->verify) {
    hb_scan_begin(scan, verify, HB_FAMILY_KEYS, verify->stream.id, keys->view);
    keys->row_sums = hb_calloc(HB_VERIFY_BUCKETS, sizeof *keys->row_sums);
  }
  while (add_released(verify)) {
    struct hb_slice key;
    struct hb_slice value;
    struct hb_err err;
    switch (hb_scan_next(scan, &key, &value, &err)) {
      case HB_SCAN_ROW:
        verify->counts.rows++;
        look_at_row(verify, key, value);
        break;
      case HB_SCAN_UNREADABLE:
        hb_verify_report(verify, "keys", NULL, "rows that can't be read: %s", err.message);
        keys->unsure = true;
        break;
      case HB_SCAN_PAUSE:
        return false;
      case HB_SCAN_END:
        if (verify->stream.config.mode == HB_MODE_PER_KEY) judge_sums(verify);
        return true;
    }
  }
  return false;
}

/* ---- what is held */

/* Whether the event is at or above where its key goes on, or below where it begins: then it is
 * still to be kept aside. A row that is none is told elsewhere. */
static bool waits(struct hb_verify *verify, const struct hb_event *event) {
  const struct hb_verify_stream *stream = &verify->stream;
  struct hb_buf row = {0};
  struct hb_key_record record;
  hb_key_row(&row, stream->id, hb_event_key(event));
  hb_rocks_iter_seek(verify->keys.view, hb_buf_view(&row));
  bool found = hb_rocks_iter_valid(verify->keys.view) &&
               hb_slice_equal(hb_rocks_iter_key(verify->keys.view), hb_buf_view(&row)) &&
               hb_record_get_key(hb_rocks_iter_value(verify->keys.view), &record, NULL) == HB_OK;
  hb_buf_done(&row);
  if (found) return event->sequence >= record.next || event->sequence < record.first;
  return stream->config.first_seen || event->sequence >= stream->config.first_sequence;
}

static int compare_hashes(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a;
  uint64_t y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static void sort_hashes(struct hb_verify_keys *keys) {
  if (keys->count > 1) qsort(keys->hashes, keys->count, sizeof *keys->hashes, compare_hashes);
}

/* Where the table is full its upper half is dropped, and comes in another pass. */
static void note_held(struct hb_verify *verify, const struct hb_event *event) {
  struct hb_verify_keys *keys = &verify->keys;
  uint64_t hash = hash_event(hash_key(hb_event_key(event)), event->sequence);
  if (hash < keys->from) return;
  if (hash > keys->limit) {
    keys->again = true;
    return;
  }
  if (keys->count == keys->hashes_max) {
    sort_hashes(keys);
    keys->count /= 2;
    keys->limit = keys->hashes[keys->count - 1];
    keys->again = true;
    if (hash > keys->limit) return;
  }
  keys->hashes[keys->count++] = hash;
}

static void look_at_event(struct hb_verify *verify, struct hb_bundle_id id,
                          const struct hb_block *block, uint32_t index) {
  struct hb_verify_stream *stream = &verify->stream;
  struct hb_slice frame = hb_block_frame(block, index);
  struct hb_event event;
  struct hb_err err;
  bool first = !verify->held.counted;
  enum hb_code code = hb_scan_frame(frame, &event, &err);
  if (code || event.frame_size != frame.size) {
    if (!first) return;
    hb_verify_report(verify, "held", NULL, "bundle %" PRIu64 "/%" PRIu32 ", event %" PRIu32 ": %s",
                     id.commit, id.part, index,
                     code ? err.message : "there is more behind its frame");
    return;
  }
  if (!waits(verify, &event)) return;
  note_held(verify, &event);
  if (!first) return;
  stream->held++;
  verify->counts.held_events++;
  verify->counts.done++;
}

static void look_at_bundle(struct hb_verify *verify, struct hb_slice key, struct hb_slice value) {
  bool first = !verify->held.counted;
  struct hb_bundle_id id;
  struct hb_block block;
  if (!hb_verify_bundle(verify, key, value, &id, &block)) return;
  if (block.kind != HB_BLOCK_EVENTS || block.from != 0 || block.sequences) {
    if (first) {
      hb_verify_report(verify, "held", NULL,
                       "bundle %" PRIu64 "/%" PRIu32
                       ": not a block of events that are numbered from 0",
                       id.commit, id.part);
    }
    return;
  }
  for (uint32_t i = 0; i < block.count; i++) look_at_event(verify, id, &block, i);
}

static void begin_pass(struct hb_verify *verify, uint64_t from) {
  struct hb_verify_keys *keys = &verify->keys;
  if (!keys->hashes) {
    keys->hashes_max = verify->held_runs_max ? verify->held_runs_max : HASHES_MAX;
    keys->hashes = hb_calloc(keys->hashes_max, sizeof *keys->hashes);
  }
  keys->count = 0;
  keys->from = from;
  keys->limit = UINT64_MAX;
  keys->again = false;
  hb_scan_begin(&verify->scan, verify, HB_FAMILY_HELD, verify->stream.id, verify->held.view);
}

static void judge_hashes(struct hb_verify *verify) {
  struct hb_verify_keys *keys = &verify->keys;
  if (verify->scan.left_view && verify->options.live) verify->held.unsure = true;
  if (verify->held.unsure) return;
  sort_hashes(keys);
  uint64_t twice = 0;
  for (size_t i = 1; i < keys->count; i++) twice += keys->hashes[i] == keys->hashes[i - 1];
  if (twice) {
    hb_verify_report(verify, "held", NULL, "%" PRIu64 " events that wait lie in two bundles",
                     twice);
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
        if (verify->held.counted) break;
        hb_verify_report(verify, "held", NULL, "bundles that can't be read: %s", err.message);
        break;
      case HB_SCAN_PAUSE:
        return false;
      case HB_SCAN_END:
        return true;
    }
  }
}

bool hb_verify_keys_held(struct hb_verify *verify) {
  struct hb_verify_keys *keys = &verify->keys;
  if (!verify->scan.verify) begin_pass(verify, 0);
  while (pass(verify)) {
    judge_hashes(verify);
    verify->held.counted = true;
    if (!keys->again) {
      free(keys->hashes);
      keys->hashes = NULL;
      return true;
    }
    begin_pass(verify, keys->limit + 1);
  }
  return false;
}
