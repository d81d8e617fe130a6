/* Decides which keys pass: two binary searches an event.
 *
 * Prefixes that begin with another one are dropped, so among the rest only the greatest that is
 * not above the key can be its prefix. */
#include "server/rpc/filter.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

static size_t bytes_of(const ProtobufCBinaryData *list, size_t count) {
  size_t bytes = 0;
  for (size_t i = 0; i < count; i++) bytes += list[i].len;
  return bytes;
}

static enum hb_code check(const Holdback__V1__Filter *from, const struct hb_limits *limits,
                          size_t bytes, struct hb_err *err) {
  size_t count = from->n_keys + from->n_key_prefixes;
  if (count == 0) {
    return hb_err_set(err, HB_INVALID, "FILTER_EMPTY",
                      "filter has neither keys nor key_prefixes; leave it out to get all events");
  }
  if (count > limits->filter_keys_max) {
    return hb_err_set(err, HB_INVALID, "FILTER_TOO_LARGE",
                      "filter has %zu keys and prefixes, filter_keys_max is %" PRIu64, count,
                      limits->filter_keys_max);
  }
  if (bytes > limits->filter_bytes_max) {
    return hb_err_set(err, HB_INVALID, "FILTER_TOO_LARGE",
                      "filter has %zu bytes, filter_bytes_max is %" PRIu64, bytes,
                      limits->filter_bytes_max);
  }
  return HB_OK;
}

static int compare(const void *a, const void *b) {
  return hb_slice_compare(*(const struct hb_slice *)a, *(const struct hb_slice *)b);
}

/* Copy the list's bytes to *at, and make sorted slices of them. */
static struct hb_slice *take(const ProtobufCBinaryData *list, size_t count, uint8_t **at) {
  struct hb_slice *slices = hb_calloc(count + 1, sizeof *slices);
  for (size_t i = 0; i < count; i++) {
    if (list[i].len) memcpy(*at, list[i].data, list[i].len);
    slices[i] = hb_slice_of(*at, list[i].len);
    *at += list[i].len;
  }
  qsort(slices, count, sizeof *slices, compare);
  return slices;
}

/* Sorted, so what begins with a prefix comes right after it. */
static size_t drop_covered(struct hb_slice *prefixes, size_t count) {
  size_t kept = 0;
  for (size_t i = 0; i < count; i++) {
    if (kept > 0 && hb_slice_starts_with(prefixes[i], prefixes[kept - 1])) continue;
    prefixes[kept++] = prefixes[i];
  }
  return kept;
}

enum hb_code hb_filter_init(const Holdback__V1__Filter *from, const struct hb_limits *limits,
                            struct hb_filter *out, struct hb_err *err) {
  if (!from) {
    *out = (struct hb_filter){0};
    return HB_OK;
  }
  size_t bytes =
      bytes_of(from->keys, from->n_keys) + bytes_of(from->key_prefixes, from->n_key_prefixes);
  enum hb_code code = check(from, limits, bytes, err);
  if (code) return code;
  struct hb_filter filter = {.active = true, .bytes = hb_alloc(bytes)};
  uint8_t *at = filter.bytes;
  filter.keys_count = from->n_keys;
  filter.keys = take(from->keys, from->n_keys, &at);
  filter.prefixes = take(from->key_prefixes, from->n_key_prefixes, &at);
  filter.prefixes_count = drop_covered(filter.prefixes, from->n_key_prefixes);
  *out = filter;
  return HB_OK;
}

void hb_filter_done(struct hb_filter *filter) {
  free(filter->keys);
  free(filter->prefixes);
  free(filter->bytes);
  *filter = (struct hb_filter){0};
}

/* How many of the sorted slices are <= key. */
static size_t count_up_to(const struct hb_slice *slices, size_t count, struct hb_slice key) {
  size_t low = 0;
  size_t high = count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (hb_slice_compare(slices[middle], key) <= 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

bool hb_filter_matches(const struct hb_filter *filter, struct hb_slice key) {
  if (!filter->active) return true;
  size_t below = count_up_to(filter->keys, filter->keys_count, key);
  if (below > 0 && hb_slice_equal(filter->keys[below - 1], key)) return true;
  below = count_up_to(filter->prefixes, filter->prefixes_count, key);
  return below > 0 && hb_slice_starts_with(key, filter->prefixes[below - 1]);
}
