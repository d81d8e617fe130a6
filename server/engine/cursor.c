/* Decides where a log block is taken from: the shared tail first, then the reader that is open
 * already if it stands shortly before, then a new one. */
#include "server/engine/cursor_internal.h"

#include <inttypes.h>

#include "storage/processor.h"

/* Blocks that an open reader walks over before a seek is cheaper. */
enum { WALK_MAX = 3 };

void hb_cursor_init(struct hb_cursor *cursor, struct hb_store *store, struct hb_stream *stream,
                    int64_t position) {
  *cursor = (struct hb_cursor){.store = store, .stream = stream, .next = position};
}

static void drop(struct hb_cursor *cursor) {
  hb_bytes_unref(cursor->bytes);
  cursor->bytes = NULL;
}

static void close_reader(struct hb_cursor *cursor) {
  hb_log_reader_close(cursor->reader);
  cursor->reader = NULL;
}

void hb_cursor_done(struct hb_cursor *cursor) {
  drop(cursor);
  close_reader(cursor);
}

static bool contains(const struct hb_cursor *cursor, int64_t position) {
  return cursor->bytes && position >= cursor->block.from && position < cursor->block.to;
}

/* Make `owned_bytes` the block that the cursor is at. */
static enum hb_code take(struct hb_cursor *cursor, struct hb_bytes *owned_bytes,
                         struct hb_err *err) {
  struct hb_block block;
  enum hb_code code = hb_block_decode(hb_bytes_view(owned_bytes), &block, err);
  if (code != HB_OK) {
    hb_bytes_unref(owned_bytes);
    return code;
  }
  drop(cursor);
  cursor->bytes = owned_bytes;
  cursor->block = block;
  return HB_OK;
}

/* One block from disk; *out false at the end of the reader's view. */
static enum hb_code read_one(struct hb_cursor *cursor, bool *out, struct hb_err *err) {
  struct hb_bytes *bytes = NULL;
  enum hb_code code = hb_log_reader_next(cursor->reader, &bytes, err);
  if (code != HB_OK || !bytes) {
    *out = false;
    return code;
  }
  *out = true;
  code = take(cursor, bytes, err);
  if (code == HB_OK) cursor->reader_next = cursor->block.to;
  return code;
}

/* The open reader may be right before. *out false: it isn't, or its view ends. */
static enum hb_code walk(struct hb_cursor *cursor, int64_t position, bool *out,
                         struct hb_err *err) {
  *out = false;
  if (!cursor->reader || position < cursor->reader_next) return HB_OK;
  for (int i = 0; i < WALK_MAX; i++) {
    bool any;
    enum hb_code code = read_one(cursor, &any, err);
    if (code != HB_OK || !any || cursor->block.from > position) return code;
    if (contains(cursor, position)) {
      *out = true;
      return HB_OK;
    }
  }
  return HB_OK;
}

static enum hb_code seek(struct hb_cursor *cursor, int64_t position, bool *out,
                         struct hb_err *err) {
  *out = false;
  close_reader(cursor);
  const struct hb_stream *stream = cursor->stream;
  enum hb_code code = stream->is_results ? hb_results_reader_open(cursor->store, stream->results_of,
                                                                  position, &cursor->reader, err)
                                         : hb_log_reader_open(cursor->store, stream->id, position,
                                                              &cursor->reader, err);
  if (code != HB_OK) return code;
  bool any;
  code = read_one(cursor, &any, err);
  if (code == HB_OK) *out = any && contains(cursor, position);
  return code;
}

/* Where the cursor is already, or in the shared tail. */
static enum hb_code find_in_memory(struct hb_cursor *cursor, int64_t position, bool *out,
                                   struct hb_err *err) {
  *out = contains(cursor, position);
  if (*out) return HB_OK;
  struct hb_bytes *shared = NULL;
  size_t count = 0;
  if (hb_stream_read_tail(cursor->stream, position, &shared, 1, SIZE_MAX, &count) !=
      HB_TAIL_BLOCKS) {
    return HB_OK;
  }
  *out = true;
  return take(cursor, shared, err);
}

enum hb_code hb_cursor_find(struct hb_cursor *cursor, int64_t position, bool *out,
                            struct hb_err *err) {
  enum hb_code code = find_in_memory(cursor, position, out, err);
  if (code == HB_OK && !*out) code = walk(cursor, position, out, err);
  if (code == HB_OK && !*out) code = seek(cursor, position, out, err);
  return code;
}

enum hb_code hb_cursor_find_block(struct hb_cursor *cursor, int64_t from, bool *out,
                                  struct hb_err *err) {
  enum hb_code code = find_in_memory(cursor, from, out, err);
  if (code != HB_OK || *out) return code;
  struct hb_bytes *bytes = NULL;
  code = hb_log_get(cursor->store, cursor->stream->id, from, &bytes, err);
  if (code != HB_OK || !bytes) return code;
  *out = true;
  return take(cursor, bytes, err);
}

enum hb_code hb_cursor_next(struct hb_cursor *cursor, int64_t end, bool *out, struct hb_err *err) {
  if (cursor->next >= end) {
    *out = false;
    return HB_OK;
  }
  bool found;
  enum hb_code code = hb_cursor_find(cursor, cursor->next, &found, err);
  if (code != HB_OK) return code;
  if (!found) return hb_cursor_hole(cursor->stream, cursor->next, err);
  cursor->next = cursor->block.to;
  *out = true;
  return HB_OK;
}

enum hb_code hb_cursor_hole(struct hb_stream *stream, int64_t position, struct hb_err *err) {
  struct hb_stream_status status;
  hb_stream_get_status(stream, &status);
  if (hb_stream_is_deleted(stream)) {
    return hb_err_set(err, HB_NOT_FOUND, "STREAM_NOT_FOUND", "stream '%s' was deleted",
                      stream->name);
  }
  if (position < status.record.earliest) {
    return hb_err_set(err, HB_OUT_OF_RANGE, "BELOW_EARLIEST",
                      "position %" PRId64 " is below earliest %" PRId64, position,
                      status.record.earliest);
  }
  return hb_err_set(err, HB_CORRUPT, NULL,
                    "stream '%s' has no log block with position %" PRId64
                    ", though it is released up to %" PRId64,
                    stream->name, position, status.record.frontier);
}
