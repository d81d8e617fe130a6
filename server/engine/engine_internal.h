/* The engine's parts in one place. Who owns what: README.md. */
#ifndef HB_SERVER_ENGINE_ENGINE_INTERNAL_H
#define HB_SERVER_ENGINE_ENGINE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/limits.h"
#include "ordering/ordering.h"
#include "server/engine/disk_internal.h"
#include "server/engine/engine.h"
#include "server/engine/indexer_internal.h"
#include "server/engine/names_internal.h"
#include "server/engine/peers_internal.h"
#include "server/engine/pool_internal.h"
#include "server/engine/processor_internal.h"
#include "server/engine/sequencer_internal.h"
#include "server/engine/verify.h"
#include "storage/store.h"
#include "storage/write.h"

/* Sizes and times that tests make small. 0 = the default in brackets. */
struct hb_tuning {
  struct hb_ordering_options core; /* limits and last_commit are set by the engine */
  uint32_t tick_ms;                /* gap rows are decided at least so often [1000] */
  uint32_t save_ms;                /* served time is saved [5000] */
  uint32_t index_entries;          /* a bundle is cut at [1,000,000] */
  uint32_t index_file_entries;     /* smaller bundles go as rows [1000] */
  uint32_t index_age_ms;           /* a bundle is cut when so old [5000] */
  uint32_t index_idle_ms;          /* or when its stream is silent so long [1000] */
  uint32_t index_nap_ms;           /* how often the indexer looks while streams move [100] */
  uint32_t index_retry_ms;         /* after a failure it goes on so much later [5000] */
  uint32_t read_step_bytes;        /* what a read does before others come [16 MiB] */
  uint32_t verify_step_bytes;      /* what a verification looks at in a step [4 MiB] */
  uint32_t key_page_bytes;         /* frames in a page [3.5 MiB] */
  uint32_t disk_look_ms;           /* free space is looked at so often, at most [100] */
  uint32_t disk_look_bytes;        /* or after so much was written [4 MiB] */
  uint32_t fly_bytes;              /* the writer takes a commit that holds so much [128 KiB] */
  uint32_t reopen_retry_ms;        /* a lost store is tried again [1000] */
  hb_free_bytes_fn *free_bytes;    /* [statvfs] */
  void *free_context;
  uint32_t stuck_ms;     /* a call of user code is told of [30,000] */
  bool bundles_untimed;  /* bundles end by what they hold alone, not by time */
  uint32_t stop_wait_ms; /* so long a stop waits for user code, then it is abandoned [5,000] */
  struct hb_host_budget processing;
  /* Code that tests bring along, beside the built-ins. */
  const struct hbp_processor *(*find_processor)(const char *name);
};

typedef enum hb_code hb_store_write_fn(struct hb_store *store, struct hb_write *write,
                                       uint64_t commit, bool sync, struct hb_err *err);

typedef enum hb_code hb_store_open_fn(const struct hb_store_options *options, struct hb_store **out,
                                      struct hb_err *err);

struct hb_engine {
  /* Immutable once open. */
  struct hb_engine_info info;
  struct hb_limits limits;
  struct hb_tuning tuning;
  uint32_t async_sync_ms;
  char *processor_dir; /* owned; NULL: none */
  void (*on_fatal)(void *context, const struct hb_err *err);
  void *context;
  uint64_t served_base_ms;
  uint64_t opened_ms;

  /* Who posts holds it for reading; stop holds it for writing while it closes the door. */
  pthread_rwlock_t door;
  bool door_closed;

  /* Replaced by the sequencer when a full disk made it useless, while it holds the lock for
   * writing; every other thread holds it for reading (hb_store_enter). NULL: opening it again was
   * tried and failed. */
  struct hb_store *store;
  pthread_rwlock_t store_lock;
  _Atomic uint64_t store_epoch; /* +1 for each time it was opened again */

  /* The seams where tests make a write, or opening again, fail; hb_store_write and hb_store_open
   * else. */
  _Atomic(hb_store_write_fn *) store_write;
  _Atomic(hb_store_open_fn *) store_open;

  struct hb_disk disk;
  struct hb_names names;
  struct hb_peers peers;
  struct hb_sequencer sequencer;
  struct hb_indexer indexer;
  struct hb_processors processors;
  struct hb_pool readers;
  struct hb_pool background;

  pthread_mutex_t verification_mutex;
  struct hb_verification *verification; /* protected by it; NULL: none is under way */

  pthread_mutex_t deletions_mutex;
  pthread_cond_t deletions_done;
  size_t deletions; /* protected by deletions_mutex: not finished yet */
};

HB_MUST_CHECK enum hb_code hb_engine_open_tuned(const struct hb_engine_options *options,
                                                const struct hb_tuning *tuning,
                                                struct hb_engine **out, struct hb_err *err);
/* Tests: until no deletion is under way. */
void hb_engine_wait_deletions(struct hb_engine *engine);

/* A new core of the limits, to be filled from the store. */
struct hb_ordering *hb_engine_create_core(struct hb_engine *engine);
/* recover.c: rebuild core, registry and names from the store. `again`: streams that are known
 * stay the same objects, and what was shown of them must be there (I5). */
HB_MUST_CHECK enum hb_code hb_engine_recover(struct hb_engine *engine, bool again,
                                             struct hb_err *err);

/* ---- reopen.c */

/* The store stays open, and is the same one, until hb_store_leave. False: there is none now. Not
 * twice on one thread. */
bool hb_store_enter(struct hb_engine *engine);
void hb_store_leave(struct hb_engine *engine);
/* verify.c: the store will be closed. */
void hb_verification_drop(struct hb_engine *engine);
HB_MUST_CHECK enum hb_code hb_store_open_for(struct hb_engine *engine, struct hb_err *err);
/* Sequencer: open the lost store again, where there is room and nobody waits for the old one. */
void hb_reopen_try(struct hb_engine *engine);

/* False: the engine stops or has stopped; nothing may be posted. */
bool hb_door_enter(struct hb_engine *engine);
void hb_door_leave(struct hb_engine *engine);

/* thread.c; aborts where the system has no thread left: nothing serves without it. */
void hb_thread_start(pthread_t *out, const char *name, void *(*run)(void *), void *context);

/* Refusals that several files give. */
enum hb_code hb_err_stops(struct hb_err *err);
enum hb_code hb_err_failed(struct hb_err *err);
enum hb_code hb_err_no_store(struct hb_err *err);
enum hb_code hb_err_no_stream(struct hb_err *err, const char *name);

#endif
