/* What the WAL files of a store tell together: the commits in them, from the first on without a
 * hole, and what is said behind the first hole. Files are given in ascending order. */
#ifndef HB_STORAGE_WAL_SCAN_INTERNAL_H
#define HB_STORAGE_WAL_SCAN_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "storage/wal_read_internal.h"

/* The first place from which nothing can be recovered. */
struct hb_wal_hole {
  bool any;
  uint64_t file;
  uint64_t offset;
  const char *why;     /* static */
  bool never_torn;     /* no torn write looks like this */
  uint64_t torn_file;  /* the one whose end would have been torn off */
  uint64_t lost_from;  /* the lowest commit number that may be lost */
  uint64_t stale_from; /* files from this number on have to be left out of a recovery */
};

/* What readable records behind the hole say. */
struct hb_wal_behind {
  bool any;
  bool other_run;  /* one of another run than the records before the hole */
  uint64_t synced; /* the highest commit said to be durable */
  uint64_t commit; /* the highest there is */
  uint64_t file;   /* the last one with a record */
};

struct hb_wal_scan {
  bool any;        /* a commit was read before the hole; of the last one: */
  uint64_t run;    /* - its run, */
  uint64_t mark;   /* - the mark of that, */
  uint64_t commit; /* - its number */
  uint64_t file;   /* being read */
  uint64_t file_before;
  bool file_begun;   /* a commit was read in it */
  uint64_t begun_in; /* the highest file in which a run begins; 0: none */
  struct hb_wal_hole hole;
  struct hb_wal_behind behind;
};

enum hb_wal_verdict {
  HB_WAL_WHOLE,
  HB_WAL_TORN,   /* what is lost was never known to be durable: recovery may drop it */
  HB_WAL_DAMAGED /* commits that were durable can't be recovered */
};

/* `first`: it is the first file that is needed; a file that is not, and has none before it, has to
 * begin with the beginning of a run. HB_IO: the file can't be read. */
HB_MUST_CHECK enum hb_code hb_wal_scan_file(struct hb_wal_scan *scan, uint64_t number, int fd,
                                            bool first, struct hb_err *err);
/* `synced_below`: files with lower numbers were synced as a whole. */
enum hb_wal_verdict hb_wal_scan_verdict(const struct hb_wal_scan *scan, uint64_t synced_below);

#endif
