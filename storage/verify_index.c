/* Compares a stream's index with its log, both ways, without looking anything up: what the log says
 * of its events below indexed_to, and what the index says, is summed up, order-free, by position
 * into buckets. Equal sums: the same entries (but for one chance in 2^64). verify_locate.c finds
 * what is different in buckets that differ. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/endian.h"
#include "storage/key_internal.h"
#include "storage/record_internal.h"
#include "storage/verify_internal.h"

bool hb_verify_is_indexed(const struct hb_verify_stream *stream, int64_t position) {
  return stream->has_indexed_to && position >= stream->record.earliest &&
         position < stream->indexed_to;
}

size_t hb_verify_bucket(const struct hb_verify_stream *stream, int64_t position) {
  uint64_t width = (uint64_t)stream->indexed_to - (uint64_t)stream->record.earliest;
  uint64_t each = width / HB_VERIFY_BUCKETS + 1;
  return (size_t)(((uint64_t)position - (uint64_t)stream->record.earliest) / each);
}

void hb_verify_add(struct hb_verify_sum *sums, const struct hb_verify_stream *stream,
                   const struct hb_index_entry *entry) {
  uint8_t bytes[32];
  hb_put_u64_le(bytes, XXH3_64bits(entry->key.data, entry->key.size));
  hb_put_u64_le(bytes + 8, (uint64_t)entry->position);
  hb_put_u64_le(bytes + 16, (uint64_t)entry->block);
  hb_put_u32_le(bytes + 24, entry->offset);
  hb_put_u32_le(bytes + 28, entry->length);
  struct hb_verify_sum *sum = &sums[hb_verify_bucket(stream, entry->position)];
  sum->hash += XXH3_64bits(bytes, sizeof bytes);
  sum->count++;
}

static bool is_newer(const struct hb_verify_stream *stream, int64_t position) {
  return !stream->has_indexed_to || position >= stream->indexed_to;
}

/* To the next key: a list that grows as fast as it is read would have no end. */
void hb_verify_skip_key(struct hb_verify *verify) {
  struct hb_buf after = {0};
  hb_key_list_after(&after, verify->stream.id, hb_buf_view(&verify->key));
  hb_scan_skip(&verify->scan, hb_buf_view(&after));
  hb_buf_done(&after);
}

/* What is indexed was released and durable before: nothing takes it back. */
static void note_above(struct hb_verify_stream *stream, int64_t position) {
  struct hb_range *range = &stream->above_range;
  if (!stream->above || position < range->start) range->start = position;
  if (!stream->above || position >= range->end) range->end = position + 1;
  stream->above++;
}

static void tell_above(struct hb_verify *verify) {
  const struct hb_verify_stream *stream = &verify->stream;
  if (!stream->above) return;
  hb_verify_report(verify, "lists", &stream->above_range, "%" PRIu64 " entries above the frontier",
                   stream->above);
}

static void look_at_entry(struct hb_verify *verify, struct hb_slice key, struct hb_slice value) {
  struct hb_verify_stream *stream = &verify->stream;
  uint64_t id;
  struct hb_index_entry entry;
  struct hb_err err;
  char text[HB_KEY_TEXT_SIZE];
  verify->counts.index_entries++;
  if (!hb_key_parse_list(key, &id, &verify->key, &entry.position)) {
    hb_verify_report(verify, "lists", NULL, "row %s: not a key of this family",
                     hb_key_text(key, text));
    return;
  }
  entry.key = hb_buf_view(&verify->key);
  struct hb_range range = {entry.position, entry.position + 1};
  if (hb_record_get_index(value, &entry, &err)) {
    hb_verify_report(verify, "lists", &range, "row %s: %s", hb_key_text(key, text), err.message);
    return;
  }
  verify->counts.done++;
  if (verify->options.live && is_newer(stream, entry.position)) hb_verify_skip_key(verify);
  bool above = !stream->record.frozen || entry.position >= stream->record.frontier;
  if (above && !verify->options.live) note_above(stream, entry.position);
  if (hb_verify_is_indexed(stream, entry.position)) {
    hb_verify_add(stream->index_sums, stream, &entry);
  }
}

bool hb_verify_index(struct hb_verify *verify) {
  struct hb_verify_stream *stream = &verify->stream;
  struct hb_scan *scan = &verify->scan;
  if (!scan->verify) {
    hb_scan_begin(scan, verify, HB_FAMILY_LISTS, stream->id, NULL);
    stream->index_sums = hb_calloc(HB_VERIFY_BUCKETS, sizeof *stream->index_sums);
  }
  for (;;) {
    struct hb_slice key;
    struct hb_slice value;
    struct hb_err err;
    switch (hb_scan_next(scan, &key, &value, &err)) {
      case HB_SCAN_ROW:
        look_at_entry(verify, key, value);
        break;
      case HB_SCAN_UNREADABLE:
        hb_verify_report(verify, "lists", NULL, "entries that can't be read: %s", err.message);
        break;
      case HB_SCAN_PAUSE:
        return false;
      case HB_SCAN_END:
        tell_above(verify);
        return true;
    }
  }
}
