/* Decides whether this program may open a folder. The first 36 bytes keep their meaning in every
 * version to come, so that an old program can tell a new folder from a damaged one. */
#include "storage/format_file_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/endian.h"
#include "storage/folder_internal.h"

static const char MAGIC[8] = {'H', 'O', 'L', 'D', 'B', 'A', 'C', 'K'};
enum { AT_VERSION = 8, AT_STORE_ID = 12, AT_CHECKSUM = 28 };

void hb_format_encode(const struct hb_format *format, uint8_t out[HB_FORMAT_SIZE]) {
  memcpy(out, MAGIC, sizeof MAGIC);
  hb_put_u32_le(out + AT_VERSION, format->version);
  memcpy(out + AT_STORE_ID, format->store_id, HB_STORE_ID_SIZE);
  hb_put_u64_le(out + AT_CHECKSUM, XXH3_64bits(out, AT_CHECKSUM));
}

enum hb_code hb_format_decode(struct hb_slice bytes, struct hb_format *out, struct hb_err *err) {
  size_t compared = bytes.size < sizeof MAGIC ? bytes.size : sizeof MAGIC;
  if (compared && memcmp(bytes.data, MAGIC, compared) != 0) {
    return hb_err_set(err, HB_VERSION, NULL, "it is of another program");
  }
  if (bytes.size < HB_FORMAT_SIZE) {
    return hb_err_set(err, HB_CORRUPT, NULL, "%zu bytes, expected %d; restore it from a backup",
                      bytes.size, HB_FORMAT_SIZE);
  }
  if (XXH3_64bits(bytes.data, AT_CHECKSUM) != hb_get_u64_le(bytes.data + AT_CHECKSUM)) {
    return hb_err_set(err, HB_CORRUPT, NULL, "wrong checksum; restore it from a backup");
  }
  uint32_t version = hb_get_u32_le(bytes.data + AT_VERSION);
  if (version != HB_FORMAT_VERSION) {
    return hb_err_set(err, HB_VERSION, NULL,
                      "format %" PRIu32 ", this program knows %d; run a newer holdbackd", version,
                      HB_FORMAT_VERSION);
  }
  if (bytes.size != HB_FORMAT_SIZE) {
    return hb_err_set(err, HB_CORRUPT, NULL, "%zu bytes, expected %d; restore it from a backup",
                      bytes.size, HB_FORMAT_SIZE);
  }
  out->version = version;
  memcpy(out->store_id, bytes.data + AT_STORE_ID, HB_STORE_ID_SIZE);
  return HB_OK;
}

/* At most one byte more than a FORMAT has: enough to see that there is more. */
static enum hb_code read_start(const char *path, uint8_t *out, size_t size, size_t *out_size,
                               struct hb_err *err) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return hb_folder_errno(errno, "open", path, err);
  ssize_t got = pread(fd, out, size, 0);
  int error = got < 0 ? errno : 0;
  (void)close(fd); /* it was only read */
  if (error) return hb_folder_errno(error, "read", path, err);
  *out_size = (size_t)got;
  return HB_OK;
}

enum hb_code hb_format_read(const char *folder, const char *name, struct hb_format *out,
                            struct hb_err *err) {
  char *path = hb_folder_join(folder, name);
  uint8_t bytes[HB_FORMAT_SIZE + 1];
  size_t size = 0;
  enum hb_code code = read_start(path, bytes, sizeof bytes, &size, err);
  if (!code) {
    code = hb_format_decode(hb_slice_of(bytes, size), out, err);
    if (code) hb_err_wrap(err, "'%s'", path);
  }
  free(path);
  return code;
}

enum hb_code hb_format_write_new(const char *folder, const struct hb_format *format,
                                 struct hb_err *err) {
  uint8_t bytes[HB_FORMAT_SIZE];
  hb_format_encode(format, bytes);
  enum hb_code code =
      hb_folder_write_file(folder, HB_FILE_FORMAT_NEW, hb_slice_of(bytes, sizeof bytes), err);
  return code ? code : hb_folder_sync(folder, err);
}

enum hb_code hb_format_publish(const char *folder, struct hb_err *err) {
  char *from = hb_folder_join(folder, HB_FILE_FORMAT_NEW);
  char *to = hb_folder_join(folder, HB_FILE_FORMAT);
  enum hb_code code = rename(from, to) ? hb_folder_errno(errno, "rename", from, err) : HB_OK;
  free(from);
  free(to);
  return code ? code : hb_folder_sync(folder, err);
}
