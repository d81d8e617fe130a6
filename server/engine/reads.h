/* Reads that need the disk: done by the engine's reader threads in bounded chunks. */
#ifndef HB_SERVER_ENGINE_READS_H
#define HB_SERVER_ENGINE_READS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "base/mailbox.h"
#include "base/slice.h"
#include "base/types.h"
#include "server/engine/engine.h"
#include "server/engine/stream.h"
#include "storage/processor_rows.h"

enum hb_read_kind {
  HB_READ_LOG,  /* blocks from the one that contains `position` up to the published frontier */
  HB_READ_TIME, /* -> position of the first released event, or result, of time >= `time` */
  HB_READ_KEY,  /* one page of one key's list */
  HB_READ_KEYS, /* one page of keys; with `processor`, the status of each */
  HB_READ_KEY_STATUS, /* of one key, of `processor` */
  HB_READ_UNPROCESSED /* one page of what was refused, or given up, and is kept */
};

enum { HB_READ_BLOCKS_MAX = 16 };

/* One entry of a key's list; owned by the read until hb_read_done. */
struct hb_key_entry {
  struct hb_bytes *owner; /* reference */
  struct hb_slice frame;  /* tag, length, Event */
  int64_t position; /* = sequence in GLOBAL mode, also while held; none while held in PER_KEY */
  bool released;
};

/* One event that is kept in `unprocessed`; owned by the read until hb_read_done. */
struct hb_unprocessed_entry {
  struct hb_bytes *owner; /* reference; of all slices */
  uint8_t reason;         /* an outcome, or HB_UNPROCESSED_EXCEPTION */
  int64_t position;       /* its sequence; EXCEPTION: its position in the log */
  uint64_t count;         /* how often */
  uint64_t first_seen_wall_ms;
  uint64_t last_seen_wall_ms;
  struct hb_slice frame;       /* empty where no event was given up, but a timer or an end */
  struct hb_slice explanation; /* EXCEPTION; as user code gave it, perhaps no text */
  struct hb_slice processor;   /* EXCEPTION: the name; "" where it is gone */
  struct hb_slice producer;    /* who sent the first; "" where that is not known */
};
/* User code failed at it. Number as in the store. */
enum { HB_UNPROCESSED_EXCEPTION = 64 };

/* How a key stands: what is committed of it, and what waits, as of moments close together. */
struct hb_key_standing {
  struct hb_key_status status;
  uint64_t waiting; /* stored, and not processed: released, or held */
  int64_t earliest; /* of these; valid where there are any */
  int64_t latest;
  bool blocked; /* the key waits at an event that failed, of this sequence */
  int64_t blocked_at;
};

struct hb_read {
  struct hb_node node; /* the engine's */
  enum hb_read_kind kind;
  struct hb_stream *stream; /* reference held by the caller until done was called */

  /* in */
  int64_t position;    /* LOG */
  size_t bytes_max;    /* LOG: about so many bytes of blocks, at least one block */
  struct hb_time time; /* TIME */
  struct hb_slice key; /* KEY, KEY_STATUS; KEYS: the prefix; UNPROCESSED: with has_key */
  bool has_key;        /* UNPROCESSED: events of `key` alone */
  uint8_t reason;      /* UNPROCESSED: of this reason alone; 0: of all */
  bool has_from;       /* KEY: from_position */
  int64_t from_position;
  bool released_only; /* KEY */
  /* hb_processor_info.id; KEYS, KEY_STATUS: of one that keeps statuses; 0: none. UNPROCESSED: what
   * this one gave up; 0: what anyone did, and what was refused. */
  uint64_t processor;
  uint32_t page_size; /* KEY, KEYS, UNPROCESSED: entries, > 0 */
  struct hb_slice
      token; /* KEY, KEYS, UNPROCESSED: as given back by the page before; "" = first page */

  /* out */
  struct hb_err error; /* HB_OUT_OF_RANGE (below earliest), HB_CORRUPT (a hole), HB_INVALID
                        * (token), HB_NOT_FOUND (deleted meanwhile) */
  struct hb_bytes *blocks[HB_READ_BLOCKS_MAX]; /* LOG: references */
  uint32_t blocks_count;
  int64_t found_position;       /* TIME */
  struct hb_key_entry *entries; /* KEY: at most page_size and 3.5 MiB; may be none with a token */
  size_t entries_count;
  struct hb_buf keys; /* KEYS: u32 little-endian size, bytes; repeated */
  size_t keys_count;
  struct hb_unprocessed_entry *unprocessed; /* UNPROCESSED: likewise */
  size_t unprocessed_count;
  struct hb_key_standing *standings; /* with `processor`, one for each key */
  struct hb_buf next_token;          /* "" = the end. Opaque, self-contained, survives restarts */

  void *state;                        /* the engine's while it has the read */
  void (*done)(struct hb_read *read); /* a reader's thread; the caller's own once it stops */
  void *context;
};

/* Never refused: each call or subscription has at most one read out. */
void hb_engine_read(struct hb_engine *engine, struct hb_read *read);
/* Free what the read brought. */
void hb_read_done(struct hb_read *read);

#endif
