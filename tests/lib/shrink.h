/* The fewest steps that still fail.
 *
 * A trial runs a part of the steps in a child of its own, so that whatever an error does there
 * (an assertion, a crash, an endless loop) ends the child and not the search. */
#ifndef TESTS_LIB_SHRINK_H
#define TESTS_LIB_SHRINK_H

#include <stdbool.h>
#include <stddef.h>

/* In the child: do the steps that are kept, in order. 0: all is well. May not come back. */
typedef int hbt_trial(void *context, const bool *keep, size_t count);

/* The process must have no other thread. `quiet`: what the child prints goes nowhere. */
bool hbt_trial_fails(hbt_trial *trial, void *context, const bool *keep, size_t count, bool quiet);

/* `keep` fails; drop as many as possible, chunks first, then one by one, until none can go or
 * `trials_max` trials were made. The failure in the end need not be the one in the beginning.
 * Returns how many are kept. */
size_t hbt_shrink(hbt_trial *trial, void *context, bool *keep, size_t count, unsigned trials_max);

/* "3,17,80" in static memory, and back. False: not a list of numbers below `count`. */
const char *hbt_steps_text(const bool *keep, size_t count);
bool hbt_steps_parse(const char *text, bool *keep, size_t count);

#endif
