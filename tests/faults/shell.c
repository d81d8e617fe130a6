/* Decides the order of a server without threads: submit, decide, write, answer. */
#include "tests/faults/shell.h"

#include <inttypes.h>
#include <string.h>

#include "base/frame/block.h"
#include "storage/keys.h"

/* ---- opening */

/* What the PER_KEY stream holds is mostly on disk only. */
enum { STREAMS = 3, KEYED = 3, KEY_MEMORY = 3000 };

struct stored {
  struct hb_stored_stream streams[4];
  size_t count;
};

static bool take_stream(void *context, const struct hb_stored_stream *stream) {
  struct stored *stored = context;
  if (stored->count < 4) stored->streams[stored->count++] = *stream;
  return true;
}

static struct hb_stream_config config_of(uint64_t stream) {
  struct hb_limits limits = hb_limits_default();
  struct hb_stream_config config = {
      .name = "durable",
      .mode = HB_MODE_GLOBAL,
      .ack = stream == 1 ? HB_ACK_DURABLE : HB_ACK_ASYNC,
      .limits = {.ahead_max = limits.ahead_max,
                 .held_bytes_max = limits.held_bytes_max,
                 .held_events_max = limits.held_events_max,
                 .gaps_max = limits.gaps_max,
                 .event_bytes_max = limits.event_bytes_max},
  };
  if (stream == 2) strcpy(config.name, "async");
  if (stream == KEYED) {
    strcpy(config.name, "keyed");
    config.mode = HB_MODE_PER_KEY;
    config.ack = HB_ACK_DURABLE;
  }
  return config;
}

/* All in one synced write: there are none, or all. */
static enum hb_code make_streams(struct hb_shell *shell, uint64_t commit, struct hb_err *err) {
  for (uint64_t stream = 1; stream <= STREAMS; stream++) {
    struct hb_stream_config config = config_of(stream);
    struct hb_frontier record = hb_ordering_new_record(&config);
    record.commit = commit;
    hb_write_put_config(shell->write, stream, &config);
    hb_write_put_frontier(shell->write, stream, &record);
  }
  hb_write_put_next_stream(shell->write, STREAMS + 1);
  enum hb_code code = hb_store_write(shell->store, shell->write, commit, true, err);
  hb_write_clear(shell->write);
  return code;
}

struct loading {
  struct hb_ordering *core;
  uint64_t stream;
  enum hb_code code;
  struct hb_err *err;
};

static bool load_bundle(void *context, struct hb_bundle_id id, struct hb_slice bytes) {
  struct loading *loading = context;
  struct hb_bytes *block = hb_bytes_copy(bytes);
  loading->code = hb_ordering_recover_bundle(loading->core, id, block, loading->err);
  hb_bytes_unref(block);
  return loading->code == HB_OK;
}

static bool load_gap(void *context, const struct hb_gap *gap) {
  struct loading *loading = context;
  hb_ordering_recover_gap(loading->core, loading->stream, *gap);
  return true;
}

static enum hb_code load_keys(struct hb_shell *shell, uint64_t stream, struct hb_err *err) {
  struct hb_slice key;
  enum hb_code code = HB_OK;
  while (!code && hb_ordering_recover_wants_key(shell->core, stream, &key)) {
    bool found = false;
    struct hb_key_record record;
    code = hb_key_record_read(shell->store, stream, key, &found, &record, err);
    if (code) break;
    code = hb_ordering_recover_key(shell->core, stream, key, found ? &record : NULL, err);
  }
  return code;
}

static enum hb_code check_log(struct hb_shell *shell, const struct hb_stored_stream *stored,
                              struct hb_err *err) {
  bool any = false;
  struct hb_range last = {0};
  enum hb_code code = hb_log_last(shell->store, stored->stream, &any, &last, err);
  int64_t end = any ? last.end : stored->record.first_sequence;
  if (code || end == stored->record.frontier) return code;
  return hb_err_set(err, HB_CORRUPT, NULL,
                    "stream %" PRIu64 ": its log ends at %" PRId64 ", its frontier is %" PRId64,
                    stored->stream, end, stored->record.frontier);
}

static enum hb_code recover(struct hb_shell *shell, const struct hb_stored_stream *stored,
                            struct hb_err *err) {
  struct loading loading = {.core = shell->core, .stream = stored->stream, .err = err};
  enum hb_code code = check_log(shell, stored, err);
  if (!code) {
    code =
        hb_ordering_add_stream(shell->core, stored->stream, &stored->config, &stored->record, err);
  }
  if (!code) code = hb_bundle_each(shell->store, stored->stream, NULL, load_bundle, &loading, err);
  if (!code) code = loading.code;
  if (!code) code = load_keys(shell, stored->stream, err);
  if (!code) code = hb_gap_each(shell->store, stored->stream, load_gap, &loading, err);
  if (!code) code = hb_ordering_recover_end(shell->core, stored->stream, shell->now, err);
  return code;
}

/* Small, so that a short run has many blocks, bundles, and releases that go on. */
static struct hb_ordering *make_core(uint64_t last_commit) {
  struct hb_ordering_options options = {.limits = hb_limits_default(),
                                        .last_commit = last_commit,
                                        .release_stream_bytes = 16 << 10,
                                        .release_bytes = 16 << 10,
                                        .block_bytes = 4 << 10,
                                        .bundle_bytes = 4 << 10};
  options.limits.key_held_memory_max = KEY_MEMORY;
  return hb_ordering_create(&options);
}

static enum hb_code open_streams(struct hb_shell *shell, struct hb_err *err) {
  struct stored stored = {0};
  uint64_t last = hb_store_info(shell->store)->last_commit;
  enum hb_code code = hb_stream_each(shell->store, take_stream, &stored, err);
  if (!code && !stored.count) {
    code = make_streams(shell, ++last, err);
    if (!code) code = hb_stream_each(shell->store, take_stream, &stored, err);
  }
  if (!code && stored.count != STREAMS) {
    code = hb_err_set(err, HB_CORRUPT, NULL, "%zu streams", stored.count);
  }
  shell->core = make_core(last);
  for (size_t i = 0; !code && i < stored.count; i++) {
    code = recover(shell, &stored.streams[i], err);
  }
  return code;
}

enum hb_code hb_shell_open(struct hb_shell *shell, const char *path, struct hb_err *err) {
  *shell = (struct hb_shell){.now = {.served_ms = 1000, .wall_ms = 1700000000000}};
  /* RocksDB flushes and removes logs all the time with so little room. */
  struct hb_store_options options = {
      .path = path, .wal_bytes_max = 96 << 10, .write_buffer_max = 256 << 10};
  enum hb_code code = hb_store_open(&options, &shell->store, err);
  if (code) return code;
  shell->write = hb_write_create(shell->store);
  code = open_streams(shell, err);
  if (code) {
    hb_ordering_destroy(shell->core);
    hb_write_destroy(shell->write);
    hb_store_close(shell->store);
  }
  return code;
}

void hb_shell_close(struct hb_shell *shell) {
  hb_ordering_destroy(shell->core);
  hb_write_destroy(shell->write);
  hb_store_close(shell->store);
}

/* ---- NEED: what is stored at a sequence */

static bool find_in(const struct hb_bytes *bytes, int64_t sequence, struct hb_event *out) {
  struct hb_block block;
  if (hb_block_decode(hb_bytes_view(bytes), &block, NULL)) return false;
  uint32_t at = hb_block_find(&block, sequence);
  if (at == block.count || hb_block_sequence(&block, at) != sequence) return false;
  return hb_scan_frame(hb_block_frame(&block, at), out, NULL) == HB_OK;
}

static enum hb_code read_place(struct hb_shell *shell, uint64_t stream,
                               const struct hb_need_item *item, struct hb_bytes **out,
                               struct hb_err *err) {
  if (item->place == HB_PLACE_BUNDLE) {
    struct hb_bundle_id id = {stream, item->commit, item->part};
    enum hb_code code = hb_bundle_read(shell->store, id, out, err);
    if (code || *out) return code;
  }
  struct hb_log_reader *reader = NULL;
  enum hb_code code = hb_log_reader_open(shell->store, stream, item->sequence, &reader, err);
  if (code) return code;
  code = hb_log_reader_next(reader, out, err);
  hb_log_reader_close(reader);
  return code;
}

static enum hb_code answer_item(struct hb_shell *shell, const struct hb_batch *batch,
                                struct hb_need_item *item, struct hb_err *err) {
  struct hb_bytes *bytes = NULL;
  struct hb_event stored;
  enum hb_code code = read_place(shell, batch->stream, item, &bytes, err);
  if (code) return code;
  if (!bytes || !find_in(bytes, item->sequence, &stored)) {
    item->verdict = HB_VERDICT_MOVED;
  } else {
    bool same = hb_event_same(&stored, &batch->events[item->index]);
    item->verdict = same ? HB_VERDICT_EQUAL : HB_VERDICT_DIFFERENT;
  }
  hb_bytes_unref(bytes);
  return HB_OK;
}

/* The event of that key and sequence, from where its record says that it may be. */
static enum hb_code answer_content(struct hb_shell *shell, uint64_t stream, struct hb_need_key *ask,
                                   const struct hb_event *event, struct hb_err *err) {
  int64_t low;
  int64_t high;
  struct hb_log_reader *reader = NULL;
  struct hb_bytes *bytes = NULL;
  hb_key_record_bounds(&ask->record, event->sequence, &low, &high);
  enum hb_code code = hb_log_reader_open(shell->store, stream, low, &reader, err);
  while (!code && ask->verdict == HB_VERDICT_NONE) {
    struct hb_block block;
    code = hb_log_reader_next(reader, &bytes, err);
    if (!code && (!bytes || hb_block_decode(hb_bytes_view(bytes), &block, NULL))) {
      code = hb_err_set(err, HB_CORRUPT, NULL, "a released event of a key is not in the log");
    }
    for (uint32_t i = 0; !code && i < block.count; i++) {
      struct hb_event stored;
      if (hb_scan_frame(hb_block_frame(&block, i), &stored, NULL) ||
          stored.sequence != event->sequence ||
          !hb_slice_equal(hb_event_key(&stored), hb_event_key(event))) {
        continue;
      }
      ask->verdict = hb_event_same(&stored, event) ? HB_VERDICT_EQUAL : HB_VERDICT_DIFFERENT;
    }
    hb_bytes_unref(bytes);
    bytes = NULL;
  }
  hb_log_reader_close(reader);
  return code;
}

static enum hb_code answer_held(struct hb_shell *shell, struct hb_need_key *ask,
                                const struct hb_event *event, struct hb_err *err) {
  struct hb_bytes *bytes = NULL;
  struct hb_block block;
  struct hb_event held;
  enum hb_code code = hb_bundle_read(shell->store, ask->bundle, &bytes, err);
  ask->verdict = HB_VERDICT_MOVED;
  if (!code && bytes) {
    if (hb_block_decode(hb_bytes_view(bytes), &block, NULL) || ask->at >= block.count ||
        hb_scan_frame(hb_block_frame(&block, ask->at), &held, NULL)) {
      code = hb_err_set(err, HB_CORRUPT, NULL, "a held event of a key is not in its bundle");
    } else {
      ask->verdict = hb_event_same(&held, event) ? HB_VERDICT_EQUAL : HB_VERDICT_DIFFERENT;
    }
  }
  hb_bytes_unref(bytes);
  return code;
}

static enum hb_code answer_key(struct hb_shell *shell, const struct hb_batch *batch,
                               struct hb_need_key *ask, struct hb_err *err) {
  const struct hb_event *event = &batch->events[ask->index];
  if (ask->place == HB_PLACE_KEY_CONTENT) {
    return answer_content(shell, batch->stream, ask, event, err);
  }
  if (ask->place == HB_PLACE_KEY_HELD) return answer_held(shell, ask, event, err);
  return hb_key_record_read(shell->store, batch->stream, hb_event_key(event), &ask->found,
                            &ask->record, err);
}

static enum hb_code answer_needs(struct hb_shell *shell, bool *worked, struct hb_err *err) {
  enum hb_code code = HB_OK;
  struct hb_need *need;
  while (!code && (need = hb_ordering_take_need(shell->core))) {
    for (size_t i = 0; !code && i < need->count; i++) {
      code = answer_item(shell, need->batch, &need->items[i], err);
    }
    for (size_t i = 0; !code && i < need->keys_count; i++) {
      code = answer_key(shell, need->batch, &need->keys[i], err);
    }
    if (code && err) need->error = *err;
    hb_ordering_answer_need(shell->core, need);
    *worked = true;
  }
  return code;
}

static enum hb_code fetch(struct hb_shell *shell, bool *worked, struct hb_err *err) {
  struct hb_bundle_id id;
  while (hb_ordering_take_fetch(shell->core, &id)) {
    struct hb_bytes *block = NULL;
    enum hb_code code = hb_bundle_read(shell->store, id, &block, err);
    hb_ordering_fetched(shell->core, id, block);
    hb_bytes_unref(block);
    if (code) return code;
    *worked = true;
  }
  return HB_OK;
}

/* ---- a commit */

static void fill(struct hb_write *write, const struct hb_commit *commit) {
  for (size_t i = 0; i < commit->blocks_count; i++) {
    const struct hb_put_block *put = &commit->blocks[i];
    hb_write_put_block(write, put->stream, put->from, hb_bytes_view(put->block));
  }
  for (size_t i = 0; i < commit->bundles_count; i++) {
    hb_write_put_bundle(write, commit->bundles[i].id, hb_bytes_view(commit->bundles[i].block));
  }
  for (size_t i = 0; i < commit->drained_count; i++) {
    hb_write_delete_bundle(write, commit->drained[i]);
  }
  for (size_t i = 0; i < commit->keys_count; i++) {
    hb_write_put_key(write, commit->keys[i].stream, commit->keys[i].key, &commit->keys[i].record);
  }
  for (size_t i = 0; i < commit->frontiers_count; i++) {
    hb_write_put_frontier(write, commit->frontiers[i].stream, &commit->frontiers[i].record);
  }
  for (size_t i = 0; i < commit->gone_gaps_count; i++) {
    hb_write_delete_gap(write, commit->gone_gaps[i].stream, commit->gone_gaps[i].start);
  }
  for (size_t i = 0; i < commit->gaps_count; i++) {
    hb_write_put_gap(write, commit->gaps[i].stream, &commit->gaps[i].gap);
  }
}

static enum hb_code commit(struct hb_shell *shell, const struct hb_commit *commit,
                           struct hb_err *err) {
  if (!hb_commit_is_empty(commit)) {
    fill(shell->write, commit);
    enum hb_code code =
        hb_store_write(shell->store, shell->write, commit->number, commit->durable, err);
    hb_write_clear(shell->write);
    if (code) {
      hb_ordering_fail(shell->core);
      return code;
    }
    shell->unsynced = !commit->durable;
  }
  hb_ordering_committed(shell->core, commit);
  return HB_OK;
}

enum hb_code hb_shell_step(struct hb_shell *shell, bool *out_worked, struct hb_err *err) {
  *out_worked = false;
  shell->now.served_ms += 100;
  enum hb_code code = answer_needs(shell, out_worked, err);
  if (!code) code = fetch(shell, out_worked, err);
  if (code) {
    hb_ordering_fail(shell->core);
    return code;
  }
  if (!hb_ordering_has_work(shell->core)) return HB_OK;
  const struct hb_commit *decided = hb_ordering_decide(shell->core, shell->now);
  if (!decided) return HB_OK;
  *out_worked = true;
  return commit(shell, decided, err);
}

enum hb_code hb_shell_sync(struct hb_shell *shell, struct hb_err *err) {
  if (!shell->unsynced) return HB_OK;
  enum hb_code code = hb_store_sync(shell->store, err);
  if (code) hb_ordering_fail(shell->core);
  if (!code) shell->unsynced = false;
  return code;
}
