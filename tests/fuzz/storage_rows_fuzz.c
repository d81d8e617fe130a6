/* Keys and values of rows. The first byte chooses a decoder; what it takes must be made again byte
 * by byte by the encoder: else two byte strings would mean one row. */
#include "base/assert.h"
#include "base/slice.h"
#include "storage/key_internal.h"
#include "storage/record_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void is_same(struct hb_slice bytes, struct hb_slice again) {
  HB_ASSERT(hb_slice_equal(bytes, again));
}

static void is_same_key(struct hb_slice bytes, struct hb_key key) {
  is_same(bytes, hb_key_view(&key));
}

static void read_key(uint8_t which, struct hb_slice bytes) {
  uint64_t stream;
  uint64_t hash;
  int64_t position;
  enum hb_outcome outcome;
  struct hb_bundle_id id;
  uint32_t peer;
  switch (which) {
    case 0:
      if (hb_key_parse_position(bytes, &stream, &position)) {
        is_same_key(bytes, hb_key_position(stream, position));
      }
      break;
    case 1:
      if (hb_key_parse_bundle(bytes, &id)) is_same_key(bytes, hb_key_bundle(id));
      break;
    case 2:
      if (hb_key_parse_unprocessed(bytes, &stream, &outcome, &position, &hash)) {
        is_same_key(bytes, hb_key_unprocessed(stream, outcome, position, hash));
      }
      break;
    default:
      if (hb_key_parse_peer(bytes, &peer)) is_same_key(bytes, hb_key_peer(peer));
      break;
  }
}

static void read_list_key(struct hb_slice bytes) {
  uint64_t stream;
  int64_t position;
  struct hb_buf key = {0};
  struct hb_buf again = {0};
  if (hb_key_parse_list(bytes, &stream, &key, &position)) {
    hb_key_list(&again, stream, hb_buf_view(&key), position);
    is_same(bytes, hb_buf_view(&again));
  }
  hb_buf_done(&key);
  hb_buf_done(&again);
}

static void read_small(uint8_t which, struct hb_slice bytes, struct hb_buf *out) {
  struct hb_gap gap = {.start = INT64_MIN};
  struct hb_run_record run;
  struct hb_slice text;
  uint64_t number;
  if (which == 0 && hb_record_get_gap(bytes, &gap, NULL) == HB_OK) {
    hb_record_put_gap(out, &gap);
  } else if (which == 1 && hb_record_get_run(bytes, &run, NULL) == HB_OK) {
    hb_record_put_run(out, run);
  } else if (which == 2 && hb_record_get_bytes(bytes, &text, NULL) == HB_OK) {
    hb_record_put_bytes(out, text);
  } else if (which == 3 && hb_record_get_u64(bytes, &number, NULL) == HB_OK) {
    hb_record_put_u64(out, number);
  }
}

static void read_large(uint8_t which, struct hb_slice bytes, struct hb_buf *out) {
  struct hb_stream_config config;
  struct hb_frontier record;
  struct hb_unprocessed row = {0};
  struct hb_index_entry entry = {0};
  struct hb_log_data data;
  if (which == 0 && hb_record_get_config(bytes, &config, NULL) == HB_OK) {
    hb_record_put_config(out, &config);
  } else if (which == 1 && hb_record_get_frontier(bytes, &record, NULL) == HB_OK) {
    hb_record_put_frontier(out, &record);
  } else if (which == 2 && hb_record_get_unprocessed(bytes, &row, NULL) == HB_OK) {
    hb_record_put_unprocessed(out, &row);
  } else if (which == 3 && hb_record_get_index(bytes, &entry, NULL) == HB_OK) {
    uint8_t value[HB_RECORD_INDEX_SIZE];
    hb_record_put_index(value, &entry);
    hb_buf_append(out, value, sizeof value);
  } else if (which == 4 && hb_log_data_get(bytes, &data, NULL) == HB_OK) {
    uint8_t value[HB_LOG_DATA_SIZE];
    hb_log_data_put(value, data);
    hb_buf_append(out, value, sizeof value);
  }
}

/* Merging never fails, whatever the operands are. */
static void merge(struct hb_slice bytes) {
  struct hb_buf out = {0};
  size_t half = bytes.size / 2;
  hb_record_merge_unprocessed(hb_slice_of(bytes.data, half),
                              hb_slice_of(bytes.data + half, bytes.size - half), &out);
  hb_buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (!size) return 0;
  uint8_t which = data[0] % 15;
  struct hb_slice bytes = hb_slice_of(data + 1, size - 1);
  struct hb_buf again = {0};
  if (which < 4) {
    read_key(which, bytes);
  } else if (which == 4) {
    read_list_key(bytes);
  } else if (which < 9) {
    read_small(which - 5, bytes, &again);
  } else if (which < 14) {
    read_large(which - 9, bytes, &again);
  } else {
    merge(bytes);
  }
  if (again.size) is_same(bytes, hb_buf_view(&again));
  hb_buf_done(&again);
  return 0;
}
