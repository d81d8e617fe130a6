/* What the rooms of verification share. verify.c has the order in which they are entered. */
#ifndef HB_STORAGE_VERIFY_INTERNAL_H
#define HB_STORAGE_VERIFY_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/frame/block.h"
#include "base/frame/scan.h"
#include "base/slice.h"
#include "storage/engine_internal.h"
#include "storage/index.h"
#include "storage/store_internal.h"
#include "storage/verify.h"

/* ---- verify_scan.c: the rows of a range, over steps, and over places that can't be read */

struct hb_verify;

enum hb_scan_result {
  HB_SCAN_ROW,
  HB_SCAN_UNREADABLE, /* rows from *out_key on */
  HB_SCAN_PAUSE,      /* the step is over: call again in the next one */
  HB_SCAN_END
};

/* Zeroed = not begun. */
struct hb_scan {
  struct hb_verify *verify; /* borrowed */
  enum hb_family family;
  struct hb_rocks_iter *view; /* borrowed; NULL = each step sees what is there then */
  bool left_view;             /* damage was stepped over with other iterators */
  struct hb_buf next;         /* the first row not looked at yet */
  struct hb_buf end;
  struct hb_buf from; /* of what could not be read */
  struct hb_rocks_iter *iter;
  bool at_row; /* the iterator is at the row that was given last */
  bool over;   /* nothing more can be read */
};

/* The rows of one stream, or with stream 0 the whole family. */
void hb_scan_begin(struct hb_scan *scan, struct hb_verify *verify, enum hb_family family,
                   uint64_t stream, struct hb_rocks_iter *view);
/* Slices live until the next call. UNREADABLE: `err` says why, *out_value is the key of the next
 * row that can be read, or the end. */
enum hb_scan_result hb_scan_next(struct hb_scan *scan, struct hb_slice *out_key,
                                 struct hb_slice *out_value, struct hb_err *err);
/* The next row is the first at or above `key`, which is above the one given last. */
void hb_scan_skip(struct hb_scan *scan, struct hb_slice key);
void hb_scan_end(struct hb_scan *scan);

/* ---- the pass over one stream */

enum { HB_VERIFY_BUCKETS = 1024, HB_VERIFY_FINDINGS_MAX = 1000 };

/* Sums over entries, order-free: equal where log and index say the same of the positions. */
struct hb_verify_sum {
  uint64_t hash;
  uint64_t count;
};

struct hb_verify_stream {
  uint64_t id;
  bool ok; /* its rows in `streams` can be used */
  bool has_indexed_to;
  int64_t indexed_to;
  struct hb_stream_config config;
  struct hb_frontier record;

  uint64_t findings;        /* of this stream and the current family */
  uint64_t findings_before; /* of the whole verification, when the stream began */

  /* log */
  bool log_began; /* a block at or above earliest was seen */
  int64_t next;   /* where the next block must start */
  bool pending;   /* a block that is none: it ends where the next begins */
  int64_t pending_from;
  char pending_text[HB_ERR_MESSAGE_SIZE];
  bool time_known; /* max_time is that of the block before */
  struct hb_time max_time;
  uint64_t released; /* events at or above earliest */

  /* held */
  uint64_t held;
  bool any_held;
  int64_t highest_held;

  /* index */
  struct hb_verify_sum *log_sums; /* owned; HB_VERIFY_BUCKETS of each */
  struct hb_verify_sum *index_sums;
  uint64_t above; /* entries above the frontier */
  struct hb_range above_range;
};

/* One piece of a bundle's coverage. */
struct hb_verify_run {
  struct hb_range range;
  uint64_t commit;
  uint32_t part;
};

struct hb_verify_held {
  struct hb_verify_run *runs; /* owned; the lowest ones at or above `from` */
  size_t count;
  size_t runs_max;
  int64_t from;               /* this pass looks at sequences in [from, limit) */
  int64_t limit;              /* INT64_MAX = no limit */
  int64_t covered_to;         /* the end of what was found so far */
  bool again;                 /* there is more above `limit` */
  bool counted;               /* the first pass is over: only coverage is left to look at */
  struct hb_rocks_iter *view; /* owned; as of the moment of the frontier record */
  bool unsure;                /* it could not be kept to: coverage can't be judged */
};

/* PER_KEY streams. */
struct hb_verify_keys {
  struct hb_rocks_iter *view;     /* owned; rows as of the moment of the frontier record */
  struct hb_verify_sum *log_sums; /* owned; HB_VERIFY_BUCKETS of each */
  struct hb_verify_sum *row_sums;
  uint64_t key_hash; /* of the row whose events are being added */
  int64_t at;        /* the next of them */
  int64_t end;
  bool unsure;      /* rows are missing: sums can't be judged */
  uint64_t *hashes; /* owned; of held events, in this pass those in [from, limit] */
  size_t count;
  size_t hashes_max;
  uint64_t from;
  uint64_t limit;
  bool again; /* there are more above `limit` */
};

struct hb_verify_locate {
  bool begun;
  bool in_log; /* from log to index; then the other way */
  size_t bucket;
  int64_t position;             /* to go on at, in the bucket */
  struct hb_log_reader *reader; /* at hand for the other way; NULL */
  struct hb_bytes *block_bytes; /* NULL = none yet */
  struct hb_block block;
  const char *run; /* what is wrong with the entries of `range`; NULL = nothing */
  struct hb_range range;
};

/* One processor of the stream, as of when its rows in `streams` were read. */
struct hb_verify_processor {
  uint64_t id;
  bool has_config;
  bool has_place;
  bool is_statuses; /* the number after a processor's: not in `streams` itself */
  int64_t results;  /* how many the place tells; negative: it can't be read */
  int64_t next;     /* where the next block of results must start */
  bool broken;      /* the block before is none: where it ends is not known */
};

struct hb_verify_processors {
  struct hb_verify_processor *items; /* owned */
  size_t count;
  size_t cap;
  bool any_unknown; /* the one met last in this family that is not among them */
  uint64_t unknown;
  struct hb_buf key; /* a user's key */
};

struct hb_verify_name {
  uint64_t hash;
  uint64_t stream;
};

enum hb_verify_phase {
  HB_VERIFY_FORMAT,
  HB_VERIFY_META,
  HB_VERIFY_STREAMS,
  HB_VERIFY_STREAM, /* the next stream */
  HB_VERIFY_HELD,
  HB_VERIFY_LOG,
  HB_VERIFY_KEYS,
  HB_VERIFY_INDEX,
  HB_VERIFY_LOCATE,
  HB_VERIFY_GAPS,
  HB_VERIFY_KEPT, /* unprocessed */
  HB_VERIFY_PROCESSORS,
  HB_VERIFY_RESULTS,
  HB_VERIFY_STATES,
  HB_VERIFY_TIMERS,
  HB_VERIFY_STREAM_END,
  HB_VERIFY_UNUSED, /* families that this version does not read */
  HB_VERIFY_PEERS,
  HB_VERIFY_ORPHANS,
  HB_VERIFY_DONE
};

struct hb_verify {
  struct hb_verify_options options;
  struct hb_verify_counts counts;
  enum hb_verify_phase phase;
  int64_t budget;       /* bytes left in this step */
  size_t held_runs_max; /* 0 = 2^18; tests make it small */
  struct hb_scan scan;
  enum hb_family family; /* UNUSED, ORPHANS: the one being looked at */

  uint64_t *streams; /* owned; ascending: those with rows in `streams` that are to be looked at */
  size_t streams_count;
  size_t streams_cap;
  struct hb_verify_name *names; /* owned; those seen */
  size_t names_count;
  size_t names_cap;
  size_t at; /* index of the current stream, or of the next */

  struct hb_verify_stream stream;
  struct hb_verify_held held;
  struct hb_verify_keys keys;
  struct hb_verify_locate locate;
  struct hb_verify_processors processors; /* of the stream */
  struct hb_buf key;                      /* a user's key */
};

/* A finding of the current stream (`stream.id`; 0 outside of the passes). */
void hb_verify_report(struct hb_verify *verify, const char *family, const struct hb_range *range,
                      const char *format, ...) __attribute__((format(printf, 4, 5)));
/* One of a stream that is not the current one; its name is not known. */
void hb_verify_report_of(struct hb_verify *verify, uint64_t stream, const char *family,
                         const char *text);
/* Whether the stream still has its configuration: what is missing of one that was deleted is no
 * damage. */
bool hb_verify_is_there(struct hb_verify *verify, uint64_t stream);
/* The same, or it is being deleted. */
bool hb_verify_is_known(struct hb_verify *verify, uint64_t stream);

/* Each does its piece; true: the phase is over. */
bool hb_verify_format(struct hb_verify *verify);
bool hb_verify_meta(struct hb_verify *verify);
bool hb_verify_streams(struct hb_verify *verify);
bool hb_verify_log(struct hb_verify *verify);
bool hb_verify_held(struct hb_verify *verify);
bool hb_verify_keys(struct hb_verify *verify);
bool hb_verify_index(struct hb_verify *verify);
bool hb_verify_locate(struct hb_verify *verify);
bool hb_verify_gaps(struct hb_verify *verify);
bool hb_verify_kept(struct hb_verify *verify);
bool hb_verify_processors(struct hb_verify *verify);
bool hb_verify_results(struct hb_verify *verify);
bool hb_verify_states(struct hb_verify *verify);
bool hb_verify_timers(struct hb_verify *verify);
bool hb_verify_unused(struct hb_verify *verify);
bool hb_verify_peers(struct hb_verify *verify);
bool hb_verify_orphans(struct hb_verify *verify);

/* The current stream's rows, and its bundles as of the same moment (verify_streams.c); then what
 * stands in them now. */
void hb_verify_load(struct hb_verify *verify, uint64_t stream);
void hb_verify_compare_now(struct hb_verify *verify);
void hb_verify_held_done(struct hb_verify_held *held);
/* verify_held.c: a row of the family `held`, counted and decoded; false: it was told that it is
 * none (in the first pass). */
bool hb_verify_bundle(struct hb_verify *verify, struct hb_slice key, struct hb_slice value,
                      struct hb_bundle_id *out_id, struct hb_block *out);
/* verify_keys.c: hb_verify_held of a PER_KEY stream; one of its events in the log. */
bool hb_verify_keys_held(struct hb_verify *verify);
void hb_verify_keys_add(struct hb_verify *verify, const struct hb_event *event);
void hb_verify_keys_done(struct hb_verify_keys *keys);
void hb_verify_locate_done(struct hb_verify_locate *locate);
void hb_verify_processors_done(struct hb_verify_processors *processors);

/* verify_small.c: every row of the scan, over steps; what is wrong is told. True: that were all. */
typedef const char *hb_verify_look(struct hb_verify *verify, struct hb_slice key,
                                   struct hb_slice value, struct hb_err *err); /* NULL: well */
bool hb_verify_each_row(struct hb_verify *verify, hb_verify_look *look_at);

/* verify_index.c: an entry as log or index has it. */
bool hb_verify_is_indexed(const struct hb_verify_stream *stream, int64_t position);
size_t hb_verify_bucket(const struct hb_verify_stream *stream, int64_t position);
/* Go on with the entries of the key after verify->key. */
void hb_verify_skip_key(struct hb_verify *verify);
void hb_verify_add(struct hb_verify_sum *sums, const struct hb_verify_stream *stream,
                   const struct hb_index_entry *entry);

#endif
