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
#include "ordering/batch.h"
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
enum hb_bundle_fate {
  HB_BUNDLE_NONE,
  HB_BUNDLE_OUT,
  HB_BUNDLE_WRITTEN,
  HB_BUNDLE_LATER, /* not written, for the disk is full: to be handed in again */
  HB_BUNDLE_LOST,  /* nobody knows: begin anew at what is stored, once the store is open again */
  HB_BUNDLE_GONE   /* never, for it is detached */
};
struct hb_processor_commit {
  struct hb_node node; /* first */
  struct hb_processor *processor;
  struct hb_write *write;
  const struct hb_bundle *bundle; /* NULL: rows only. The thread's, which waits */
  uint64_t epoch;                 /* of the store that the write is for */
  uint64_t bytes;                 /* of it, about */
  bool durable;                   /* to be fsynced before it is answered */
  bool frees;                     /* it takes no space: also where the disk is full */
};

/* The mark before loaded code runs. */
struct hb_processor_mark {
  bool stored;
  bool ours; /* else a process that ended left it */
  struct hb_processor_attempt attempt;
};

/* What hb_processor.call_began_ms says beside a time. */
enum { HB_CALL_NONE = 0 };
#define HB_CALL_IN_STORE (UINT64_MAX - 1) /* user code asked for a state, which is being read */
#define HB_CALL_ABANDONED UINT64_MAX      /* nobody waits for its return */

struct hb_processor {
  _Atomic uint32_t refs;
  /* Immutable. */
  struct hb_engine *engine;
  struct hb_processor_id id;
  struct hb_stream *stream;   /* reference */
  struct hb_stream *results;  /* reference */
  struct hb_stream *statuses; /* reference; NULL: none are told */
  struct hb_buf parameters;

  pthread_mutex_t mutex;
  pthread_cond_t changed;
  /* Protected by mutex. */
  struct hb_processor_config config; /* the names are immutable */
  bool stopping;                     /* its thread is to end */
  bool news;                         /* something was published, or the store is another one */
  bool kicked;                       /* the second of these, or there is space again */
  struct hb_buf refused;             /* events of the stream, for statuses: refusals.c */
  struct hb_buf copies;              /* keys of which a copy was kept, ... */
  bool copies_lost;                  /* ... or any key: processor_copies.c */
  bool retries_open;                 /* its thread takes them */
  struct hb_retry *retries;          /* asked for; in order, the first may be under way */
  enum hb_bundle_fate fate;
  struct hb_processor_info
      info; /* as of its last commit; names, lag, parameters are filled later */

  /* Sequencer's thread only (open.c before it runs). */
  bool gone; /* detached, or the stream is deleted: nothing is written */
  bool seen; /* in the store that was opened again */
  /* Its thread reads it while it holds the store and no bundle of it is out. end_key lies in
   * committed_key. */
  struct hb_processor_place committed;
  struct hb_buf committed_key;
  bool told_stuck;

  /* When the call of user code began that runs now (monotonic), or a HB_CALL. Whoever changes it
   * from a time to ABANDONED may end the engine: the thread touches nothing of it any more. */
  _Atomic uint64_t call_began_ms;

  /* Protected by the mutex of all of them. */
  struct hb_processor *next_running;

  /* Its thread only (whoever makes it before). */
  struct hb_attached_code attached;
  struct hb_host *host;
  struct hb_write *write;
  struct hb_processor_commit commit;
  struct hb_watch watch;
  struct hb_buf counting;    /* what was taken of `refused` */
  size_t counted;            /* of that */
  uint64_t statuses_told_ms; /* PERIODIC: when last */
  uint64_t linger_until_ms;  /* a bundle that is not full need not be committed before */
  uint64_t epoch;            /* of the store that host and write belong to */
  bool failed;               /* its host gave up in the middle: what it gathered is not committed */
  bool lost;                 /* what became of a bundle is not known: they wait for another store */
  bool abandoned;
  uint64_t began_ms; /* of the call that runs */
  uint64_t now_ms;   /* when the one before ended */
  struct hb_processor_mark mark;
  bool has_marked; /* a mark was handed in: where the store is lost, it may be there */
  int64_t one_by_one_until;
  struct hb_buf event;                /* a frame that is tried */
  struct hb_copies_pass *copies_pass; /* owned; processor_copies.c */
  bool blocked_rests;                 /* keys that wait had their turn: new events have theirs */
};

/* All processors of all streams. */
struct hb_processors {
  pthread_mutex_t mutex;
  pthread_cond_t ended;
  /* Protected by mutex. */
  struct hb_processor **items; /* references; in the order of attaching */
  size_t count;
  size_t cap;
  struct hb_processor *running;   /* those with a thread */
  struct hb_attaching *attaching; /* whose code is being made ready, by a thread each */
  size_t attaching_count;
  bool stopping; /* no thread begins any more */
  atomic_bool stuck;
};

void hb_processors_init(struct hb_processors *processors);
void hb_processors_done(struct hb_processors *processors);
/* Start the threads of those that run. */
void hb_processors_start(struct hb_engine *engine);
/* End them; one whose user code does not come back is left alone. */
void hb_processors_stop(struct hb_engine *engine);
/* Those that wait for the store look again. */
void hb_processors_kick(struct hb_engine *engine);
/* A thread begins, or is about to end: then its reference goes. False: none begins any more. */
bool hb_processors_enter(struct hb_engine *engine, struct hb_processor *processor);
void hb_processors_leave(struct hb_engine *engine, struct hb_processor *processor);
/* The mark of a thread that ends may still be stored: where it ends with the engine, the next start
 * is told that no crash left it. Its thread. */
void hb_processors_note_mark(struct hb_engine *engine, struct hb_processor_id id);
/* The store failed: no results are shown until it was opened again. Sequencer's thread. */
void hb_processors_mark_lost(struct hb_engine *engine);
/* Share no results, forget what was not shown yet. Sequencer's thread. */
void hb_processors_reset_results(struct hb_engine *engine);

/* ---- processor.c */
/* The logs of results and statuses of a new or stored processor, published. One reference each; the
 * second may be NULL. Sequencer's thread. */
struct hb_processor_logs {
  struct hb_stream *results;
  struct hb_stream *statuses;
};
struct hb_processor_logs hb_processor_logs_create(struct hb_engine *engine,
                                                  struct hb_processor_id id,
                                                  const struct hb_processor_config *config,
                                                  const struct hb_processor_place *place);
void hb_processor_logs_done(const struct hb_processor_logs *logs);
struct hb_processor *hb_processor_create(struct hb_engine *engine, struct hb_processor_id id,
                                         struct hb_stream *stream,
                                         const struct hb_processor_logs *logs,
                                         const struct hb_processor_config *config,
                                         const struct hb_processor_place *place);
struct hb_processor *hb_processor_ref(struct hb_processor *processor);
void hb_processor_unref(struct hb_processor *processor);
/* A reference, or NULL. */
struct hb_processor *hb_processors_find(struct hb_engine *engine, uint64_t stream,
                                        const char *name);
struct hb_processor *hb_processors_find_id(struct hb_engine *engine, struct hb_processor_id id);
void hb_processors_add(struct hb_engine *engine, struct hb_processor *processor);
void hb_processors_remove(struct hb_engine *engine, struct hb_processor *processor);
/* Its thread is to end. Any thread. */
void hb_processor_end(struct hb_processor *processor);
/* What is stored says something else than what was known, since the store was opened again.
 * Sequencer's thread. */
void hb_processor_set(struct hb_engine *engine, struct hb_processor *processor,
                      const struct hb_stored_processor *stored);
/* When its user code was called, in monotonic milliseconds; 0: none runs. Any thread. */
uint64_t hb_processor_call_ms(struct hb_processor *processor);
/* Sequencer's thread: the bundle's blocks and place are what is shown next. */
void hb_processor_note_written(struct hb_engine *engine, struct hb_processor *processor,
                               const struct hb_bundle *bundle);
void hb_processor_answer(struct hb_processor *processor, enum hb_bundle_fate fate);
/* Sequencer's thread, each second: who has been in user code for too long. */
void hb_processors_look(struct hb_engine *engine);

/* ---- refusals.c */
/* What was refused of an answered batch, for who keeps statuses. Sequencer's thread. */
void hb_processors_note_refusals(struct hb_engine *engine, const struct hb_stream *stream,
                                 const struct hb_batch *batch);
/* What a written commit moved aside though it had been answered STORED. Sequencer's thread. */
void hb_processors_note_moved(struct hb_engine *engine, const struct hb_commit *commit);
/* Into the host's statuses; true: there were any. Its thread. */
bool hb_processor_count_refusals(struct hb_processor *processor, int64_t frontier);

/* ---- processor_run.c */
void hb_processor_start(struct hb_processor *processor);
/* The store is open and the one that host and write belong to, until hb_processor_leave_store.
 * Its thread. */
bool hb_processor_enter_store(struct hb_processor *processor);
void hb_processor_leave_store(struct hb_processor *processor);
bool hb_processor_should_stop(struct hb_processor *processor);

/* ---- processor_feed.c: its thread */
extern const struct hb_state_source hb_processor_source; /* context: the processor */
/* Up to one bundle of what lies between its place and the frontier. */
void hb_processor_feed(struct hb_processor *processor, int64_t position, int64_t frontier,
                       bool behind);
/* The sealed stream ends there: timers and keys that are left, up to one bundle. */
void hb_processor_finish(struct hb_processor *processor, int64_t end);
/* A bundle in the making. */
struct hb_feeding {
  struct hb_processor *processor;
  int64_t frontier;
  uint64_t until_ms;
  bool over; /* the thread is to end, or to look anew */
};
struct hb_feeding hb_feeding_begin(struct hb_processor *processor, int64_t frontier);
/* After a call of user code that returned `result`. True: the next event. */
bool hb_feeding_go_on(struct hb_feeding *feeding, enum hb_host_result result,
                      const struct hb_err *err);
/* What could not be read. A store that is another one by now is no failure: the thread begins anew.
 */
void hb_feeding_fail(struct hb_feeding *feeding, const struct hb_err *err);
/* Around user code. `now_ms` is the monotonic time. False: it was abandoned meanwhile. */
void hb_processor_call_begin(struct hb_processor *processor, uint64_t now_ms);
HB_MUST_CHECK bool hb_processor_call_end(struct hb_processor *processor);

/* ---- processor_wait.c: keys that wait at an event that failed */
/* Up to one bundle of them; true: there was something to do. Its thread. */
bool hb_processor_work_on_blocked(struct hb_processor *processor, int64_t frontier);
/* There is more of that to do. */
bool hb_processor_has_blocked_work(const struct hb_processor *processor);
/* ---- processor_copies.c */
/* Copies were kept: who waits for them looks. Sequencer's thread. */
void hb_processors_note_copies(struct hb_engine *engine, const struct hb_stream *stream,
                               const struct hb_batch *batch);
/* The processor goes: what it remembers of copies, too. */
void hb_copies_done(struct hb_processor *processor);
/* ---- processor_retry.c */
/* The thread begins; it is about to end: who waits is answered. */
void hb_processor_open_retries(struct hb_processor *processor);
void hb_processor_close_retries(struct hb_processor *processor);
/* The host is thrown away: so is what is under way. */
void hb_processor_lose_retry(struct hb_processor *processor);

/* ---- processor_commit.c: the thread's; false: nothing was written, or nobody knows */
bool hb_processor_commit(struct hb_processor *processor, int64_t frontier);
/* The same at the frontier, where more may come soon: perhaps later. */
void hb_processor_commit_soon(struct hb_processor *processor, int64_t frontier);
/* When the bundle at hand must be committed; UINT64_MAX: there is none. */
uint64_t hb_processor_commit_due_ms(const struct hb_processor *processor);
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

/* ---- processor_attach.c */
/* What may wait for user code or a disk, on a thread of its own; then the job goes to the
 * sequencer. Any thread, with the door held. */
void hb_attach_begin(struct hb_engine *engine, struct hb_job *job);
/* The job is over. */
void hb_attach_done(struct hb_job *job);
/* The mutex of all processors is held. True: one has been in user code for too long. */
bool hb_attaching_look_locked(struct hb_engine *engine, uint64_t now_ms);
/* Those that are in user code are nobody's any more; their jobs are put before *jobs. */
void hb_attaching_abandon_locked(struct hb_processors *all, struct hb_job **jobs);
/* Those jobs end: the server stops. No lock is held. */
void hb_attaching_refuse(struct hb_job *jobs);

/* ---- processor_admin.c */
HB_MUST_CHECK enum hb_code hb_attach_processor(struct hb_engine *engine, struct hb_job *job,
                                               struct hb_err *err);
HB_MUST_CHECK enum hb_code hb_detach_processor(struct hb_engine *engine, struct hb_job *job,
                                               struct hb_err *err);
/* Those of the stream as stored; `again`: in a store that was opened again, where those that are
 * known stay the same objects. */
HB_MUST_CHECK enum hb_code hb_processors_recover(struct hb_engine *engine, struct hb_stream *stream,
                                                 bool again, struct hb_err *err);
/* The stream is deleted. Sequencer's thread. */
void hb_processors_forget(struct hb_engine *engine, uint64_t stream);

#endif
