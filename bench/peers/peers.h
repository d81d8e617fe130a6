/* What a user would take instead, driven as its own documentation says: Redis Streams and NATS
 * JetStream, from Debian's packages (bench/install.sh). They get the events in order already, for
 * they put nothing right. */
#ifndef HB_BENCH_PEERS_PEERS_H
#define HB_BENCH_PEERS_PEERS_H

#include "bench/run.h"

extern const struct hb_system hb_system_redis_always;   /* appendfsync always */
extern const struct hb_system hb_system_redis_everysec; /* appendfsync everysec */
extern const struct hb_system hb_system_nats;           /* file storage, default sync */

/* NULL: it can be measured here; else why not. */
const char *hb_redis_missing(void);
const char *hb_nats_missing(void);

/* A program in one of Debian's folders, or NULL. */
const char *hb_find_program(const char *const *paths);

#endif
