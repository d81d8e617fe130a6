/* What a number in a payload looks like: decimal text, a sign, digits, and at most nine decimals
 * after a point, between -2^63 and 2^63. Kept exactly, as a count of billionths: sums do not depend
 * on rounding, so results are the same on every machine. */
#ifndef HB_PROCESSING_NUMBER_H
#define HB_PROCESSING_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "processing/holdback/processor.h"

typedef __int128 hb_number; /* in billionths */

enum { HB_NUMBER_TEXT_SIZE = 56 };

/* False: `error` says what is wrong with it. */
bool hb_number_parse(struct hbp_bytes text, hb_number *out, char *error, size_t error_size);
/* The shortest text of it; returns its size without the NUL. */
size_t hb_number_print(hb_number number, char out[HB_NUMBER_TEXT_SIZE]);
/* Likewise of a count; a tenth of what snprintf takes, and it is done for each event. */
size_t hb_number_print_count(uint64_t count, char out[HB_NUMBER_TEXT_SIZE]);
/* False: out of range. */
bool hb_number_add(hb_number a, hb_number b, hb_number *out);
/* sum / count, rounded half away from zero. count > 0. */
hb_number hb_number_mean(hb_number sum, unsigned long count);

#endif
