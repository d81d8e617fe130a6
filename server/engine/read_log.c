/* Decides which log blocks answer a position: from the one that contains it up to the frontier
 * that was published before the read, without a hole (I4). Also: from which position a time is.
 */
#include "server/engine/cursor_internal.h"
#include "server/engine/read_internal.h"
#include "storage/processor.h"

/* Up to `end`. What is before a hole is given; the next read, which starts there, tells it. */
static enum hb_code gather(struct hb_read *read, struct hb_cursor *cursor, int64_t end,
                           struct hb_err *err) {
  size_t bytes = 0;
  while (read->blocks_count < HB_READ_BLOCKS_MAX && bytes < read->bytes_max) {
    bool more;
    struct hb_err own = {0};
    enum hb_code code = hb_cursor_next(cursor, end, &more, &own);
    if (code != HB_OK && read->blocks_count == 0) {
      *err = own;
      return code;
    }
    if (code != HB_OK || !more) break;
    if (read->blocks_count > 0 && cursor->bytes->size > read->bytes_max - bytes) break;
    read->blocks[read->blocks_count++] = hb_bytes_ref(cursor->bytes);
    bytes += cursor->bytes->size;
  }
  return HB_OK;
}

enum hb_code hb_read_log(struct hb_engine *engine, struct hb_read *read, struct hb_err *err) {
  struct hb_stream_status status;
  hb_stream_get_status(read->stream, &status);
  if (!status.record.frozen || read->position >= status.record.frontier) return HB_OK;
  if (read->position < status.record.earliest) {
    return hb_cursor_hole(read->stream, read->position, err);
  }
  if (read->bytes_max == 0) read->bytes_max = 1;
  struct hb_cursor cursor;
  hb_cursor_init(&cursor, engine->store, read->stream, read->position);
  enum hb_code code = gather(read, &cursor, status.record.frontier, err);
  hb_cursor_done(&cursor);
  return code;
}

enum hb_code hb_read_time(struct hb_engine *engine, struct hb_read *read, struct hb_err *err) {
  struct hb_stream_status status;
  hb_stream_get_status(read->stream, &status);
  if (!read->time.present) {
    return hb_err_set(err, HB_INVALID, "EVENT_TIME_INVALID", "event_time is absent");
  }
  if (!status.record.frozen) {
    return hb_err_set(err, HB_PRECONDITION, "NO_FIRST_SEQUENCE",
                      "stream '%s' has no first event yet, so no position either",
                      read->stream->name);
  }
  if (read->stream->is_results) {
    return hb_results_find_time(engine->store, read->stream->results_of, read->time,
                                status.record.frontier, &read->found_position, err);
  }
  return hb_log_find_time(engine->store, read->stream->id, read->time, status.record.earliest,
                          status.record.frontier, &read->found_position, err);
}
