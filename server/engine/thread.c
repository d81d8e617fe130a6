/* Starts threads and keeps the door: who may still hand something in. */
#include <pthread.h>
#include <string.h>

#include "base/assert.h"
#include "server/engine/engine_internal.h"

void hb_thread_start(pthread_t *out, const char *name, void *(*run)(void *), void *context) {
  int failed = pthread_create(out, NULL, run, context);
  HB_ASSERT(!failed);
  (void)pthread_setname_np(*out, name); /* for people who look at threads */
}

bool hb_door_enter(struct hb_engine *engine) {
  pthread_rwlock_rdlock(&engine->door);
  if (!engine->door_closed) return true;
  pthread_rwlock_unlock(&engine->door);
  return false;
}

void hb_door_leave(struct hb_engine *engine) { pthread_rwlock_unlock(&engine->door); }

enum hb_code hb_err_stops(struct hb_err *err) {
  return hb_err_set(err, HB_UNAVAILABLE, "SERVER_STOPS", "server stops");
}

enum hb_code hb_err_failed(struct hb_err *err) {
  return hb_err_set(err, HB_UNAVAILABLE, "OUTCOME_UNKNOWN", "outcome unknown, send again");
}

enum hb_code hb_err_no_store(struct hb_err *err) {
  return hb_err_set(err, HB_UNAVAILABLE, "STORE_REOPENS",
                    "the store is being opened again, since the disk was full; send again");
}

enum hb_code hb_err_no_stream(struct hb_err *err, const char *name) {
  return hb_err_set(err, HB_NOT_FOUND, "STREAM_NOT_FOUND", "stream '%.128s' does not exist", name);
}
