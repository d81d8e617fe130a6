/* Decides which bytes of a log file are records. Whatever RocksDB 7.8's reader would stop at is
 * damage here; what it steps over (the last bytes of a block where no header fits) is not. */
#include "storage/wal_read_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/endian.h"
#include "storage/crc32c_internal.h"

enum type { ZERO, FULL, FIRST, MIDDLE, LAST }; /* 5 to 8 are those of recycled files: not ours */

struct piece {
  enum type type;
  uint64_t offset;
  struct hb_slice bytes;
};

void hb_wal_reader_init(struct hb_wal_reader *reader, int fd) {
  *reader = (struct hb_wal_reader){.fd = fd, .block = hb_alloc(HB_WAL_BLOCK_SIZE)};
}

void hb_wal_reader_done(struct hb_wal_reader *reader) {
  free(reader->block);
  hb_buf_done(&reader->record);
}

static enum hb_code read_block(struct hb_wal_reader *reader, struct hb_err *err) {
  uint64_t offset = reader->block_offset + reader->block_size;
  uint32_t size = 0;
  while (size < HB_WAL_BLOCK_SIZE) {
    ssize_t got =
        pread(reader->fd, reader->block + size, HB_WAL_BLOCK_SIZE - size, (off_t)(offset + size));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return hb_err_set(err, HB_IO, NULL, "can't be read: %s", strerror(errno));
    if (got == 0) break;
    size += (uint32_t)got;
  }
  reader->block_offset = offset;
  reader->block_size = size;
  reader->at = 0;
  reader->guessing = false;
  reader->last_block = size < HB_WAL_BLOCK_SIZE;
  return HB_OK;
}

/* What was being put together is lost with it; its beginning is where the damage is then. */
static void damaged(struct hb_wal_reader *reader, uint64_t offset, const char *why) {
  if (!reader->damage.any) {
    reader->damage = (struct hb_wal_damage){
        .any = true, .offset = reader->in_record ? reader->record_offset : offset, .why = why};
  }
  reader->in_record = false;
  reader->skipping = true;
}

static uint32_t length_of(const uint8_t *header) {
  return (uint32_t)header[4] | ((uint32_t)header[5] << 8);
}

static const char *look_at_piece(const uint8_t *header, uint32_t left) {
  if (left < HB_WAL_HEADER_SIZE) return "the file ends within the header of a record";
  uint32_t length = length_of(header);
  uint8_t type = header[6];
  if (type == ZERO && length == 0) return "zeros where a record should be";
  if (type < FULL || type > LAST) return "not a record";
  if (length > left - HB_WAL_HEADER_SIZE) return "a record longer than what is there";
  struct hb_slice checked = hb_slice_of(header + 6, 1 + (size_t)length);
  if (hb_crc32c_mask(hb_crc32c(0, checked)) != hb_get_u32_le(header)) return "a wrong checksum";
  return NULL;
}

/* To the next bytes in the block that begin a record, or to its end. What is checksummed is
 * bounded, so that no content makes a start slow. */
static void search(struct hb_wal_reader *reader) {
  uint32_t budget = 512 * HB_WAL_BLOCK_SIZE;
  reader->guessing = true;
  while (++reader->at + HB_WAL_HEADER_SIZE <= reader->block_size) {
    const uint8_t *header = reader->block + reader->at;
    uint32_t left = reader->block_size - reader->at;
    bool begins = header[6] == FULL || header[6] == FIRST;
    if (!begins || length_of(header) > left - HB_WAL_HEADER_SIZE) continue;
    if (!look_at_piece(header, left)) return;
    if (budget < length_of(header)) break;
    budget -= length_of(header);
  }
  reader->at = reader->block_size;
}

/* A piece that stands whole in the block, or *out_any false at the end of the file. */
static enum hb_code next_piece(struct hb_wal_reader *reader, bool *out_any, struct piece *out,
                               struct hb_err *err) {
  for (;;) {
    uint32_t left = reader->block_size - reader->at;
    bool trailer = left < HB_WAL_HEADER_SIZE && !(reader->last_block && left);
    if (trailer && reader->last_block) {
      *out_any = false;
      return HB_OK;
    }
    if (trailer) {
      enum hb_code code = read_block(reader, err);
      if (code) return code;
      continue;
    }
    const uint8_t *header = reader->block + reader->at;
    uint64_t offset = reader->block_offset + reader->at;
    const char *why = look_at_piece(header, left);
    if (why) {
      damaged(reader, offset, why);
      search(reader);
      continue;
    }
    struct hb_slice bytes = hb_slice_of(header + HB_WAL_HEADER_SIZE, length_of(header));
    *out = (struct piece){.type = (enum type)header[6], .offset = offset, .bytes = bytes};
    reader->at += HB_WAL_HEADER_SIZE + length_of(header);
    *out_any = true;
    return HB_OK;
  }
}

/* True: a record is complete, in *out. */
static bool add_piece(struct hb_wal_reader *reader, const struct piece *piece,
                      struct hb_slice *out) {
  bool begins = piece->type == FULL || piece->type == FIRST;
  if (begins) {
    if (reader->in_record) damaged(reader, piece->offset, "a record without an end");
    reader->skipping = false;
    reader->record_offset = piece->offset;
    reader->guessed = reader->guessing;
    hb_buf_clear(&reader->record);
  } else if (!reader->in_record) {
    if (!reader->skipping) damaged(reader, piece->offset, "a record without a beginning");
    return false;
  }
  reader->in_record = piece->type == FIRST || piece->type == MIDDLE;
  if (piece->type == FULL) {
    *out = piece->bytes;
    return true;
  }
  if (piece->bytes.size) {
    hb_buf_append(&reader->record, piece->bytes.data, piece->bytes.size);
  }
  *out = hb_buf_view(&reader->record);
  return piece->type == LAST;
}

enum hb_code hb_wal_reader_next(struct hb_wal_reader *reader, bool *out_any, struct hb_slice *out,
                                struct hb_err *err) {
  for (;;) {
    bool any = false;
    struct piece piece;
    enum hb_code code = next_piece(reader, &any, &piece, err);
    if (code) return code;
    if (any && !add_piece(reader, &piece, out)) continue;
    if (!any && reader->in_record) {
      damaged(reader, reader->record_offset, "the file ends within a record");
    }
    *out_any = any;
    return HB_OK;
  }
}
