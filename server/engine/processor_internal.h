/* A processor inside the engine, and all of them. Who owns what: processor.c. */
#ifndef HB_SERVER_ENGINE_PROCESSOR_INTERNAL_H
#define HB_SERVER_ENGINE_PROCESSOR_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mailbox.h"
#include "processing/host.h"
#include "server/engine/processors.h"
#include "server/engine/stream_internal.h"
#include "storage/processor.h"
#include "storage/processor_rows.h"
#include "storage/write.h"

struct hb_engine;
struct hb_job;

/* Code that is ready to run. */
struct hb_attached_code {
  const struct hbp_processor *code;
  void *library; /* of a shared object */
  void *self;
};

/* What the thread hands to the sequencer, one at a time, and what came of it. */
enum hb_bundle_fate { HB_BUNDLE_NONE, HB_BUNDLE_OUT, HB_BUNDLE_WRITTEN, HB_BUNDLE_LOST };
struct hb_processor_commit {
  struct hb_node node; /* first */
  struct hb_processor *processor;
  struct hb_write *write;
  const struct hb_bundle *bundle; /* NULL: rows only. The thread's, which waits */
  bool durable;                   /* to be fsynced before it is answered */
};

struct hb_processor {
  _Atomic uint32_t refs;
  /* Immutable. */
  struct hb_engine *engine;
  struct hb_processor_id id;
  struct hb_stream *stream;  /* reference */
  struct hb_stream *results; /* reference */
  struct hb_buf parameters;

  pthread_mutex_t mutex;
  pthread_cond_t changed;
  /* Protected by mutex. */
  struct hb_processor_config config; /* the names are immutable */
  bool stopping;                     /* its thread is to end */
  bool abandoned;                    /* nobody waits for the thread any more: touch nothing */
  bool news;                         /* something was published */
  enum hb_bundle_fate fate;
  struct hb_processor_info
      info; /* as of its last commit; names, lag, parameters are filled later */

  /* Sequencer's thread only (open.c before it runs). */
  bool gone;                           /* detached, or the stream is deleted: nothing is written */
  struct hb_processor_place committed; /* end_key lies in committed_key */
  struct hb_buf committed_key;
  bool told_stuck;

  _Atomic uint64_t call_began_ms; /* monotonic; 0: no user code runs */

  /* Its thread only (whoever makes it before). */
  struct hb_attached_code attached;
  struct hb_host *host;
  struct hb_write *write;
  struct hb_processor_commit commit;
  struct hb_watch watch;
  bool has_attempt;     /* a mark is in the store */
  bool attempt_is_ours; /* else a process that ended left it */
  struct hb_processor_attempt attempt;
  int64_t one_by_one_until;
};

/* All processors of all streams. */
struct hb_processors {
  pthread_mutex_t mutex;
  pthread_cond_t ended;
  /* Protected by mutex. */
  struct hb_processor **items; /* references; in the order of attaching */
  size_t count;
  size_t cap;
  size_t running; /* threads */
  atomic_bool stuck;
};

void hb_processors_init(struct hb_processors *processors);
void hb_processors_done(struct hb_processors *processors);
/* Start the threads of those that run. */
void hb_processors_start(struct hb_engine *engine);
/* End them; one whose user code does not come back is left alone. */
void hb_processors_stop(struct hb_engine *engine);

/* ---- processor.c */
struct hb_processor *hb_processor_create(struct hb_engine *engine, struct hb_processor_id id,
                                         struct hb_stream *stream, struct hb_stream *results,
                                         const struct hb_processor_config *config,
                                         const struct hb_processor_place *place);
struct hb_processor *hb_processor_ref(struct hb_processor *processor);
void hb_processor_unref(struct hb_processor *processor);
/* A reference, or NULL. */
struct hb_processor *hb_processors_find(struct hb_engine *engine, uint64_t stream,
                                        const char *name);
void hb_processors_add(struct hb_engine *engine, struct hb_processor *processor);
void hb_processors_remove(struct hb_engine *engine, struct hb_processor *processor);
/* The log of results of a new or stored processor, published. One reference. Sequencer's thread. */
struct hb_stream *hb_results_create(struct hb_engine *engine, struct hb_processor_id id,
                                    const char *name, const struct hb_processor_place *place);
/* Its thread is to end. Any thread. */
void hb_processor_end(struct hb_processor *processor);
/* Sequencer's thread: the bundle's blocks and place are what is shown next. */
void hb_processor_note_written(struct hb_engine *engine, struct hb_processor *processor,
                               const struct hb_bundle *bundle);
void hb_processor_answer(struct hb_processor *processor, enum hb_bundle_fate fate);
/* Sequencer's thread, each second: who has been in user code for too long. */
void hb_processors_look(struct hb_engine *engine);

/* ---- processor_run.c */
void hb_processor_start(struct hb_processor *processor);

/* ---- processor_commit.c: the thread's; false: nothing was written, the thread is to end */
bool hb_processor_commit(struct hb_processor *processor, int64_t frontier);
/* Before a bundle of loaded code runs. False also where it was tried too often: suspended then. */
bool hb_processor_begin_attempt(struct hb_processor *processor, int64_t frontier);
void hb_processor_clear_attempt(struct hb_processor *processor);
/* It stops for good, durably, at the place of its host. */
void hb_processor_suspend(struct hb_processor *processor, const char *why);
/* It stops until the next start. */
void hb_processor_fail(struct hb_processor *processor, const struct hb_err *err);
/* What the info says from now on. */
void hb_processor_show(struct hb_processor *processor);

/* ---- processor_code.c: any thread but the sequencer */
HB_MUST_CHECK enum hb_code hb_attached_code_find(struct hb_engine *engine, const char *name,
                                                 struct hb_slice parameters,
                                                 struct hb_attached_code *out, struct hb_err *err);
void hb_attached_code_done(struct hb_attached_code *attached);
bool hb_processor_name_is_valid(const char *name);

/* ---- processor_admin.c */
/* Background: what may wait for user code or a disk; then the job goes to the sequencer. */
void hb_attach_prepare(struct hb_engine *engine, struct hb_node *node);
HB_MUST_CHECK enum hb_code hb_attach_processor(struct hb_engine *engine, struct hb_job *job,
                                               struct hb_err *err);
HB_MUST_CHECK enum hb_code hb_detach_processor(struct hb_engine *engine, struct hb_job *job,
                                               struct hb_err *err);
/* The job is over. */
void hb_attach_done(struct hb_job *job);
HB_MUST_CHECK enum hb_code hb_processors_recover(struct hb_engine *engine, struct hb_stream *stream,
                                                 struct hb_err *err);
/* The stream is deleted. Sequencer's thread. */
void hb_processors_forget(struct hb_engine *engine, uint64_t stream);

#endif
