/* One file in RocksDB's log format (its WAL, its MANIFEST), record by record, past damage too.
 *
 * 32 KiB blocks; a record is checksum, length, type and bytes, and never crosses a block: a long
 * one is cut into FIRST, MIDDLE.., LAST. After bytes that are no record, reading goes on with the
 * next bytes that are the beginning of one: damage five small records before the end would else
 * look like a torn tail, for all five may lie in one block. */
#ifndef HB_STORAGE_WAL_READ_INTERNAL_H
#define HB_STORAGE_WAL_READ_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/slice.h"

enum { HB_WAL_BLOCK_SIZE = 32768, HB_WAL_HEADER_SIZE = 7 };

struct hb_wal_damage {
  bool any;
  uint64_t offset; /* of the first byte that could not be used */
  const char *why; /* static */
};

struct hb_wal_reader {
  int fd;                      /* borrowed */
  uint8_t *block;              /* owned */
  uint64_t block_offset;       /* of `block` in the file */
  uint32_t block_size;         /* bytes of it that are there */
  uint32_t at;                 /* in the block */
  bool last_block;             /* the file ends with it */
  struct hb_buf record;        /* a long record, being put together */
  uint64_t record_offset;      /* of its beginning */
  bool in_record;              /* FIRST was read, LAST not yet */
  bool skipping;               /* until something begins a record */
  bool guessing;               /* the rest of the block was searched, not followed */
  bool guessed;                /* the last record given out was found so */
  struct hb_wal_damage damage; /* the first; it stays */
};

void hb_wal_reader_init(struct hb_wal_reader *reader, int fd);
void hb_wal_reader_done(struct hb_wal_reader *reader);
/* *out_any false: the end of the file. *out lives until the next call; reader->record_offset is
 * where it begins. reader->guessed: it may also be bytes inside of another record that look like
 * one. HB_IO: the file could not be read; damage is no error. */
HB_MUST_CHECK enum hb_code hb_wal_reader_next(struct hb_wal_reader *reader, bool *out_any,
                                              struct hb_slice *out, struct hb_err *err);

#endif
