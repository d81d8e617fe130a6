/* Fixed-width integers in bytes: little-endian in values, big-endian in keys (byte order = order).
 */
#ifndef HB_BASE_ENDIAN_H
#define HB_BASE_ENDIAN_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

static inline void hb_put_u32_le(uint8_t *at, uint32_t value) {
  value = htole32(value);
  memcpy(at, &value, sizeof value);
}
static inline void hb_put_u64_le(uint8_t *at, uint64_t value) {
  value = htole64(value);
  memcpy(at, &value, sizeof value);
}
static inline uint32_t hb_get_u32_le(const uint8_t *at) {
  uint32_t value;
  memcpy(&value, at, sizeof value);
  return le32toh(value);
}
static inline uint64_t hb_get_u64_le(const uint8_t *at) {
  uint64_t value;
  memcpy(&value, at, sizeof value);
  return le64toh(value);
}
static inline void hb_put_u32_be(uint8_t *at, uint32_t value) {
  value = htobe32(value);
  memcpy(at, &value, sizeof value);
}
static inline void hb_put_u64_be(uint8_t *at, uint64_t value) {
  value = htobe64(value);
  memcpy(at, &value, sizeof value);
}
static inline uint32_t hb_get_u32_be(const uint8_t *at) {
  uint32_t value;
  memcpy(&value, at, sizeof value);
  return be32toh(value);
}
static inline uint64_t hb_get_u64_be(const uint8_t *at) {
  uint64_t value;
  memcpy(&value, at, sizeof value);
  return be64toh(value);
}
/* Signed in a key: the flipped sign bit makes byte order numeric order. */
static inline uint64_t hb_flip_sign(int64_t value) { return (uint64_t)value ^ (UINT64_C(1) << 63); }
static inline int64_t hb_unflip_sign(uint64_t value) {
  return (int64_t)(value ^ (UINT64_C(1) << 63));
}

#endif
