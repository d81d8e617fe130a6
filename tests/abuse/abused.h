/* A server that is abused, and must be well at the end. */
#ifndef TESTS_ABUSE_ABUSED_H
#define TESTS_ABUSE_ABUSED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/holdback.h"
#include "tests/lib/server.h"
#include "tests/lib/tempdir.h"

struct hba_world {
  struct hbt_tempdir dir;
  struct hbt_server server; /* not started yet: flags may be set */
};
/* cmocka's set-up and tear-down: the state is a struct hba_world, and nothing of it is left, not
 * even after a failure. `binary` is borrowed, as is the name of the folder. */
void hba_init(const char *binary, const char *name);
int hba_setup(void **state);
int hba_teardown(void **state);

/* --full among the arguments: the full sizes instead of the gate's. */
bool hba_is_full(int argc, char **argv);

/* SIGTERM; exit code 0, and the last line says of each kind of object that none lives. Else the
 * end of its log is printed, and the test fails. */
void hba_server_stop_clean(struct hbt_server *server);
/* Its resident memory now; fails where that is more. Not looked at under the sanitizers, which keep
 * what was freed. */
uint64_t hba_server_check_rss(const struct hbt_server *server, uint64_t max_mib);

/* A client of this server; a failure ends the test, as below. */
struct holdback_client *hba_connect(const struct hbt_server *server);
void hba_create_stream(const struct hbt_server *server, const char *name);
struct holdback_stream_status hba_status(const struct hbt_server *server, const char *name);

#endif
