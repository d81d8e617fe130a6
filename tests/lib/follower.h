/* A subscriber on a thread of its own that accepts nothing but the next made event.
 *
 * It starts at the stream's first event and lives through the server's crashes: the library
 * resumes at next_position. What it has seen is at each moment exactly first .. next-1, each once;
 * anything else is a failure that next calls report. */
#ifndef TESTS_LIB_FOLLOWER_H
#define TESTS_LIB_FOLLOWER_H

#include <stdbool.h>
#include <stdint.h>

#include "client/holdback.h"

struct hbt_follower;

/* `server` as for holdback_options; the follower has a client of its own. */
struct hbt_follower *hbt_follower_start(const char *server, const char *stream, int64_t first);
/* Wait until `next` is the next one due. False: not in time, or a failure (on stderr). */
bool hbt_follower_wait(struct hbt_follower *follower, int64_t next, uint32_t timeout_ms);
/* The same, but further is good too. */
bool hbt_follower_wait_beyond(struct hbt_follower *follower, int64_t next, uint32_t timeout_ms);
/* The next one due now; INT64_MIN after a failure. */
int64_t hbt_follower_next(struct hbt_follower *follower);
/* Ends its thread. True: no failure up to now. NULL is allowed (and true). */
bool hbt_follower_destroy(struct hbt_follower *follower);

/* One pass: subscribe at `first` with a fresh client, take what is there until caught up with a
 * frontier of at least `frontier`. True: it was exactly first .. frontier-1 or more of the same. */
bool hbt_follow_once(const char *server, const char *stream, int64_t first, int64_t frontier);

#endif
