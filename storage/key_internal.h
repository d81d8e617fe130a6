/* Keys of rows, so that byte order is the order that is read in: integers big-endian, signed ones
 * with the sign bit flipped, a key of the user with its NULs escaped and a terminator after it.
 * docs/FORMAT.md has the byte tables. Parsers return false for what is no such key. Pure. */
#ifndef HB_STORAGE_KEY_INTERNAL_H
#define HB_STORAGE_KEY_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "base/types.h"
#include "storage/processor_rows.h"

/* A key of bounded size. */
struct hb_key {
  uint8_t data[32];
  size_t size;
};
struct hb_slice hb_key_view(const struct hb_key *key);

/* Kinds of rows in `streams`. Those of processors ('p' and more) are kept but not read here. */
enum hb_stream_kind {
  HB_KIND_CONFIG = 'c',
  HB_KIND_DELETING = 'd',
  HB_KIND_FRONTIER = 'f',
  HB_KIND_INDEXED_TO = 'i',
  HB_KIND_PROCESSOR = 'p'
};
/* Rows of one processor: streams, stream, 'p', processor, part. */
enum hb_processor_part {
  HB_PART_CONFIG = 'c',
  HB_PART_PLACE = 'p',
  HB_PART_ATTEMPT = 'a',
  HB_PART_END = 0xFF /* above them all */
};

/* What every row of a stream starts with, and the first key after them all. */
struct hb_key hb_key_stream(uint64_t stream);
struct hb_key hb_key_stream_end(uint64_t stream);
bool hb_key_parse_stream(struct hb_slice key, uint64_t *out_stream);

struct hb_key hb_key_streams_row(uint64_t stream, enum hb_stream_kind kind);
struct hb_key hb_key_position(uint64_t stream, int64_t position); /* log, gaps */
struct hb_key hb_key_bundle(struct hb_bundle_id id);
struct hb_key hb_key_unprocessed(uint64_t stream, enum hb_outcome outcome, int64_t sequence,
                                 uint64_t content_hash);
struct hb_key hb_key_peer(uint32_t peer);
bool hb_key_parse_position(struct hb_slice key, uint64_t *out_stream, int64_t *out_position);
bool hb_key_parse_bundle(struct hb_slice key, struct hb_bundle_id *out);
bool hb_key_parse_unprocessed(struct hb_slice key, uint64_t *out_stream,
                              enum hb_outcome *out_outcome, int64_t *out_sequence,
                              uint64_t *out_content_hash);
/* What a processor gave up, in the same family; the outcome is a number of its own. */
struct hb_key hb_key_failure(uint64_t stream, int64_t position, uint64_t hash);
bool hb_key_is_failure(struct hb_slice key);
bool hb_key_parse_failure(struct hb_slice key, uint64_t *out_stream, int64_t *out_position,
                          uint64_t *out_hash);
bool hb_key_parse_peer(struct hb_slice key, uint32_t *out_peer);

/* lists: appended to `out`. A prefix is what every row has whose key starts with `prefix`. */
void hb_key_list_prefix(struct hb_buf *out, uint64_t stream, struct hb_slice prefix);
void hb_key_list(struct hb_buf *out, uint64_t stream, struct hb_slice key, int64_t position);
/* Above every row of `key`, below every row of the next key. */
void hb_key_list_after(struct hb_buf *out, uint64_t stream, struct hb_slice key);
/* The user's key is put into `key`, which is cleared first. */
bool hb_key_parse_list(struct hb_slice row, uint64_t *out_stream, struct hb_buf *key,
                       int64_t *out_position);
/* ---- a processor's rows */
struct hb_key hb_key_processor_row(struct hb_processor_id id, enum hb_processor_part part);
bool hb_key_parse_processor_row(struct hb_slice key, struct hb_processor_id *out,
                                enum hb_processor_part *out_part);
/* What its rows in states, timers and results start with, and the first key after them. */
struct hb_key hb_key_processor(struct hb_processor_id id);
struct hb_key hb_key_processor_end(struct hb_processor_id id);
struct hb_key hb_key_result(struct hb_processor_id id, int64_t position);
bool hb_key_parse_result(struct hb_slice key, struct hb_processor_id *out, int64_t *out_position);
/* Appended to `out`. */
void hb_key_state(struct hb_buf *out, struct hb_processor_id id, struct hb_slice key,
                  struct hb_slice name);
/* Above every state of `key`, below those of the next one. */
void hb_key_state_after(struct hb_buf *out, struct hb_processor_id id, struct hb_slice key);
/* The user's key is put into `key`, which is cleared first; the name is borrowed from `row`. */
bool hb_key_parse_state(struct hb_slice row, struct hb_processor_id *out, struct hb_buf *key,
                        struct hb_slice *out_name);
void hb_key_timer(struct hb_buf *out, struct hb_processor_id id, const struct hb_timer_row *timer);
/* out->key is put into `key`; out->name is left alone, it is the row's value. */
bool hb_key_parse_timer(struct hb_slice row, struct hb_processor_id *out_id, struct hb_buf *key,
                        struct hb_timer_row *out);

/* The shortest bytes above everything that starts with `prefix`; false: there are none. */
bool hb_key_after_prefix(struct hb_slice prefix, struct hb_buf *out);

/* For messages: the first bytes as hex. Returns `text`. */
enum { HB_KEY_TEXT_SIZE = 72 };
const char *hb_key_text(struct hb_slice key, char text[HB_KEY_TEXT_SIZE]);

#endif
