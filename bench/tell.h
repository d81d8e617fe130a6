/* How points and goals are shown: on the terminal, and as JSON. */
#ifndef HB_BENCH_TELL_H
#define HB_BENCH_TELL_H

#include <jansson.h>

#include "bench/suite.h"

void hb_tell_head(void);
void hb_tell_point(const char *row, const struct hb_point *point);
void hb_tell_goal(const struct hb_goal *goal);
/* All of them once more, below each other. */
void hb_tell_goals(const json_t *goals);

/* New references. */
json_t *hb_json_point(const char *row, const struct hb_point *point);
json_t *hb_json_goal(const struct hb_goal *goal);

#endif
