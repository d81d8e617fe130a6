/* A store's files from the outside: how large, how fast to read, and out of the page cache. */
#ifndef HB_BENCH_FILES_H
#define HB_BENCH_FILES_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes of all files below `folder`; RocksDB's log left out where `without_wal`. */
uint64_t hb_files_bytes(const char *folder, bool without_wal);
/* Write everything back and drop it from the page cache. False: a file could not be opened. */
bool hb_files_drop(const char *folder);
/* Read every file from start to end, one after another; the bytes. 0: one could not be read. */
uint64_t hb_files_read(const char *folder);

#endif
