/* The writer: a thread that makes one commit durable while the sequencer decides the next. See
 * writer.c. One write at a time; all functions are the sequencer's. */
#ifndef HB_SERVER_ENGINE_WRITER_INTERNAL_H
#define HB_SERVER_ENGINE_WRITER_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct hb_engine;

enum hb_writer_state { HB_WRITER_FREE, HB_WRITER_ASKED, HB_WRITER_DONE };

struct hb_writer {
  pthread_t thread;
  bool started;
  pthread_mutex_t mutex;
  pthread_cond_t changed; /* state, stopping */
  /* Protected by mutex. */
  enum hb_writer_state state;
  bool stopping;
  uint64_t number; /* of the commit */
  enum hb_code code;
  struct hb_err error;
  atomic_bool done; /* state is DONE: to be looked at without the lock */
};

void hb_writer_start(struct hb_engine *engine);
/* Nothing may be on its way. */
void hb_writer_stop(struct hb_engine *engine);
/* Write sequencer->write, fsynced, as commit `number`. Nothing is on its way; until hb_writer_wait
 * the store and sequencer->write are the writer's. */
void hb_writer_begin(struct hb_engine *engine, uint64_t number);
/* Whether it has ended; the inbox is poked when it does. */
bool hb_writer_is_done(const struct hb_engine *engine);
/* Wait for the end of what was begun; how it ended. */
HB_MUST_CHECK enum hb_code hb_writer_wait(struct hb_engine *engine, struct hb_err *err);

#endif
