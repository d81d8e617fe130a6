/* Looks at what stands above all rows: FORMAT, `meta`, and the rows of `streams`. Decides which
 * streams there are to be looked at, and which numbers the rest is measured with. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "storage/folder_internal.h"
#include "storage/format_file_internal.h"
#include "storage/key_internal.h"
#include "storage/record_internal.h"
#include "storage/verify_internal.h"

bool hb_verify_format(struct hb_verify *verify) {
  const struct hb_store *store = verify->options.store;
  struct hb_format format;
  struct hb_err err;
  if (hb_format_read(store->path, HB_FILE_FORMAT, &format, &err)) {
    hb_verify_report(verify, HB_FILE_FORMAT, NULL, "%s", err.message);
  } else if (memcmp(format.store_id, store->info.store_id, HB_STORE_ID_SIZE) != 0) {
    hb_verify_report(verify, HB_FILE_FORMAT, NULL, "it is of another store than meta");
  }
  return true;
}

/* ---- meta */

static enum hb_code check_number(struct hb_slice value, struct hb_err *err) {
  uint64_t number;
  return hb_record_get_u64(value, &number, err);
}

static enum hb_code check_id(struct hb_slice value, struct hb_err *err) {
  struct hb_slice id;
  enum hb_code code = hb_record_get_bytes(value, &id, err);
  if (code || id.size == HB_STORE_ID_SIZE) return code;
  return hb_err_set(err, HB_CORRUPT, NULL, "%zu bytes, expected %d", id.size, HB_STORE_ID_SIZE);
}

static enum hb_code check_run(struct hb_slice value, struct hb_err *err) {
  struct hb_run_record run;
  return hb_record_get_run(value, &run, err);
}

static const struct {
  const char *name;
  enum hb_code (*check)(struct hb_slice value, struct hb_err *err);
} META[] = {{HB_META_STORE_ID, check_id},
            {HB_META_INCARNATION, check_id},
            {HB_META_RUN, check_run},
            {HB_META_SERVED, check_number},
            {HB_META_NEXT_STREAM, check_number}};

static void look_at_meta(struct hb_verify *verify, struct hb_slice key, struct hb_slice value) {
  for (size_t i = 0; i < sizeof META / sizeof *META; i++) {
    if (!hb_slice_equal(key, hb_slice_text(META[i].name))) continue;
    struct hb_err err;
    if (META[i].check(value, &err)) {
      hb_verify_report(verify, "meta", NULL, "row %s: %s", META[i].name, err.message);
    }
    return;
  }
  hb_verify_report(verify, "meta", NULL, "row %.*s: not known", (int)key.size,
                   (const char *)key.data);
}

bool hb_verify_meta(struct hb_verify *verify) {
  struct hb_scan *scan = &verify->scan;
  if (!scan->verify) hb_scan_begin(scan, verify, HB_FAMILY_META, 0, NULL);
  for (;;) {
    struct hb_slice key;
    struct hb_slice value;
    struct hb_err err;
    switch (hb_scan_next(scan, &key, &value, &err)) {
      case HB_SCAN_ROW:
        verify->counts.rows++;
        look_at_meta(verify, key, value);
        break;
      case HB_SCAN_UNREADABLE:
        hb_verify_report(verify, "meta", NULL, "%s", err.message);
        break;
      case HB_SCAN_PAUSE:
        return false;
      case HB_SCAN_END:
        return true;
    }
  }
}

/* ---- which streams there are */

/* NULL: well. */
static const char *decode_row(uint8_t kind, struct hb_slice value, struct hb_verify_stream *out,
                              struct hb_err *err) {
  uint64_t number = 0;
  struct hb_slice nothing;
  enum hb_code code = HB_OK;
  switch (kind) {
    case HB_KIND_CONFIG:
      code = hb_record_get_config(value, &out->config, err);
      break;
    case HB_KIND_FRONTIER:
      code = hb_record_get_frontier(value, &out->record, err);
      break;
    case HB_KIND_INDEXED_TO:
      code = hb_record_get_u64(value, &number, err);
      if (!code) out->indexed_to = (int64_t)number;
      if (!code) out->has_indexed_to = true;
      break;
    case HB_KIND_DELETING:
      code = hb_record_get_bytes(value, &nothing, err);
      break;
    case HB_KIND_PROCESSOR:
      break;
    default:
      return "a row of a kind that is not known";
  }
  return code ? err->message : NULL;
}

static void add_stream(struct hb_verify *verify, uint64_t id) {
  size_t count = verify->streams_count;
  if (count && verify->streams[count - 1] == id) return;
  hb_reserve((void **)&verify->streams, &verify->streams_cap, count + 1, sizeof id);
  verify->streams[verify->streams_count++] = id;
}

/* A name is one stream's. */
static void check_name(struct hb_verify *verify, uint64_t id, const char *name) {
  uint64_t hash = XXH3_64bits(name, strlen(name));
  for (size_t i = 0; i < verify->names_count; i++) {
    if (verify->names[i].hash != hash || verify->names[i].stream == id) continue;
    bool both =
        hb_verify_is_there(verify, id) && hb_verify_is_there(verify, verify->names[i].stream);
    if (both) hb_verify_report_of(verify, id, "streams", "another stream has its name");
  }
  hb_reserve((void **)&verify->names, &verify->names_cap, verify->names_count + 1,
             sizeof *verify->names);
  verify->names[verify->names_count++] = (struct hb_verify_name){.hash = hash, .stream = id};
}

/* A stream with another row than the mark of its deletion is looked at. */
static void look_at_stream_row(struct hb_verify *verify, struct hb_slice key,
                               struct hb_slice value) {
  uint64_t id;
  char text[HB_KEY_TEXT_SIZE];
  if (!hb_key_parse_stream(key, &id)) {
    hb_verify_report(verify, "streams", NULL, "row %s: not a key of this family",
                     hb_key_text(key, text));
    return;
  }
  struct hb_verify_stream decoded = {0};
  struct hb_err err;
  const char *wrong = decode_row(key.data[8], value, &decoded, &err);
  if (wrong) hb_verify_report_of(verify, id, "streams", wrong);
  if (key.data[8] == HB_KIND_DELETING) return;
  if (key.data[8] == HB_KIND_CONFIG && !wrong) check_name(verify, id, decoded.config.name);
  bool wanted = !verify->options.stream || verify->options.stream == id;
  if (!wanted) return;
  add_stream(verify, id);
  const struct hb_frontier *record = &decoded.record;
  if (key.data[8] == HB_KIND_FRONTIER && !wrong && record->frozen) {
    uint64_t released = (uint64_t)record->frontier - (uint64_t)record->earliest;
    verify->counts.total +=
        released * 2 +
        (record->counters.stored > released ? record->counters.stored - released : 0);
  }
}

/* Ids are given once, in ascending order. */
static void check_next(struct hb_verify *verify) {
  struct hb_bytes *value = NULL;
  uint64_t next = 0;
  enum hb_code code = hb_rocks_get(verify->options.store->engine, HB_FAMILY_META,
                                   hb_slice_text(HB_META_NEXT_STREAM), &value, NULL);
  if (!code && value) code = hb_record_get_u64(hb_bytes_view(value), &next, NULL);
  hb_bytes_unref(value);
  if (code || !verify->streams_count) return; /* told when meta was looked at */
  uint64_t highest = verify->streams[verify->streams_count - 1];
  if (highest >= next) {
    hb_verify_report_of(verify, highest, "streams", "its id was not given by this store");
  }
}

bool hb_verify_streams(struct hb_verify *verify) {
  struct hb_scan *scan = &verify->scan;
  if (!scan->verify) hb_scan_begin(scan, verify, HB_FAMILY_STREAMS, 0, NULL);
  for (;;) {
    struct hb_slice key;
    struct hb_slice value;
    struct hb_err err;
    switch (hb_scan_next(scan, &key, &value, &err)) {
      case HB_SCAN_ROW:
        verify->counts.rows++;
        look_at_stream_row(verify, key, value);
        break;
      case HB_SCAN_UNREADABLE:
        hb_verify_report(verify, "streams", NULL, "rows that can't be read: %s", err.message);
        break;
      case HB_SCAN_PAUSE:
        return false;
      case HB_SCAN_END:
        check_next(verify);
        return true;
    }
  }
}

/* ---- one stream */

/* False: the row is not there, or can't be used (told already). */
static bool load_row(struct hb_verify *verify, enum hb_stream_kind kind,
                     struct hb_verify_stream *out) {
  struct hb_key key = hb_key_streams_row(out->id, kind);
  struct hb_bytes *value = NULL;
  struct hb_err err;
  if (hb_rocks_get(verify->options.store->engine, HB_FAMILY_STREAMS, hb_key_view(&key), &value,
                   &err)) {
    return false;
  }
  bool good = value && !decode_row((uint8_t)kind, hb_bytes_view(value), out, &err);
  hb_bytes_unref(value);
  return good;
}

/* PER_KEY: the numbers are positions, given from 0 up as events are released. */
static void check_positions(struct hb_verify *verify) {
  const struct hb_frontier *record = &verify->stream.record;
  bool well = record->frozen && record->first_sequence == 0 &&
              record->complete_to == record->frontier && record->any == (record->frontier > 0) &&
              (!record->any || record->highest == record->frontier - 1);
  if (!well) {
    hb_verify_report(verify, "streams", NULL,
                     "its numbers can't be those of a PER_KEY stream: first position %" PRId64
                     ", frontier %" PRId64 ", complete_to %" PRId64 ", highest %" PRId64,
                     record->first_sequence, record->frontier, record->complete_to,
                     record->highest);
  }
}

static void check_numbers(struct hb_verify *verify) {
  const struct hb_verify_stream *stream = &verify->stream;
  const struct hb_frontier *record = &stream->record;
  if (stream->has_indexed_to && (!record->frozen || stream->indexed_to > record->frontier)) {
    hb_verify_report(verify, "streams", NULL,
                     "indexed_to %" PRId64 " is above the frontier %" PRId64, stream->indexed_to,
                     record->frontier);
  }
  if (stream->config.mode == HB_MODE_PER_KEY) {
    check_positions(verify);
    return;
  }
  if (record->frozen && !stream->config.first_seen &&
      record->first_sequence != stream->config.first_sequence) {
    hb_verify_report(verify, "streams", NULL,
                     "first_sequence is %" PRId64 " in the frontier record, %" PRId64
                     " in the configuration",
                     record->first_sequence, stream->config.first_sequence);
  }
  if (record->any && record->highest < record->complete_to - 1) {
    hb_verify_report(verify, "streams", NULL, "highest %" PRId64 " is below complete_to %" PRId64,
                     record->highest, record->complete_to);
  }
}

/* Bundles as of the moment of a frontier record: each commit that stores or releases rewrites the
 * record, so a view that was opened between two equal ones is of that moment. (A snapshot of
 * RocksDB's would say it at once; but each that is let go makes it rewrite tables.) */
static bool load_held(struct hb_verify *verify, struct hb_verify_stream *stream) {
  enum { TRIES = 1000 };
  for (int i = 0; i < TRIES; i++) {
    if (!load_row(verify, HB_KIND_FRONTIER, stream)) return false;
    hb_rocks_iter_destroy(verify->held.view);
    verify->held.view = hb_store_iter(verify->options.store, HB_FAMILY_HELD, stream->id);
    if (stream->config.mode == HB_MODE_PER_KEY) {
      hb_rocks_iter_destroy(verify->keys.view);
      verify->keys.view = hb_store_iter(verify->options.store, HB_FAMILY_KEYS, stream->id);
    }
    struct hb_verify_stream after = {.id = stream->id};
    if (!load_row(verify, HB_KIND_FRONTIER, &after)) return false;
    if (after.record.commit == stream->record.commit) return true;
  }
  verify->held.unsure = true;
  return true;
}

void hb_verify_load(struct hb_verify *verify, uint64_t id) {
  struct hb_verify_stream *stream = &verify->stream;
  *stream = (struct hb_verify_stream){.id = id, .findings_before = verify->counts.findings};
  bool has_config = load_row(verify, HB_KIND_CONFIG, stream);
  (void)load_row(verify, HB_KIND_INDEXED_TO, stream); /* never above a later frontier */
  stream->ok = load_held(verify, stream) && has_config;
  if (stream->ok) {
    check_numbers(verify);
    return;
  }
  hb_verify_held_done(&verify->held);
  if (verify->options.live && !hb_verify_is_there(verify, id)) return;
  hb_verify_report(verify, "streams", NULL,
                   "its %s is missing or can't be used: the rest of it was not looked at",
                   has_config ? "frontier record" : "configuration");
}

/* I5: meanwhile nothing went back. And what was counted is what was found. */
void hb_verify_compare_now(struct hb_verify *verify) {
  struct hb_verify_stream *stream = &verify->stream;
  const struct hb_frontier *record = &stream->record;
  if (!stream->ok) return;
  struct hb_verify_stream now = {.id = stream->id};
  if (load_row(verify, HB_KIND_FRONTIER, &now) && record->frozen &&
      (!now.record.frozen || now.record.frontier < record->frontier ||
       now.record.complete_to < record->complete_to)) {
    hb_verify_report(verify, "streams", NULL,
                     "frontier or complete_to went back: %" PRId64 " and %" PRId64
                     ", before %" PRId64 " and %" PRId64,
                     now.record.frontier, now.record.complete_to, record->frontier,
                     record->complete_to);
  }
  bool whole = record->frozen && record->earliest == record->first_sequence;
  bool sound = verify->counts.findings == stream->findings_before;
  if (whole && sound && stream->released + stream->held != record->counters.stored) {
    hb_verify_report(verify, "streams", NULL,
                     "%" PRIu64 " events were stored, but %" PRIu64 " are in the log and %" PRIu64
                     " held",
                     record->counters.stored, stream->released, stream->held);
  }
}
