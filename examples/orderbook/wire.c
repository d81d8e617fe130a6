/* Decides which byte is what in the payloads, and what is refused. */
#include "examples/orderbook/wire.h"

#include <endian.h>
#include <string.h>

enum { VERSION = 1, FLAG_LAST = 1, FLAG_TRADE = 1, FLAG_FINAL = 2 };

void ob_put_i64(uint8_t *at, int64_t value) {
  uint64_t bits = htole64((uint64_t)value);
  memcpy(at, &bits, sizeof bits);
}

int64_t ob_get_i64(const uint8_t *at) {
  uint64_t bits;
  memcpy(&bits, at, sizeof bits);
  return (int64_t)le64toh(bits);
}

static void put_u16(uint8_t *at, uint16_t value) {
  at[0] = (uint8_t)(value & 0xff);
  at[1] = (uint8_t)(value >> 8);
}

static uint16_t get_u16(const uint8_t *at) { return (uint16_t)(at[0] | at[1] << 8); }

/* ---- order events */

void ob_event_encode(const struct ob_event *event, uint8_t out[OB_EVENT_SIZE]) {
  memset(out, 0, 8);
  out[0] = VERSION;
  out[1] = (uint8_t)event->type;
  out[2] = (uint8_t)event->side;
  out[3] = event->last ? FLAG_LAST : 0;
  ob_put_i64(out + 8, event->timestamp_ms);
  ob_put_i64(out + 16, event->contract);
  ob_put_i64(out + 24, event->sequence);
  ob_put_i64(out + 32, event->contract_sequence);
  ob_put_i64(out + 40, event->order);
  ob_put_i64(out + 48, event->price);
  ob_put_i64(out + 56, event->quantity);
  ob_put_i64(out + 64, event->remaining);
  ob_put_i64(out + 72, event->filled);
  ob_put_i64(out + 80, event->match);
}

/* Bytes 4 to 7 are for later: somebody who sets them means something that is not known here. */
static const char *check_event(const uint8_t *at, size_t size) {
  static const uint8_t zeros[4];
  if (size != OB_EVENT_SIZE) return "payload: an order event has 88 bytes";
  if (at[0] != VERSION) return "payload: version is not 1";
  if (at[1] > OB_DELETED) return "payload: type is above 3";
  if (at[2] > OB_SELL) return "payload: side is above 2";
  if (at[3] > FLAG_LAST) return "payload: flags are above 1";
  if (memcmp(at + 4, zeros, sizeof zeros) != 0) return "payload: bytes 4 to 7 are not 0";
  return NULL;
}

const char *ob_event_decode(const void *data, size_t size, struct ob_event *out) {
  const uint8_t *at = data;
  const char *wrong = check_event(at, size);
  if (wrong) return wrong;
  *out = (struct ob_event){.type = (enum ob_type)at[1],
                           .side = (enum ob_side)at[2],
                           .last = at[3] == FLAG_LAST,
                           .timestamp_ms = ob_get_i64(at + 8),
                           .contract = ob_get_i64(at + 16),
                           .sequence = ob_get_i64(at + 24),
                           .contract_sequence = ob_get_i64(at + 32),
                           .order = ob_get_i64(at + 40),
                           .price = ob_get_i64(at + 48),
                           .quantity = ob_get_i64(at + 56),
                           .remaining = ob_get_i64(at + 64),
                           .filled = ob_get_i64(at + 72),
                           .match = ob_get_i64(at + 80)};
  return NULL;
}

/* ---- depths */

void ob_depth_encode_header(const struct ob_depth *depth, uint8_t out[OB_DEPTH_HEADER_SIZE]) {
  memset(out, 0, 8);
  out[0] = VERSION;
  out[1] = (uint8_t)((depth->has_trade ? FLAG_TRADE : 0) | (depth->final ? FLAG_FINAL : 0));
  put_u16(out + 4, depth->bids);
  put_u16(out + 6, depth->offers);
  ob_put_i64(out + 8, depth->timestamp_ms);
  ob_put_i64(out + 16, depth->contract);
  ob_put_i64(out + 24, depth->sequence);
  ob_put_i64(out + 32, depth->contract_sequence);
  ob_put_i64(out + 40, depth->has_trade ? depth->trade_price : 0);
  ob_put_i64(out + 48, depth->has_trade ? depth->trade_quantity : 0);
}

void ob_level_encode(struct ob_level level, uint8_t out[OB_LEVEL_SIZE]) {
  ob_put_i64(out, level.price);
  ob_put_i64(out + 8, level.quantity);
}

struct ob_level ob_level_decode(const uint8_t at[OB_LEVEL_SIZE]) {
  return (struct ob_level){ob_get_i64(at), ob_get_i64(at + 8)};
}

static const char *check_depth(const uint8_t *at, size_t size) {
  if (size < OB_DEPTH_HEADER_SIZE) return "depth: below 56 bytes";
  if (at[0] != VERSION) return "depth: version is not 1";
  if (at[1] > (FLAG_TRADE | FLAG_FINAL)) return "depth: flags are above 3";
  size_t levels = (size_t)get_u16(at + 4) + get_u16(at + 6);
  if (size != OB_DEPTH_HEADER_SIZE + levels * OB_LEVEL_SIZE) {
    return "depth: its size is not that of its levels";
  }
  return NULL;
}

const char *ob_depth_decode(const void *data, size_t size, struct ob_depth *out) {
  const uint8_t *at = data;
  const char *wrong = check_depth(at, size);
  if (wrong) return wrong;
  *out = (struct ob_depth){.has_trade = (at[1] & FLAG_TRADE) != 0,
                           .final = (at[1] & FLAG_FINAL) != 0,
                           .bids = get_u16(at + 4),
                           .offers = get_u16(at + 6),
                           .timestamp_ms = ob_get_i64(at + 8),
                           .contract = ob_get_i64(at + 16),
                           .sequence = ob_get_i64(at + 24),
                           .contract_sequence = ob_get_i64(at + 32),
                           .trade_price = ob_get_i64(at + 40),
                           .trade_quantity = ob_get_i64(at + 48),
                           .levels = at + OB_DEPTH_HEADER_SIZE};
  return NULL;
}

struct ob_level ob_depth_level(const struct ob_depth *depth, size_t index) {
  return ob_level_decode(depth->levels + index * OB_LEVEL_SIZE);
}
