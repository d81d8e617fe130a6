/* Decides how a key lies in bytes. A NUL inside a user's key becomes 00 FF and the key ends with
 * 00 00, so that a shorter key sorts before what it begins ("a" < "a\0" < "ab"), and all keys that
 * start with some bytes lie together: they start with the escaped bytes, without the end. */
#include "storage/key_internal.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/endian.h"

enum { FAILURE = 64 }; /* beside the outcomes */
enum { ESCAPED = 0xFF, END = 0x00, AFTER_END = 0x01 };

struct hb_slice hb_key_view(const struct hb_key *key) {
  return hb_slice_of(key->data, key->size);
}

static void add_u8(struct hb_key *key, uint8_t value) { key->data[key->size++] = value; }

static void add_u32(struct hb_key *key, uint32_t value) {
  hb_put_u32_be(key->data + key->size, value);
  key->size += sizeof value;
}

static void add_u64(struct hb_key *key, uint64_t value) {
  HB_ASSERT(key->size + sizeof value <= sizeof key->data);
  hb_put_u64_be(key->data + key->size, value);
  key->size += sizeof value;
}

static int64_t get_i64(const uint8_t *at) { return hb_unflip_sign(hb_get_u64_be(at)); }

struct hb_key hb_key_stream(uint64_t stream) {
  struct hb_key key = {.size = 0};
  add_u64(&key, stream);
  return key;
}

struct hb_key hb_key_stream_end(uint64_t stream) {
  if (stream != UINT64_MAX) return hb_key_stream(stream + 1);
  struct hb_key key = {.size = sizeof key.data};
  memset(key.data, 0xFF, sizeof key.data);
  return key;
}

bool hb_key_parse_stream(struct hb_slice key, uint64_t *out_stream) {
  if (key.size < 9) return false; /* each row has something after its stream */
  *out_stream = hb_get_u64_be(key.data);
  return true;
}

struct hb_key hb_key_streams_row(uint64_t stream, enum hb_stream_kind kind) {
  struct hb_key key = hb_key_stream(stream);
  add_u8(&key, (uint8_t)kind);
  return key;
}

struct hb_key hb_key_position(uint64_t stream, int64_t position) {
  struct hb_key key = hb_key_stream(stream);
  add_u64(&key, hb_flip_sign(position));
  return key;
}

struct hb_key hb_key_bundle(struct hb_bundle_id id) {
  struct hb_key key = hb_key_stream(id.stream);
  add_u64(&key, id.commit);
  add_u32(&key, id.part);
  return key;
}

struct hb_key hb_key_unprocessed(uint64_t stream, enum hb_outcome outcome, int64_t sequence,
                                 uint64_t content_hash) {
  struct hb_key key = hb_key_stream(stream);
  add_u8(&key, (uint8_t)outcome);
  add_u64(&key, hb_flip_sign(sequence));
  add_u64(&key, content_hash);
  return key;
}

struct hb_key hb_key_peer(uint32_t peer) {
  struct hb_key key = {.size = 0};
  add_u32(&key, peer);
  return key;
}

bool hb_key_parse_position(struct hb_slice key, uint64_t *out_stream, int64_t *out_position) {
  if (key.size != 16) return false;
  *out_stream = hb_get_u64_be(key.data);
  *out_position = get_i64(key.data + 8);
  return true;
}

bool hb_key_parse_bundle(struct hb_slice key, struct hb_bundle_id *out) {
  if (key.size != 20) return false;
  *out = (struct hb_bundle_id){.stream = hb_get_u64_be(key.data),
                               .commit = hb_get_u64_be(key.data + 8),
                               .part = hb_get_u32_be(key.data + 16)};
  return true;
}

bool hb_key_parse_unprocessed(struct hb_slice key, uint64_t *out_stream,
                              enum hb_outcome *out_outcome, int64_t *out_sequence,
                              uint64_t *out_content_hash) {
  if (key.size != 25) return false;
  uint8_t outcome = key.data[8];
  if (outcome == HB_OUTCOME_NONE || outcome > HB_OUTCOME_WINDOW_FULL) return false;
  *out_stream = hb_get_u64_be(key.data);
  *out_outcome = (enum hb_outcome)outcome;
  *out_sequence = get_i64(key.data + 9);
  *out_content_hash = hb_get_u64_be(key.data + 17);
  return true;
}

struct hb_key hb_key_failure(uint64_t stream, int64_t position, uint64_t hash) {
  return hb_key_unprocessed(stream, (enum hb_outcome)FAILURE, position, hash);
}

bool hb_key_is_failure(struct hb_slice key) { return key.size == 25 && key.data[8] == FAILURE; }

bool hb_key_parse_failure(struct hb_slice key, uint64_t *out_stream, int64_t *out_position,
                          uint64_t *out_hash) {
  if (!hb_key_is_failure(key)) return false;
  *out_stream = hb_get_u64_be(key.data);
  *out_position = get_i64(key.data + 9);
  *out_hash = hb_get_u64_be(key.data + 17);
  return true;
}

bool hb_key_parse_peer(struct hb_slice key, uint32_t *out_peer) {
  if (key.size != 4) return false;
  *out_peer = hb_get_u32_be(key.data);
  return true;
}

static void append_escaped(struct hb_buf *out, struct hb_slice prefix) {
  while (prefix.size) {
    const uint8_t *nul = memchr(prefix.data, 0, prefix.size);
    size_t plain = nul ? (size_t)(nul - prefix.data) + 1 : prefix.size;
    hb_buf_append(out, prefix.data, plain);
    if (nul) hb_buf_append_u8(out, ESCAPED);
    prefix = hb_slice_of(prefix.data + plain, prefix.size - plain);
  }
}

void hb_key_list_prefix(struct hb_buf *out, uint64_t stream, struct hb_slice prefix) {
  /* Room for every byte escaped, the end and a position: one reservation per key. */
  uint8_t *at = hb_buf_reserve(out, 8 + 2 * prefix.size + 2 + 8);
  hb_put_u64_be(at, stream);
  out->size += 8;
  append_escaped(out, prefix);
}

void hb_key_list(struct hb_buf *out, uint64_t stream, struct hb_slice key, int64_t position) {
  hb_key_list_prefix(out, stream, key);
  uint8_t *at = hb_buf_reserve(out, 10);
  at[0] = END;
  at[1] = END;
  hb_put_u64_be(at + 2, hb_flip_sign(position));
  out->size += 10;
}

void hb_key_list_after(struct hb_buf *out, uint64_t stream, struct hb_slice key) {
  hb_key_list_prefix(out, stream, key);
  hb_buf_append_u8(out, END);
  hb_buf_append_u8(out, AFTER_END);
}

/* Put the key that starts at *at into `key`; *at and *left are what follows its end. */
static bool take_escaped(const uint8_t **from, size_t *rest, struct hb_buf *key) {
  const uint8_t *at = *from;
  size_t left = *rest;
  hb_buf_clear(key);
  for (;;) {
    const uint8_t *nul = memchr(at, 0, left);
    if (!nul || nul + 1 == at + left) return false;
    bool ends = nul[1] == END;
    if (!ends && nul[1] != ESCAPED) return false;
    hb_buf_append(key, at, (size_t)(nul - at) + (ends ? 0 : 1));
    left -= (size_t)(nul - at) + 2;
    at = nul + 2;
    if (ends) break;
  }
  *from = at;
  *rest = left;
  return true;
}

bool hb_key_parse_list(struct hb_slice row, uint64_t *out_stream, struct hb_buf *key,
                       int64_t *out_position) {
  hb_buf_clear(key);
  if (row.size < 18) return false;
  const uint8_t *at = row.data + 8;
  size_t left = row.size - 8;
  if (!take_escaped(&at, &left, key) || left != 8) return false;
  *out_stream = hb_get_u64_be(row.data);
  *out_position = get_i64(at);
  return true;
}

/* ---- processors */

static void add_processor(struct hb_key *key, struct hb_processor_id id) {
  add_u64(key, id.stream);
  add_u64(key, id.processor);
}

struct hb_key hb_key_processor_row(struct hb_processor_id id, enum hb_processor_part part) {
  struct hb_key key = hb_key_streams_row(id.stream, HB_KIND_PROCESSOR);
  add_u64(&key, id.processor);
  add_u8(&key, (uint8_t)part);
  return key;
}

bool hb_key_parse_processor_row(struct hb_slice key, struct hb_processor_id *out,
                                enum hb_processor_part *out_part) {
  if (key.size != 18 || key.data[8] != HB_KIND_PROCESSOR) return false;
  uint8_t part = key.data[17];
  if (part != HB_PART_CONFIG && part != HB_PART_PLACE && part != HB_PART_ATTEMPT) return false;
  *out = (struct hb_processor_id){.stream = hb_get_u64_be(key.data),
                                  .processor = hb_get_u64_be(key.data + 9)};
  *out_part = (enum hb_processor_part)part;
  return true;
}

struct hb_key hb_key_processor(struct hb_processor_id id) {
  struct hb_key key = {.size = 0};
  add_processor(&key, id);
  return key;
}

struct hb_key hb_key_processor_end(struct hb_processor_id id) {
  if (id.processor == UINT64_MAX) return hb_key_stream_end(id.stream);
  id.processor++;
  return hb_key_processor(id);
}

struct hb_key hb_key_result(struct hb_processor_id id, int64_t position) {
  struct hb_key key = hb_key_processor(id);
  add_u64(&key, hb_flip_sign(position));
  return key;
}

static struct hb_processor_id get_processor(const uint8_t *at) {
  return (struct hb_processor_id){.stream = hb_get_u64_be(at), .processor = hb_get_u64_be(at + 8)};
}

bool hb_key_parse_result(struct hb_slice key, struct hb_processor_id *out, int64_t *out_position) {
  if (key.size != 24) return false;
  *out = get_processor(key.data);
  *out_position = get_i64(key.data + 16);
  return true;
}

static void append_processor(struct hb_buf *out, struct hb_processor_id id) {
  struct hb_key prefix = hb_key_processor(id);
  hb_buf_append(out, prefix.data, prefix.size);
}

void hb_key_state(struct hb_buf *out, struct hb_processor_id id, struct hb_slice key,
                  struct hb_slice name) {
  append_processor(out, id);
  append_escaped(out, key);
  hb_buf_append_u8(out, END);
  hb_buf_append_u8(out, END);
  hb_buf_append(out, name.data, name.size);
}

void hb_key_state_after(struct hb_buf *out, struct hb_processor_id id, struct hb_slice key) {
  append_processor(out, id);
  append_escaped(out, key);
  hb_buf_append_u8(out, END);
  hb_buf_append_u8(out, AFTER_END);
}

bool hb_key_parse_state(struct hb_slice row, struct hb_processor_id *out, struct hb_buf *key,
                        struct hb_slice *out_name) {
  hb_buf_clear(key);
  if (row.size < 18) return false;
  const uint8_t *at = row.data + 16;
  size_t left = row.size - 16;
  if (!take_escaped(&at, &left, key)) return false;
  *out = get_processor(row.data);
  *out_name = hb_slice_of(at, left);
  return true;
}

void hb_key_timer(struct hb_buf *out, struct hb_processor_id id, const struct hb_timer_row *timer) {
  append_processor(out, id);
  uint8_t *at = hb_buf_reserve(out, 12);
  hb_put_u64_be(at, hb_flip_sign(timer->time.seconds));
  hb_put_u32_be(at + 8, (uint32_t)timer->time.nanos);
  out->size += 12;
  append_escaped(out, timer->key);
  at = hb_buf_reserve(out, 10);
  at[0] = END;
  at[1] = END;
  hb_put_u64_be(at + 2, timer->creation);
  out->size += 10;
}

bool hb_key_parse_timer(struct hb_slice row, struct hb_processor_id *out_id, struct hb_buf *key,
                        struct hb_timer_row *out) {
  hb_buf_clear(key);
  if (row.size < 28 + 10) return false;
  uint32_t nanos = hb_get_u32_be(row.data + 24);
  const uint8_t *at = row.data + 28;
  size_t left = row.size - 28;
  if (nanos > 999999999 || !take_escaped(&at, &left, key) || left != 8) return false;
  *out_id = get_processor(row.data);
  out->time =
      (struct hb_time){.seconds = get_i64(row.data + 16), .nanos = (int32_t)nanos, .present = true};
  out->key = hb_buf_view(key);
  out->creation = hb_get_u64_be(at);
  return true;
}

bool hb_key_after_prefix(struct hb_slice prefix, struct hb_buf *out) {
  size_t size = prefix.size;
  while (size && prefix.data[size - 1] == 0xFF) size--;
  if (!size) return false;
  hb_buf_clear(out);
  hb_buf_append(out, prefix.data, size);
  out->data[size - 1]++;
  return true;
}

const char *hb_key_text(struct hb_slice key, char text[HB_KEY_TEXT_SIZE]) {
  enum { SHOWN = 32 };
  size_t shown = key.size < SHOWN ? key.size : SHOWN;
  size_t used = 0;
  text[0] = '\0';
  for (size_t i = 0; i < shown; i++) {
    used += (size_t)snprintf(text + used, HB_KEY_TEXT_SIZE - used, "%02x", key.data[i]);
  }
  if (key.size > SHOWN) (void)snprintf(text + used, HB_KEY_TEXT_SIZE - used, "...");
  return text;
}
