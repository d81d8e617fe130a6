/* A subscriber on a thread of its own that checks the order and hashes what it is given.
 *
 * It starts before the first event is sent and lives through the crash; it ends when it has
 * `count` events, or with a complaint. */
#ifndef DEMO_READER_H
#define DEMO_READER_H

#include <pthread.h>

#include "demo/stage.h"

enum { DEMO_SHA256_SIZE = 32 };

struct demo_reader {
  /* set before start */
  struct holdback_client *client; /* borrowed */
  const char *stream;             /* borrowed */
  int64_t count;
  /* the reader's until it was joined */
  pthread_t thread;
  bool good;                              /* all came, in order */
  int64_t delivered;                      /* 1 .. delivered, each once */
  unsigned char sha256[DEMO_SHA256_SIZE]; /* over lines "sequence TAB key TAB payload LF" */
};

bool demo_reader_start(struct demo_reader *reader);
/* Wait for its end. True: all came, in order. */
bool demo_reader_join(struct demo_reader *reader);

#endif
