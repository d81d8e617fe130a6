/* Looks at the families of small rows, at those that this version does not read, and for rows of
 * streams that nobody knows. */
#include <inttypes.h>
#include <xxhash.h>

#include "base/endian.h"
#include "base/frame/scan.h"
#include "storage/key_internal.h"
#include "storage/record_internal.h"
#include "storage/record_processor_internal.h"
#include "storage/verify_internal.h"

bool hb_verify_each_row(struct hb_verify *verify, hb_verify_look *look_at) {
  struct hb_scan *scan = &verify->scan;
  const char *family = hb_family_name(scan->family);
  for (;;) {
    struct hb_slice key;
    struct hb_slice value;
    struct hb_err err;
    char text[HB_KEY_TEXT_SIZE];
    const char *wrong = NULL;
    switch (hb_scan_next(scan, &key, &value, &err)) {
      case HB_SCAN_ROW:
        verify->counts.rows++;
        wrong = look_at(verify, key, value, &err);
        if (!wrong) break;
        hb_verify_report(verify, family, NULL, "row %s: %s", hb_key_text(key, text), wrong);
        break;
      case HB_SCAN_UNREADABLE:
        hb_verify_report(verify, family, NULL, "rows that can't be read: %s", err.message);
        break;
      case HB_SCAN_PAUSE:
        return false;
      case HB_SCAN_END:
        return true;
    }
  }
}

static const char bad_key[] = "not a key of this family";

/* ---- gaps: one that is none any more is no damage */

static const char *look_at_gap(struct hb_verify *verify, struct hb_slice key, struct hb_slice value,
                               struct hb_err *err) {
  (void)verify;
  uint64_t stream;
  struct hb_gap gap;
  if (!hb_key_parse_position(key, &stream, &gap.start)) return bad_key;
  return hb_record_get_gap(value, &gap, err) ? err->message : NULL;
}

bool hb_verify_gaps(struct hb_verify *verify) {
  if (!verify->scan.verify) {
    hb_scan_begin(&verify->scan, verify, HB_FAMILY_GAPS, verify->stream.id, NULL);
  }
  return hb_verify_each_row(verify, look_at_gap);
}

/* ---- unprocessed */

/* What a processor gave up. An event's frame, or none where it was a timer or an end. */
static const char *look_at_failure(struct hb_slice key, struct hb_slice value, struct hb_err *err) {
  struct hb_unprocessed row;
  struct hb_failure_row parts;
  uint64_t processor;
  struct hb_event event;
  if (hb_record_get_unprocessed(value, &row, err)) return err->message;
  if (hb_record_get_failure(row.frame, &processor, &parts, err)) return err->message;
  uint64_t hash = XXH3_64bits_withSeed(parts.frame.data, parts.frame.size, processor);
  if (hash != hb_get_u64_be(key.data + key.size - 8)) return "its event has another content";
  if (parts.frame.size == 0) return NULL;
  if (hb_scan_frame(parts.frame, &event, err)) return err->message;
  return event.frame_size == parts.frame.size ? NULL : "there is more behind its frame";
}

static const char *look_at_kept(struct hb_verify *verify, struct hb_slice key,
                                struct hb_slice value, struct hb_err *err) {
  (void)verify;
  uint64_t stream;
  struct hb_unprocessed row;
  struct hb_event event;
  if (hb_key_is_failure(key)) return look_at_failure(key, value, err);
  if (!hb_key_parse_unprocessed(key, &stream, &row.outcome, &row.sequence, &row.content_hash)) {
    return bad_key;
  }
  if (hb_record_get_unprocessed(value, &row, err)) return err->message;
  if (hb_scan_frame(row.frame, &event, err)) return err->message;
  if (event.frame_size != row.frame.size) return "there is more behind its frame";
  if (event.sequence != row.sequence) return "its event has another sequence";
  if (hb_event_content_hash(&event) != row.content_hash) return "its event has another content";
  return NULL;
}

bool hb_verify_kept(struct hb_verify *verify) {
  if (!verify->scan.verify) {
    hb_scan_begin(&verify->scan, verify, HB_FAMILY_UNPROCESSED, verify->stream.id, NULL);
  }
  return hb_verify_each_row(verify, look_at_kept);
}

/* ---- what belongs to no stream */

static const char *look_at_peer(struct hb_verify *verify, struct hb_slice key,
                                struct hb_slice value, struct hb_err *err) {
  (void)verify;
  uint32_t peer;
  struct hb_slice text;
  if (!hb_key_parse_peer(key, &peer)) return bad_key;
  return hb_record_get_bytes(value, &text, err) ? err->message : NULL;
}

bool hb_verify_peers(struct hb_verify *verify) {
  if (!verify->scan.verify) hb_scan_begin(&verify->scan, verify, HB_FAMILY_PEERS, 0, NULL);
  return hb_verify_each_row(verify, look_at_peer);
}

static bool is_unused(enum hb_family family) {
  switch (family) {
    case HB_FAMILY_CURSORS:
    case HB_FAMILY_VOIDS:
      return true;
    case HB_FAMILY_META:
    case HB_FAMILY_STREAMS:
    case HB_FAMILY_HELD:
    case HB_FAMILY_LOG:
    case HB_FAMILY_LISTS:
    case HB_FAMILY_KEYS:
    case HB_FAMILY_STATES:
    case HB_FAMILY_TIMERS:
    case HB_FAMILY_RESULTS:
    case HB_FAMILY_GAPS:
    case HB_FAMILY_UNPROCESSED:
    case HB_FAMILY_PEERS:
    case HB_FAMILY_COUNT:
      break;
  }
  return false;
}

static const char *read_only(struct hb_verify *verify, struct hb_slice key, struct hb_slice value,
                             struct hb_err *err) {
  (void)verify;
  (void)value;
  (void)err;
  uint64_t stream;
  return hb_key_parse_stream(key, &stream) ? NULL : bad_key;
}

/* That they can be read is all that can be said. */
bool hb_verify_unused(struct hb_verify *verify) {
  for (; verify->family < HB_FAMILY_COUNT; verify->family++) {
    if (!is_unused(verify->family)) continue;
    if (!verify->scan.verify) hb_scan_begin(&verify->scan, verify, verify->family, 0, NULL);
    if (!hb_verify_each_row(verify, read_only)) return false;
    hb_scan_end(&verify->scan);
  }
  verify->family = (enum hb_family)0;
  return true;
}

/* ---- rows of streams that nobody knows */

/* Now, and not when the walk over the family began: a deletion may have ended meanwhile. */
static bool has_rows(struct hb_verify *verify, enum hb_family family, uint64_t stream) {
  struct hb_rocks_iter *iter = hb_store_iter(verify->options.store, family, stream);
  hb_rocks_iter_first(iter);
  bool any = hb_rocks_iter_valid(iter);
  hb_rocks_iter_destroy(iter);
  return any;
}

/* From stream to stream: a family has few streams, whatever its rows. */
static void look_for_orphans(struct hb_verify *verify, enum hb_family family) {
  struct hb_slice none = {0};
  struct hb_rocks_iter *iter =
      hb_rocks_iter_create(verify->options.store->engine, family, none, none);
  hb_rocks_iter_first(iter);
  while (hb_rocks_iter_valid(iter)) {
    uint64_t stream;
    if (!hb_key_parse_stream(hb_rocks_iter_key(iter), &stream)) break; /* told already */
    if (!hb_verify_is_known(verify, stream) && has_rows(verify, family, stream)) {
      hb_verify_report_of(verify, stream, hb_family_name(family),
                          "rows of a stream that is not known");
    }
    struct hb_key end = hb_key_stream_end(stream);
    hb_rocks_iter_seek(iter, hb_key_view(&end));
    verify->budget -= 256;
  }
  hb_rocks_iter_destroy(iter); /* what it could not read was told already */
}

bool hb_verify_orphans(struct hb_verify *verify) {
  for (; verify->family < HB_FAMILY_COUNT; verify->family++) {
    if (!hb_family_is_per_stream(verify->family)) continue;
    if (verify->budget <= 0) return false;
    look_for_orphans(verify, verify->family);
  }
  return true;
}
