/* Decides whether a hole in a MANIFEST may be cut off with all that is behind it.
 *
 * RocksDB writes the edits of all who wait, and syncs them together. A power loss in that sync may
 * keep the last page and lose the one before: that page is then as the sync before left it, with
 * the old edits and zeros behind them. What a sync covered has another look where it is lost: a
 * page as a whole, or bytes within.
 *
 * A disk may have lost such a page later, after the sync. So this is not believed for its look
 * alone: logs and tables are removed only after the edit that makes them needless was synced. While
 * all that the edits before the hole need is there, they are the whole state, whatever made the
 * hole. (Index files are taken in by their edit alone; they are made again.) */
#include "storage/wal_hole_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "storage/folder_internal.h"
#include "storage/wal_edit_internal.h"
#include "storage/wal_read_internal.h"

enum { PAGE = 4096 };

enum hb_code hb_wal_hole_look(int fd, uint64_t offset, bool *out, struct hb_err *err) {
  static const uint8_t zeros[PAGE];
  uint8_t bytes[PAGE];
  size_t size = PAGE - offset % PAGE;
  ssize_t got;
  do {
    got = pread(fd, bytes, size, (off_t)offset);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return hb_err_set(err, HB_IO, NULL, "can't be read: %s", strerror(errno));
  *out = (size_t)got == size && memcmp(bytes, zeros, size) == 0;
  return HB_OK;
}

static enum hb_code read_tables(struct hb_wal_reader *reader, struct hb_wal_tables *tables,
                                bool *out_known, struct hb_err *err) {
  *out_known = true;
  for (;;) {
    bool any = false;
    struct hb_slice bytes;
    struct hb_wal_edit edit = {0};
    enum hb_code code = hb_wal_reader_next(reader, &any, &bytes, err);
    if (code || !any || reader->damage.any) return code;
    if (!hb_wal_edit_read(bytes, &edit, tables)) *out_known = false;
  }
}

static bool is_there(const char *folder, uint64_t table) {
  char name[32];
  (void)snprintf(name, sizeof name, "%06" PRIu64 ".sst", table);
  char *path = hb_folder_join(folder, name);
  bool there = access(path, F_OK) == 0;
  free(path);
  return there;
}

enum hb_code hb_wal_hole_tables(int fd, const char *folder, bool *out, struct hb_err *err) {
  struct hb_wal_reader reader;
  struct hb_wal_tables tables = {0};
  hb_wal_reader_init(&reader, fd);
  enum hb_code code = read_tables(&reader, &tables, out, err);
  for (size_t i = 0; !code && *out && i < tables.count; i++) {
    *out = is_there(folder, tables.numbers[i]);
  }
  free(tables.numbers);
  hb_wal_reader_done(&reader);
  return code;
}
