/* The checksum of RocksDB's log and blob files, by the processor.
 *
 * Debian's librocksdb.a is compiled for processors without the instruction, and has no other code
 * for those that have it: all that is written goes through tables. At disorder 10^6, where all is
 * written twice, that was 13 % of the server's CPU. The linker is told (--wrap, bazel/system.bzl)
 * to send RocksDB's calls here; the value is the same, and on a processor without the instruction
 * they go on to the original. For the static link alone: a shared object resolves its calls inside.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* uint32_t rocksdb::crc32c::Extend(uint32_t crc, const char *data, size_t size) */
#define EXTEND(prefix) prefix##_ZN7rocksdb6crc32c6ExtendEjPKcm
uint32_t EXTEND(__real_)(uint32_t crc, const char *data, size_t size);
uint32_t EXTEND(__wrap_)(uint32_t crc, const char *data, size_t size);

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t extend(uint32_t crc, const char *data,
                                                         size_t size) {
  uint64_t state = crc ^ UINT32_MAX;
  for (; size >= 8; data += 8, size -= 8) {
    uint64_t word;
    memcpy(&word, data, sizeof word);
    state = __builtin_ia32_crc32di(state, word);
  }
  uint32_t end = (uint32_t)state;
  for (; size; data++, size--) end = __builtin_ia32_crc32qi(end, (uint8_t)*data);
  return end ^ UINT32_MAX;
}
#endif

uint32_t EXTEND(__wrap_)(uint32_t crc, const char *data, size_t size) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) return extend(crc, data, size);
#endif
  return EXTEND(__real_)(crc, data, size);
}
