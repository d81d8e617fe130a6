/* RocksDB's log and MANIFEST as the check reads them, from files in memory. The first byte: bit 0,
 * checksums are put right first, so that what is behind them is reached; bits 1 and 2, where the
 * bytes are cut into two logs. Whatever comes out: no verdict speaks of what was not read. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/endian.h"
#include "storage/crc32c_internal.h"
#include "storage/wal_batch_internal.h"
#include "storage/wal_manifest_internal.h"
#include "storage/wal_scan_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put_checksums_right(uint8_t *bytes, size_t size) {
  size_t at = 0;
  while (at + HB_WAL_HEADER_SIZE <= size) {
    size_t left = HB_WAL_BLOCK_SIZE - at % HB_WAL_BLOCK_SIZE;
    size_t length = bytes[at + 4] | ((size_t)bytes[at + 5] << 8);
    if (left < HB_WAL_HEADER_SIZE) {
      at += left;
      continue;
    }
    if (length > left - HB_WAL_HEADER_SIZE || at + HB_WAL_HEADER_SIZE + length > size) return;
    struct hb_slice checked = hb_slice_of(bytes + at + 6, 1 + length);
    hb_put_u32_le(bytes + at, hb_crc32c_mask(hb_crc32c(0, checked)));
    at += HB_WAL_HEADER_SIZE + length;
  }
}

static int make_file(const uint8_t *bytes, size_t size) {
  int fd = memfd_create("fuzz", MFD_CLOEXEC);
  HB_ASSERT(fd >= 0);
  HB_ASSERT(write(fd, bytes, size) == (ssize_t)size);
  return fd;
}

static void read_manifest(const uint8_t *bytes, size_t size) {
  int fd = make_file(bytes, size);
  struct hb_wal_manifest manifest = {0};
  enum hb_code code = hb_wal_manifest_read(fd, &manifest, NULL);
  HB_ASSERT(code == HB_OK || code == HB_CORRUPT);
  HB_ASSERT(!manifest.torn || (manifest.size > 0 && manifest.size < size));
  close(fd);
}

static void scan(const uint8_t *bytes, size_t size, size_t cut) {
  int first = make_file(bytes, cut);
  int second = make_file(bytes + cut, size - cut);
  struct hb_wal_scan scan = {0};
  HB_ASSERT(hb_wal_scan_file(&scan, 4, first, true, NULL) == HB_OK);
  HB_ASSERT(hb_wal_scan_file(&scan, 9, second, false, NULL) == HB_OK);
  enum hb_wal_verdict verdict = hb_wal_scan_verdict(&scan, 0);
  HB_ASSERT(scan.hole.any == (verdict != HB_WAL_WHOLE));
  HB_ASSERT(scan.hole.any || !scan.behind.any);
  if (scan.hole.any) {
    HB_ASSERT(scan.hole.file == 4 || scan.hole.file == 9);
    HB_ASSERT(scan.hole.offset <= (scan.hole.file == 4 ? cut : size - cut));
  }
  close(first);
  close(second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 2) return 0;
  uint8_t flags = data[0];
  uint8_t *bytes = hb_memdup(data + 1, size - 1);
  struct hb_log_data log_data;
  bool any;
  size--;
  (void)hb_wal_batch_read(hb_slice_of(bytes, size), &any, &log_data);
  size_t cut = size * ((flags >> 1) & 3) / 4;
  if (flags & 1) {
    put_checksums_right(bytes, cut);
    put_checksums_right(bytes + cut, size - cut);
  }
  read_manifest(bytes, size);
  scan(bytes, size, cut);
  free(bytes);
  return 0;
}
