/* A range of sequences drawn on one line: what is there and what is missing. */
#ifndef HB_CLIENT_CMD_PICTURE_H
#define HB_CLIENT_CMD_PICTURE_H

#include <stddef.h>

#include "client/holdback.h"

/* Draw [start, end) with start < end on `width` characters (and a NUL, out has width + 1):
 * '#' all is there, '.' nothing is, '+' some is. A range shorter than `width` is drawn with one
 * character per sequence; returns the characters drawn. Gaps ascend; parts of them that lie
 * outside are left out. */
size_t picture_draw(int64_t start, int64_t end, const struct holdback_gap *gaps, size_t gaps_count,
                    char *out, size_t width);

#endif
