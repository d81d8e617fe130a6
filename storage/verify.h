/* Verification: is what lies in the store what should lie there?
 *
 * Reads everything: each block, bundle and row is decoded, each frame scanned, checksums included,
 * and compared with what the frontier records and each other say (I4, I5, I10; index and log in
 * both directions). Goes on after a finding. Nothing is changed. Works on a closed store (opened
 * read_only) and beside a writer, in bounded steps: memory and the time of a step do not depend on
 * the size of the store. One thread at a time. */
#ifndef HB_STORAGE_VERIFY_H
#define HB_STORAGE_VERIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/types.h"
#include "storage/store.h"

/* One thing that is wrong. */
struct hb_finding {
  uint64_t stream;                   /* 0 = of none */
  char name[HB_STREAM_NAME_MAX + 1]; /* of the stream; "" = none, or not known */
  const char *family;                /* of rows, or "FORMAT"; static */
  bool has_range;
  struct hb_range range; /* positions (log, lists) or sequences (held) that are concerned */
  char text[HB_ERR_MESSAGE_SIZE];
};

/* "stream 'orders' (id 3), log [100, 164): block: checksum is wrong". Returns `out`. */
enum { HB_FINDING_LINE_SIZE = HB_ERR_MESSAGE_SIZE + HB_STREAM_NAME_MAX + 128 };
const char *hb_finding_line(const struct hb_finding *finding, char out[HB_FINDING_LINE_SIZE]);

/* What was looked at so far. */
struct hb_verify_counts {
  uint64_t streams;
  uint64_t blocks; /* of logs */
  uint64_t events; /* in them */
  uint64_t bundles;
  uint64_t held_events; /* in them, at or above the frontier */
  uint64_t index_entries;
  uint64_t rows;  /* all others */
  uint64_t bytes; /* keys and values read */
  uint64_t findings;
  uint64_t done;  /* of `total`: events, held events and index entries */
  uint64_t total; /* an estimate; equal to `done` at the end */
};

/* Lives for the call. */
typedef void hb_verify_found(void *context, const struct hb_finding *finding);

struct hb_verify_options {
  struct hb_store *store; /* borrowed */
  uint64_t stream;        /* 0 = all, and what belongs to none */
  bool live;              /* somebody writes meanwhile: what is newer than the look is left alone */
  hb_verify_found *found;
  void *context;
};

struct hb_verify;

struct hb_verify *hb_verify_create(const struct hb_verify_options *options);
void hb_verify_destroy(struct hb_verify *verify); /* NULL is allowed */
/* Look at about `bytes` more. False: everything was looked at. */
bool hb_verify_step(struct hb_verify *verify, size_t bytes);
const struct hb_verify_counts *hb_verify_counts(const struct hb_verify *verify);

#endif
