/* Value types that the core, the store and the server share, so that nobody includes a neighbour
 * for a struct. All ranges are half-open [start, end). Plain data: copying is fine. */
#ifndef HB_BASE_TYPES_H
#define HB_BASE_TYPES_H

#include <stdbool.h>
#include <stdint.h>

enum { HB_STREAM_NAME_MAX = 128, HB_INCARNATION_SIZE = 24 };

/* Numbers as in holdback.v1.StreamMode, AckMode, Outcome, OutcomeReason. */
enum hb_mode { HB_MODE_GLOBAL = 1, HB_MODE_PER_KEY = 2 };
enum hb_ack { HB_ACK_DURABLE = 1, HB_ACK_ASYNC = 2 };

enum hb_outcome {
  HB_OUTCOME_NONE = 0, /* not decided yet */
  HB_OUTCOME_STORED = 1,
  HB_OUTCOME_DUPLICATE = 2,
  HB_OUTCOME_CONFLICT = 3,
  HB_OUTCOME_LATE = 4,
  HB_OUTCOME_BEFORE_FIRST = 5,
  HB_OUTCOME_OUT_OF_RANGE = 6,
  HB_OUTCOME_WINDOW_FULL = 7
};

enum hb_reason {
  HB_REASON_NONE = 0,
  HB_REASON_AHEAD = 1,
  HB_REASON_HELD_BYTES = 2,
  HB_REASON_GAPS = 3,
  HB_REASON_SERVER_MEMORY = 4,
  HB_REASON_DISK_RESERVE = 5,
  HB_REASON_UNVERIFIED = 6,
  HB_REASON_CHAIN_CONFLICT = 7,
  HB_REASON_QUOTA = 8,
  HB_REASON_HELD_EVENTS = 9,
  HB_REASON_SEALED = 10
};

struct hb_range {
  int64_t start;
  int64_t end;
};

/* An instant as google.protobuf.Timestamp has it; ordered by (seconds, nanos). */
struct hb_time {
  int64_t seconds;
  int32_t nanos; /* 0 .. 999,999,999 */
  bool present;
};

/* < 0, 0, > 0; an absent instant is before every present one. */
static inline int hb_time_compare(struct hb_time a, struct hb_time b) {
  if (a.present != b.present) return a.present ? 1 : -1;
  if (a.seconds != b.seconds) return a.seconds < b.seconds ? -1 : 1;
  return (a.nanos > b.nanos) - (a.nanos < b.nanos);
}

struct hb_stream_limits {
  uint64_t ahead_max;
  uint64_t held_bytes_max;
  uint64_t held_events_max;
  uint64_t gaps_max;
  uint64_t event_bytes_max;
};

struct hb_stream_config {
  char name[HB_STREAM_NAME_MAX + 1]; /* NUL-terminated */
  enum hb_mode mode;
  bool first_seen;        /* first_sequence comes from the first batch that is decided */
  int64_t first_sequence; /* where !first_seen */
  enum hb_ack ack;
  struct hb_stream_limits limits; /* 0 = the server's default, resolved by the engine */
};

/* Who sent a batch and when it came; told in a block's receipts. */
struct hb_receipt {
  uint64_t received_ms; /* wall clock */
  uint32_t peer;        /* id in the family `peers`; 0 = other */
};

/* Counters of a stream, saved in the frontier record. */
struct hb_stream_counters {
  uint64_t stored;
  uint64_t duplicate;
  uint64_t conflict;
  uint64_t late;
  uint64_t before_first;
  uint64_t held;              /* events ever written to bundles */
  uint64_t unprocessed_bytes; /* kept in the family `unprocessed`; its quota */
};

/* The durable global range checkpoint: one row per stream, rewritten by each commit that touches
 * the stream. The four numbers are absent (frozen == false) until first_sequence is known. */
struct hb_frontier {
  bool frozen;
  int64_t first_sequence;
  int64_t complete_to; /* end of the gap-free coverage; never decreases (I5) */
  int64_t frontier;    /* end of what is released; <= complete_to; never decreases (I5) */
  int64_t earliest;    /* lowest position still in the log */
  bool any;            /* something was stored; then `highest` is valid */
  int64_t highest;
  struct hb_time max_event_time; /* of released events */
  bool sealed;                   /* nothing at or above seal_end will ever be stored */
  int64_t seal_end;
  struct hb_stream_counters counters;
  uint64_t commit; /* number of the commit that wrote the record */
};

/* PER_KEY mode: one key of a stream, rewritten by each commit that releases something of it. Its
 * released events have the sequences [first, next), one after another; where next > first they lie
 * in the log from first_position to last_position, ascending like their sequences. */
struct hb_key_record {
  bool begun;    /* it is known where the key begins; else nothing of it was released */
  bool complete; /* an event flagged `last` was released, and so everything before it */
  int64_t first;
  int64_t next;
  int64_t first_position;
  int64_t last_position;
  int64_t last; /* valid where complete: the lowest sequence that was flagged */
};

struct hb_gap {
  int64_t start;
  int64_t end;
  uint64_t first_seen_served_ms;
  uint64_t first_seen_wall_ms; /* display only */
};

enum { HB_STATUS_GAPS_MAX = 16 };

/* A stream as of its last fsynced commit: what answers, Progress and GetStream show. */
struct hb_stream_status {
  struct hb_frontier record;
  uint64_t held_events;
  uint64_t held_bytes; /* bundle bytes on disk */
  uint64_t gaps_total;
  uint32_t gaps_count; /* in `gaps`: the lowest ones, ascending */
  struct hb_gap gaps[HB_STATUS_GAPS_MAX];
  int64_t window_end;   /* complete_to + ahead_max, saturated; valid where record.frozen */
  int64_t indexed_to;   /* valid where record.frozen */
  int64_t processed_to; /* of results: what the stream has below it is processed */
};

/* Name of one held bundle: the commit that wrote it and its part in that commit. */
struct hb_bundle_id {
  uint64_t stream;
  uint64_t commit;
  uint32_t part;
};

#endif
