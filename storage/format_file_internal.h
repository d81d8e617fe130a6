/* The file FORMAT: what a data folder is, told before RocksDB touches it. */
#ifndef HB_STORAGE_FORMAT_FILE_INTERNAL_H
#define HB_STORAGE_FORMAT_FILE_INTERNAL_H

#include <stdint.h>

#include "base/err.h"
#include "base/slice.h"
#include "storage/store.h"

enum { HB_FORMAT_VERSION = 1, HB_FORMAT_SIZE = 36 };

struct hb_format {
  uint32_t version;
  uint8_t store_id[HB_STORE_ID_SIZE];
};

void hb_format_encode(const struct hb_format *format, uint8_t out[HB_FORMAT_SIZE]);
/* HB_VERSION: of another program, or newer than this one. HB_CORRUPT: cut or changed. */
HB_MUST_CHECK enum hb_code hb_format_decode(struct hb_slice bytes, struct hb_format *out,
                                            struct hb_err *err);
/* Reads folder/name. */
HB_MUST_CHECK enum hb_code hb_format_read(const char *folder, const char *name,
                                          struct hb_format *out, struct hb_err *err);
/* Durable on return. */
HB_MUST_CHECK enum hb_code hb_format_write_new(const char *folder, const struct hb_format *format,
                                               struct hb_err *err);
/* FORMAT.new becomes FORMAT, durably: from here on the folder is a store. */
HB_MUST_CHECK enum hb_code hb_format_publish(const char *folder, struct hb_err *err);

#endif
