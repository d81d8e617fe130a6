/* Decides which character stands for a slice of a range. Sequences span 64 bits: the arithmetic
 * is unsigned and 128 bits wide. */
#include "client/cmd/picture.h"

__extension__ typedef unsigned __int128 wide;

/* Position of a sequence, counted from the start of the range and cut to it. */
static uint64_t offset_of(int64_t sequence, int64_t start, uint64_t size) {
  if (sequence <= start) return 0;
  uint64_t offset = (uint64_t)sequence - (uint64_t)start;
  return offset < size ? offset : size;
}

/* How many of [from, to) the gaps take. */
static uint64_t missing_in(uint64_t from, uint64_t to, int64_t start, uint64_t size,
                           const struct holdback_gap *gaps, size_t gaps_count) {
  uint64_t missing = 0;
  for (size_t i = 0; i < gaps_count; i++) {
    uint64_t gap_from = offset_of(gaps[i].start, start, size);
    uint64_t gap_to = offset_of(gaps[i].end, start, size);
    if (gap_from < from) gap_from = from;
    if (gap_to > to) gap_to = to;
    if (gap_from < gap_to) missing += gap_to - gap_from;
  }
  return missing;
}

size_t picture_draw(int64_t start, int64_t end, const struct holdback_gap *gaps, size_t gaps_count,
                    char *out, size_t width) {
  uint64_t size = (uint64_t)end - (uint64_t)start;
  if (size < width) width = (size_t)size;
  for (size_t i = 0; i < width; i++) {
    uint64_t from = (uint64_t)((wide)size * i / width);
    uint64_t to = (uint64_t)((wide)size * (i + 1) / width);
    uint64_t missing = missing_in(from, to, start, size, gaps, gaps_count);
    out[i] = missing == 0 ? '#' : missing == to - from ? '.' : '+';
  }
  out[width] = '\0';
  return width;
}
