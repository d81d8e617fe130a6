/* A holdbackd of one's own: started, killed and started again on the same folder and address.
 *
 * It listens on a Unix socket in the temporary folder, so that a restart comes back at the same
 * address and no port can clash; `--listen 127.0.0.1:0` is the tests' of server_test alone. */
#ifndef TESTS_LIB_SERVER_H
#define TESTS_LIB_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/lib/child.h"
#include "tests/lib/tempdir.h"

enum { HBT_READY_MS = 20000, HBT_FLAGS_MAX = 16 };

struct hbt_server {
  const char *binary; /* borrowed */
  char data_dir[HBT_PATH_SIZE];
  char listen[HBT_PATH_SIZE + 8];   /* "unix:...", as given and as clients use it */
  const char *flags[HBT_FLAGS_MAX]; /* borrowed; set before start, NULL ends them */
  struct hbt_child *child;          /* owned; NULL while down */
  char ready[512];                  /* the log line that said so */
};

/* Names the folder `dir`/data and the socket `dir`/socket; starts nothing. */
void hbt_server_init(struct hbt_server *server, const char *binary, const struct hbt_tempdir *dir);
/* Start it and wait for event=ready. False, with its stderr printed, where that does not come. */
bool hbt_server_start(struct hbt_server *server);
/* Servers may be started with LD_PRELOAD from here on, also where a sanitizer is in them: its
 * runtime would rather come first, but what is preloaded (faulty.c) has nothing for it. */
void hbt_allow_preload(void);
/* SIGKILL, and wait: nothing of it runs when this returns. */
void hbt_server_kill(struct hbt_server *server);
/* SIGTERM, and wait for the exit code; -1: it did not end in time (and is killed). */
int hbt_server_stop(struct hbt_server *server);
void hbt_server_done(struct hbt_server *server);
/* The value of `name=` in a log line, unquoted, into `out`; false where it is absent. */
bool hbt_log_value(const char *line, const char *name, char *out, size_t size);

/* Resident memory of the running server, in MiB; 0 where it can't be read. */
uint64_t hbt_server_rss_mib(const struct hbt_server *server);
/* Whether that number is the server's own: a sanitizer keeps shadows and freed memory. */
bool hbt_rss_is_own(void);

#endif
