/* One stream's log blocks in order, from memory where they are shared, else from disk.
 *
 * For a bounded piece of work on one thread: what it opened on disk is a view that keeps old files
 * alive. Everything that reads the log goes through it. */
#ifndef HB_SERVER_ENGINE_CURSOR_INTERNAL_H
#define HB_SERVER_ENGINE_CURSOR_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "base/frame/block.h"
#include "server/engine/stream_internal.h"
#include "storage/read.h"
#include "storage/store.h"

struct hb_cursor {
  struct hb_store *store;
  struct hb_stream *stream;
  int64_t next;                 /* the next block contains it */
  struct hb_log_reader *reader; /* NULL: not opened */
  int64_t reader_next;          /* where the reader's next block starts, at the latest */
  struct hb_bytes *bytes;       /* of `block`: valid until the next call */
  struct hb_block block;
};

void hb_cursor_init(struct hb_cursor *cursor, struct hb_store *store, struct hb_stream *stream,
                    int64_t position);
void hb_cursor_done(struct hb_cursor *cursor);
/* Go to the block that contains cursor->next, as long as that is below `end`, a published frontier
 * that the caller knew before: cursor->bytes and block are it, cursor->next is past it. *out false:
 * `end` is reached. Errors: hb_cursor_hole's, HB_CORRUPT. */
HB_MUST_CHECK enum hb_code hb_cursor_next(struct hb_cursor *cursor, int64_t end, bool *out,
                                          struct hb_err *err);
/* Look for the block that contains `position`, which may be below the one read last; *out false:
 * no block in the log does. */
HB_MUST_CHECK enum hb_code hb_cursor_find(struct hb_cursor *cursor, int64_t position, bool *out,
                                          struct hb_err *err);
/* Go to the block that starts at `from`, as the index names it; *out false: there is none. */
HB_MUST_CHECK enum hb_code hb_cursor_find_block(struct hb_cursor *cursor, int64_t from, bool *out,
                                                struct hb_err *err);
/* Why a block below the published frontier isn't there: the stream is deleted (HB_NOT_FOUND),
 * `position` is below earliest (HB_OUT_OF_RANGE), or it is damage (HB_CORRUPT). */
enum hb_code hb_cursor_hole(struct hb_stream *stream, int64_t position, struct hb_err *err);

#endif
