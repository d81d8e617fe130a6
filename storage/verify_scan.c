/* Decides how a place that can't be read is stepped over: the rows behind it are looked for by
 * seeking, ever further on, then back by halves, so that as little as possible is left out. */
#include <string.h>

#include "base/endian.h"
#include "storage/key_internal.h"
#include "storage/verify_internal.h"

enum { WINDOW = 8, ROUNDS = 4 };

void hb_scan_begin(struct hb_scan *scan, struct hb_verify *verify, enum hb_family family,
                   uint64_t stream, struct hb_rocks_iter *view) {
  hb_scan_end(scan);
  scan->verify = verify;
  scan->family = family;
  scan->view = view;
  if (!stream) return;
  struct hb_key start = hb_key_stream(stream);
  struct hb_key end = hb_key_stream_end(stream);
  hb_buf_append(&scan->next, start.data, start.size);
  hb_buf_append(&scan->end, end.data, end.size);
}

static void pause(struct hb_scan *scan) {
  if (scan->iter != scan->view) hb_rocks_iter_destroy(scan->iter);
  scan->iter = NULL;
  scan->at_row = false;
}

void hb_scan_end(struct hb_scan *scan) {
  pause(scan);
  hb_buf_done(&scan->next);
  hb_buf_done(&scan->end);
  hb_buf_done(&scan->from);
  *scan = (struct hb_scan){0};
}

/* ---- stepping over */

static void set(struct hb_buf *buf, struct hb_slice bytes) {
  hb_buf_clear(buf);
  hb_buf_append(buf, bytes.data, bytes.size);
}

static void open_iter(struct hb_scan *scan) {
  struct hb_slice none = {0};
  if (scan->view && !scan->left_view) {
    scan->iter = scan->view;
  } else {
    scan->iter = hb_rocks_iter_create(scan->verify->options.store->engine, scan->family, none,
                                      hb_buf_view(&scan->end));
  }
}

/* The row at or above `key`, or that there is none, can be read. An iterator that has met damage
 * may tell it again elsewhere: a new one for each. */
static bool is_readable(struct hb_scan *scan, struct hb_slice key) {
  pause(scan);
  scan->left_view = true;
  open_iter(scan);
  hb_rocks_iter_seek(scan->iter, key);
  return hb_rocks_iter_error(scan->iter, NULL) == HB_OK;
}

/* Eight bytes of `key` from `at` on, as a number; what is behind its end counts as zeros. */
static uint64_t window_of(struct hb_slice key, size_t at) {
  uint8_t bytes[WINDOW] = {0};
  size_t size = key.size > at ? key.size - at : 0;
  if (size > WINDOW) size = WINDOW;
  if (size) memcpy(bytes, key.data + at, size);
  return hb_get_u64_be(bytes);
}

static void probe_key(struct hb_buf *probe, struct hb_slice low, size_t at, uint64_t number) {
  uint8_t bytes[WINDOW];
  hb_put_u64_be(bytes, number);
  hb_buf_clear(probe);
  hb_buf_append(probe, low.data, at < low.size ? at : low.size);
  for (size_t i = low.size; i < at; i++) hb_buf_append_u8(probe, 0);
  hb_buf_append(probe, bytes, sizeof bytes);
}

/* Narrow (low, high) within the window at `at`: low can't be read, high can. */
static void narrow(struct hb_scan *scan, struct hb_buf *low, struct hb_buf *high, size_t at,
                   uint64_t limit) {
  struct hb_buf probe = {0};
  uint64_t bad = window_of(hb_buf_view(low), at);
  uint64_t good = limit;
  uint64_t step = 1; /* ever further; 0 = back by halves */
  while (good - bad > 1) {
    if (step >= good - bad) step = 0;
    uint64_t number = bad + (step ? step : (good - bad) / 2);
    probe_key(&probe, hb_buf_view(low), at, number);
    if (is_readable(scan, hb_buf_view(&probe))) {
      good = number;
      set(high, hb_buf_view(&probe));
      step = 0;
    } else {
      bad = number;
      step *= 2;
    }
  }
  probe_key(&probe, hb_buf_view(low), at, bad);
  if (hb_slice_compare(hb_buf_view(&probe), hb_buf_view(low)) > 0) set(low, hb_buf_view(&probe));
  hb_buf_done(&probe);
}

static size_t common_prefix(struct hb_slice a, struct hb_slice b) {
  size_t at = 0;
  while (at < a.size && at < b.size && a.data[at] == b.data[at]) at++;
  return at;
}

/* scan->next becomes the first row that can be read behind it, or the end. */
static void step_over(struct hb_scan *scan) {
  struct hb_buf low = {0};
  struct hb_buf high = {0};
  uint8_t beyond[32];
  memset(beyond, 0xFF, sizeof beyond); /* where the family has no end */
  hb_buf_append(&low, scan->next.data, scan->next.size);
  if (scan->end.size) {
    hb_buf_append(&high, scan->end.data, scan->end.size);
  } else {
    hb_buf_append(&high, beyond, sizeof beyond);
  }
  size_t at = common_prefix(hb_buf_view(&low), hb_buf_view(&high));
  uint64_t limit = window_of(hb_buf_view(&high), at);
  for (int round = 0; round < ROUNDS; round++) {
    narrow(scan, &low, &high, at, limit);
    at += WINDOW;
    limit = UINT64_MAX;
  }
  scan->over = !is_readable(scan, hb_buf_view(&high));
  if (hb_rocks_iter_valid(scan->iter)) {
    set(&scan->next, hb_rocks_iter_key(scan->iter));
  } else {
    set(&scan->next, hb_buf_view(&high));
  }
  hb_buf_done(&low);
  hb_buf_done(&high);
}

/* ---- rows */

static void move(struct hb_scan *scan) {
  if (scan->at_row) {
    hb_rocks_iter_next(scan->iter);
    return;
  }
  if (!scan->iter) open_iter(scan);
  hb_rocks_iter_seek(scan->iter, hb_buf_view(&scan->next));
}

void hb_scan_skip(struct hb_scan *scan, struct hb_slice key) {
  set(&scan->next, key);
  scan->at_row = false;
}

enum hb_scan_result hb_scan_next(struct hb_scan *scan, struct hb_slice *out_key,
                                 struct hb_slice *out_value, struct hb_err *err) {
  struct hb_verify *verify = scan->verify;
  if (scan->over) return HB_SCAN_END;
  if (verify->budget <= 0) {
    pause(scan);
    return HB_SCAN_PAUSE;
  }
  move(scan);
  scan->at_row = hb_rocks_iter_valid(scan->iter);
  if (scan->at_row) {
    *out_key = hb_rocks_iter_key(scan->iter);
    *out_value = hb_rocks_iter_value(scan->iter);
    set(&scan->next, *out_key);
    hb_buf_append_u8(&scan->next, 0); /* the first key above it */
    verify->counts.bytes += out_key->size + out_value->size;
    verify->budget -= (int64_t)(out_key->size + out_value->size);
    return HB_SCAN_ROW;
  }
  if (hb_rocks_iter_error(scan->iter, err) == HB_OK) return HB_SCAN_END;
  set(&scan->from, hb_buf_view(&scan->next));
  step_over(scan);
  *out_key = hb_buf_view(&scan->from);
  *out_value = hb_buf_view(&scan->next);
  return HB_SCAN_UNREADABLE;
}
