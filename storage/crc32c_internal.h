/* CRC-32C (Castagnoli), as RocksDB's log has it. Pure; any thread. */
#ifndef HB_STORAGE_CRC32C_INTERNAL_H
#define HB_STORAGE_CRC32C_INTERNAL_H

#include <stdint.h>

#include "base/slice.h"

/* `crc` is that of what came before; 0 at the beginning. */
uint32_t hb_crc32c(uint32_t crc, struct hb_slice bytes);
/* The same without the processor's instruction. */
uint32_t hb_crc32c_by_tables(uint32_t crc, struct hb_slice bytes);
/* RocksDB's mask: a checksum over bytes that hold checksums would be weak. */
uint32_t hb_crc32c_mask(uint32_t crc);

#endif
