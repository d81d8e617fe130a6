/* Decides how the checksum is computed: by the processor where it has the instruction (a start
 * reads up to 256 MiB of log), else eight bytes at a time through tables made at first use. */
#include "storage/crc32c_internal.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/endian.h"

static const uint32_t POLYNOMIAL = 0x82f63b78U; /* reflected */

static uint32_t tables[8][256];
static bool has_instruction;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_tables(void) {
  for (uint32_t byte = 0; byte < 256; byte++) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; bit++) crc = (crc >> 1) ^ (crc & 1 ? POLYNOMIAL : 0);
    tables[0][byte] = crc;
  }
  for (uint32_t byte = 0; byte < 256; byte++) {
    for (int i = 1; i < 8; i++) {
      tables[i][byte] = (tables[i - 1][byte] >> 8) ^ tables[0][tables[i - 1][byte] & 0xff];
    }
  }
#if defined(__x86_64__)
  has_instruction = __builtin_cpu_supports("sse4.2");
#endif
}

static uint32_t by_tables(uint32_t crc, const uint8_t *at, size_t size) {
  for (; size >= 8; at += 8, size -= 8) {
    uint64_t word = hb_get_u64_le(at) ^ crc;
    crc = 0;
    for (unsigned i = 0; i < 8; i++) crc ^= tables[7 - i][(word >> (8 * i)) & 0xff];
  }
  for (; size; at++, size--) crc = (crc >> 8) ^ tables[0][(crc ^ *at) & 0xff];
  return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t by_instruction(uint32_t crc, const uint8_t *at,
                                                                 size_t size) {
  uint64_t wide = crc;
  for (; size >= 8; at += 8, size -= 8) wide = __builtin_ia32_crc32di(wide, hb_get_u64_le(at));
  crc = (uint32_t)wide;
  for (; size; at++, size--) crc = __builtin_ia32_crc32qi(crc, *at);
  return crc;
}
#else
static uint32_t by_instruction(uint32_t crc, const uint8_t *at, size_t size) {
  return by_tables(crc, at, size);
}
#endif

uint32_t hb_crc32c(uint32_t crc, struct hb_slice bytes) {
  (void)pthread_once(&once, make_tables);
  crc = ~crc;
  crc = has_instruction ? by_instruction(crc, bytes.data, bytes.size)
                        : by_tables(crc, bytes.data, bytes.size);
  return ~crc;
}

uint32_t hb_crc32c_by_tables(uint32_t crc, struct hb_slice bytes) {
  (void)pthread_once(&once, make_tables);
  return ~by_tables(~crc, bytes.data, bytes.size);
}

uint32_t hb_crc32c_mask(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8U; }
