/* Everything in `unprocessed` of a stream, whoever refused it: events refused at ingest, and events
 * that user code gave up. Any thread, beside the writer. */
#ifndef HB_STORAGE_KEPT_H
#define HB_STORAGE_KEPT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/slice.h"
#include "storage/store.h"

/* A reason is an outcome (base/types.h), or this. */
enum { HB_KEPT_ANY = 0, HB_KEPT_FAILED = 64 };

/* Which row: none is ever put twice, or removed before its stream is. */
struct hb_kept_place {
  uint8_t reason;
  int64_t position; /* the sequence; FAILED: the position in the log */
  uint64_t hash;
};

struct hb_kept {
  struct hb_kept_place place;
  uint64_t count; /* how often it was refused, or failed */
  uint64_t first_seen_wall_ms;
  uint64_t last_seen_wall_ms;
  uint32_t peer;               /* who sent the first; 0: unknown, and FAILED */
  uint64_t processor;          /* FAILED: whose code; else 0 */
  struct hb_slice explanation; /* FAILED; lives for the visit, as `frame` */
  struct hb_slice frame;
};
/* False: enough. */
typedef bool hb_kept_visit(void *context, const struct hb_kept *row);
/* By reason, then position, as of one view. `reason` ANY: of all. `after` NULL: from the first,
 * else strictly behind that place. HB_CORRUPT names the row. */
HB_MUST_CHECK enum hb_code hb_kept_each(struct hb_store *store, uint64_t stream, uint8_t reason,
                                        const struct hb_kept_place *after, hb_kept_visit *visit,
                                        void *context, struct hb_err *err);

#endif
