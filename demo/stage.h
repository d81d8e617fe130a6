/* What a demonstration plays on: a temporary folder, a real server in it, one client.
 *
 * Complaints go to stderr and begin with the program's name. */
#ifndef DEMO_STAGE_H
#define DEMO_STAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "client/holdback.h"
#include "tests/lib/server.h"

enum { DEMO_WAIT_MS = 20000 };

struct demo_stage {
  struct hbt_tempdir dir;
  struct hbt_server server;
  struct holdback_client *client; /* owned */
};

/* Server up with these flags (NULL: none; else NULL ends them, borrowed), client made. False: said
 * why. */
bool demo_stage_open(struct demo_stage *stage, const char *holdbackd, const char *const *flags);
/* kill -9 of the server, then start it again on the same folder; says what it does. */
bool demo_stage_crash(struct demo_stage *stage);
/* All ends and the folder goes; also where open failed half-way. */
void demo_stage_close(struct demo_stage *stage);
/* Create a stream that starts at 1. */
bool demo_stage_add_stream(struct demo_stage *stage, const char *name);

/* False, and "PROGRAM: what" with the error on stderr. */
bool demo_fail(const char *what, const struct holdback_error *error);
/* `holds`, else the complaint. */
bool demo_expect(bool holds, const char *what);

#endif
