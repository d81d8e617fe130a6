/* Decides nothing: writes what it was handed, fsynced, and pokes the sequencer, which computes
 * meanwhile. A large commit's way to the disk takes about as long as deciding one. */
#include "base/assert.h"
#include "server/engine/engine_internal.h"

static void write_it(struct hb_engine *engine, struct hb_writer *writer) {
  uint64_t number = writer->number;
  pthread_mutex_unlock(&writer->mutex);
  struct hb_err err = {0};
  hb_store_write_fn *store_write = atomic_load(&engine->store_write);
  enum hb_code code = store_write(engine->store, engine->sequencer.write, number, true, &err);
  pthread_mutex_lock(&writer->mutex);
  writer->code = code;
  writer->error = err;
  writer->state = HB_WRITER_DONE;
  atomic_store(&writer->done, true);
  pthread_cond_broadcast(&writer->changed);
}

static void *run(void *context) {
  struct hb_engine *engine = context;
  struct hb_writer *writer = &engine->sequencer.writer;
  pthread_mutex_lock(&writer->mutex);
  while (!writer->stopping) {
    if (writer->state != HB_WRITER_ASKED) {
      pthread_cond_wait(&writer->changed, &writer->mutex);
      continue;
    }
    write_it(engine, writer);
    pthread_mutex_unlock(&writer->mutex);
    hb_sequencer_poke(&engine->sequencer);
    pthread_mutex_lock(&writer->mutex);
  }
  pthread_mutex_unlock(&writer->mutex);
  return NULL;
}

void hb_writer_start(struct hb_engine *engine) {
  struct hb_writer *writer = &engine->sequencer.writer;
  pthread_mutex_init(&writer->mutex, NULL);
  pthread_cond_init(&writer->changed, NULL);
  hb_thread_start(&writer->thread, "hb-writer", run, engine);
  writer->started = true;
}

void hb_writer_stop(struct hb_engine *engine) {
  struct hb_writer *writer = &engine->sequencer.writer;
  if (!writer->started) return;
  pthread_mutex_lock(&writer->mutex);
  HB_ASSERT(writer->state == HB_WRITER_FREE);
  writer->stopping = true;
  pthread_cond_broadcast(&writer->changed);
  pthread_mutex_unlock(&writer->mutex);
  pthread_join(writer->thread, NULL);
  writer->started = false;
  pthread_cond_destroy(&writer->changed);
  pthread_mutex_destroy(&writer->mutex);
}

void hb_writer_begin(struct hb_engine *engine, uint64_t number) {
  struct hb_writer *writer = &engine->sequencer.writer;
  pthread_mutex_lock(&writer->mutex);
  HB_ASSERT(writer->state == HB_WRITER_FREE);
  writer->number = number;
  writer->state = HB_WRITER_ASKED;
  pthread_cond_broadcast(&writer->changed);
  pthread_mutex_unlock(&writer->mutex);
}

bool hb_writer_is_done(const struct hb_engine *engine) {
  return atomic_load(&engine->sequencer.writer.done);
}

enum hb_code hb_writer_wait(struct hb_engine *engine, struct hb_err *err) {
  struct hb_writer *writer = &engine->sequencer.writer;
  pthread_mutex_lock(&writer->mutex);
  HB_ASSERT(writer->state != HB_WRITER_FREE);
  while (writer->state != HB_WRITER_DONE) pthread_cond_wait(&writer->changed, &writer->mutex);
  writer->state = HB_WRITER_FREE;
  atomic_store(&writer->done, false);
  enum hb_code code = writer->code;
  if (code) *err = writer->error;
  pthread_mutex_unlock(&writer->mutex);
  return code;
}
