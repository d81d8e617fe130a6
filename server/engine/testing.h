/* What the engine's tests share: a folder, an engine in it, batches made of a few words, and
 * waiting for callbacks without sleeping. */
#ifndef HB_SERVER_ENGINE_TESTING_H
#define HB_SERVER_ENGINE_TESTING_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/frame/scan.h"
#include "base/slice.h"
#include "server/engine/engine.h"
#include "server/engine/engine_internal.h"
#include "server/engine/reads.h"

struct rig {
  char path[320];
  struct hb_engine *engine;
  struct hb_limits limits; /* for the next open */
  struct hb_tuning tuning; /* for the next open; its free_bytes answers disk_free */
  _Atomic uint64_t disk_free;
  uint32_t async_sync_ms;
  const char *processor_dir; /* NULL: none */
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  int fatal; /* times on_fatal was called; protected by mutex */
  struct hb_err fatal_err;
};

/* Folder made, defaults set, not opened. */
void rig_init(struct rig *rig);
/* The same with a folder of the caller's, made by the engine where it isn't there. */
void rig_init_at(struct rig *rig, const char *path);
void rig_open(struct rig *rig);
void rig_close(struct rig *rig);
/* Close, open again. */
void rig_reopen(struct rig *rig);
/* Close and remove the folder. */
void rig_done(struct rig *rig);

/* One event; payload NULL = "v<sequence>". seconds 0 = no event time. */
struct ev {
  int64_t sequence;
  const char *key;
  const char *payload;
  int64_t seconds;
};

struct sent {
  struct hb_append append; /* first */
  struct rig *rig;
  struct hb_buf bytes;
  struct hb_events events;
  bool answered;  /* protected by rig->mutex */
  uint64_t order; /* the how-many-eth answer of this rig it was */
};

/* Make a batch (call 0 = a call of its own) and hand it in; waits for room where there is none. */
struct sent *rig_send(struct rig *rig, struct hb_stream *stream, uint64_t call,
                      const struct ev *events, size_t count);
void rig_wait(struct sent *sent);
void rig_free(struct sent *sent);
/* Send, wait, return the first outcome; fails the test where the batch fails. */
int rig_put(struct rig *rig, struct hb_stream *stream, int64_t sequence, const char *key,
            const char *payload);
/* [from, to) in one batch, key = "k<sequence % keys>". */
struct sent *rig_send_range(struct rig *rig, struct hb_stream *stream, uint64_t call, int64_t from,
                            int64_t to, int keys);

/* Run a job to its end; the error's code. */
enum hb_code rig_job(struct rig *rig, struct hb_job *job);
/* A stream of that name with first_sequence 1, made where there is none. A reference. */
struct hb_stream *rig_stream(struct rig *rig, const char *name);
enum hb_code rig_delete(struct rig *rig, const char *name);

/* Run a read to its end. */
enum hb_code rig_read(struct rig *rig, struct hb_read *read);

/* Wait until a published status passes. */
typedef bool rig_condition(const struct hb_stream_status *status, int64_t number);
void rig_until(struct rig *rig, struct hb_stream *stream, rig_condition *condition, int64_t number);
bool rig_frontier_at_least(const struct hb_stream_status *status, int64_t number);
bool rig_indexed_at_least(const struct hb_stream_status *status, int64_t number);

/* Count and order of the released events from `position` on, by LOG reads; fails the test where
 * they don't ascend by one. Returns how many. */
int64_t rig_check_log(struct rig *rig, struct hb_stream *stream, int64_t position);
/* Wait until the disk is in this state, and what follows from it is done. */
void rig_until_disk(struct rig *rig, enum hb_disk_state state);
/* Size of all files in the folder. */
uint64_t rig_folder_bytes(const struct rig *rig);

#endif
