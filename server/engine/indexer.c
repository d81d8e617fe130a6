/* Decides when index entries are gathered and written.
 *
 * Streams whose published frontier moved stand in a queue; the thread looks at it every 100 ms
 * while there is traffic (a wake-up per commit would cost the sequencer more), reads their new
 * blocks, mostly from the shared tail, and gathers entries. A stream's bundle is cut at 1,000,000
 * entries, when it is 5 s old, or when the stream has been silent for a second; a large one is
 * ingested as a file, a small one goes to the sequencer as rows of its next commit. Over all
 * streams together no more is gathered than one full bundle: then the largest is cut early.
 *
 * Nothing is lost by a crash or a failure: what is above indexed_to is gathered again, and gives
 * the same entries. Where the store was opened again, what was handed over before may not have been
 * written, so what is gathered is dropped and each stream followed from its stored indexed_to.
 * Ingest never waits for this thread; it runs at low priority, and not at all while the disk is
 * short of space: an index can be made later. */
#include "server/engine/indexer_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/log.h"
#include "server/engine/cursor_internal.h"
#include "server/engine/engine_internal.h"

enum { NICE = 10, SCAN_BYTES = 8 << 20, KEY_BYTES_MAX = 32 << 20 };

/* ---- parts */

static void drop_part(struct hb_indexer *indexer, struct hb_stream *stream) {
  struct hb_stream **at = &indexer->parts;
  while (*at != stream) at = &(*at)->part_next;
  *at = stream->part_next;
  stream->part_next = NULL;
  stream->part = NULL;
  hb_stream_unref(stream);
}

/* The part leaves the indexer; its owner is the caller. */
static struct hb_index_part *take_part(struct hb_indexer *indexer, struct hb_stream *stream) {
  struct hb_index_part *part = stream->part;
  indexer->entries -= part->count;
  indexer->key_bytes -= part->key_bytes;
  drop_part(indexer, stream);
  return part;
}

static struct hb_index_part *part_of(struct hb_indexer *indexer, struct hb_stream *stream) {
  if (!stream->part) {
    stream->part = hb_index_part_create(stream->index_scan, hb_clock_mono_ms());
    stream->part->epoch = stream->index_epoch;
    stream->part_next = indexer->parts;
    indexer->parts = hb_stream_ref(stream);
  }
  return stream->part;
}

/* ---- cutting a bundle */

static void tell(struct hb_engine *engine, struct hb_stream *stream, int64_t indexed_to,
                 uint64_t epoch, struct hb_index_part *owned_rows) {
  struct hb_index_note *note = hb_calloc(1, sizeof *note);
  note->stream = stream->id;
  note->indexed_to = indexed_to;
  note->epoch = epoch;
  note->rows = owned_rows;
  hb_mailbox_post(engine->sequencer.notes, &note->node);
}

/* What is damaged now is so later: this stream's index ends here, and readers by key, who go
 * through the log from there, are told. The others must not wait for it. */
static void give_up(struct hb_stream *stream, const struct hb_err *err) {
  char quoted[HB_ERR_MESSAGE_SIZE];
  stream->index_damaged = true;
  hb_log(HB_LOG_ERROR, "index_stopped", "stream=%s cause=%s", stream->name,
         hb_log_quote(err->message, quoted, sizeof quoted));
}

/* Gather again from what is written, later. */
static void set_back(struct hb_engine *engine, struct hb_stream *stream, const struct hb_err *err) {
  struct hb_indexer *indexer = &engine->indexer;
  indexer->retry_ms = hb_clock_mono_ms() + engine->tuning.index_retry_ms;
  if (stream->part) hb_index_part_destroy(take_part(indexer, stream));
  stream->index_followed = false;
  if (hb_stream_is_deleted(stream)) return;
  char quoted[HB_ERR_MESSAGE_SIZE];
  hb_log(HB_LOG_WARN, "index_delayed", "stream=%s retry_ms=%" PRIu32 " cause=%s", stream->name,
         engine->tuning.index_retry_ms, hb_log_quote(err->message, quoted, sizeof quoted));
  hb_indexer_kick(engine, stream);
}

static void cut(struct hb_engine *engine, struct hb_stream *stream) {
  struct hb_index_part *part = stream->part;
  int64_t to = part->to;
  uint64_t epoch = part->epoch;
  if (part->count < engine->tuning.index_file_entries) {
    struct hb_stream *kept = hb_stream_ref(stream);
    tell(engine, kept, to, epoch, take_part(&engine->indexer, stream));
    hb_stream_unref(kept);
    return;
  }
  struct hb_err err = {0};
  struct hb_stream *kept = hb_stream_ref(stream);
  if (hb_index_ingest(engine->store, stream->id, part->entries, part->count, &err) == HB_OK) {
    hb_index_part_destroy(take_part(&engine->indexer, stream));
    tell(engine, kept, to, epoch, NULL);
  } else {
    set_back(engine, stream, &err);
  }
  hb_stream_unref(kept);
}

static struct hb_stream *largest(struct hb_indexer *indexer) {
  struct hb_stream *best = NULL;
  for (struct hb_stream *at = indexer->parts; at; at = at->part_next) {
    if (!best || at->part->key_bytes + at->part->count * sizeof *at->part->entries >
                     best->part->key_bytes + best->part->count * sizeof *best->part->entries) {
      best = at;
    }
  }
  return best;
}

static bool is_over(const struct hb_engine *engine, size_t more) {
  return engine->indexer.entries + more > engine->tuning.index_entries ||
         engine->indexer.key_bytes > KEY_BYTES_MAX;
}

/* Room for `more` entries. */
static void make_room(struct hb_engine *engine, size_t more) {
  while (engine->indexer.parts && is_over(engine, more)) cut(engine, largest(&engine->indexer));
}

static uint64_t due_ms(const struct hb_engine *engine, const struct hb_index_part *part) {
  uint64_t old = part->began_ms + engine->tuning.index_age_ms;
  uint64_t idle = part->grown_ms + engine->tuning.index_idle_ms;
  return old < idle ? old : idle;
}

/* Cut what is due; returns when the next one is. */
static uint64_t cut_due(struct hb_engine *engine) {
  uint64_t next = UINT64_MAX;
  uint64_t now = hb_clock_mono_ms();
  if (now < engine->indexer.retry_ms) return engine->indexer.retry_ms;
  struct hb_stream *stream = engine->indexer.parts;
  while (stream) {
    struct hb_stream *after = stream->part_next;
    uint64_t due = due_ms(engine, stream->part);
    if (due <= now) {
      cut(engine, stream);
    } else if (due < next) {
      next = due;
    }
    stream = after;
  }
  return next;
}

/* ---- gathering */

static enum hb_code gather(struct hb_engine *engine, struct hb_stream *stream,
                           struct hb_cursor *cursor, struct hb_err *err) {
  struct hb_indexer *indexer = &engine->indexer;
  if (is_over(engine, cursor->block.count)) make_room(engine, cursor->block.count);
  if (!stream->index_followed) return HB_OK; /* making room failed and set it back */
  struct hb_index_part *part = part_of(indexer, stream);
  size_t count = part->count;
  size_t key_bytes = part->key_bytes;
  enum hb_code code = hb_index_part_add(part, &cursor->block, err);
  indexer->entries += part->count - count;
  indexer->key_bytes += part->key_bytes - key_bytes;
  part->grown_ms = hb_clock_mono_ms();
  stream->index_scan = cursor->block.to;
  return code;
}

static void follow(struct hb_engine *engine, struct hb_stream *stream,
                   const struct hb_stream_status *status) {
  uint64_t epoch = atomic_load(&engine->store_epoch);
  if (stream->index_followed && stream->index_epoch == epoch) return;
  if (stream->part) hb_index_part_destroy(take_part(&engine->indexer, stream));
  stream->index_epoch = epoch;
  int64_t earliest = status->record.earliest;
  stream->index_scan = status->indexed_to > earliest ? status->indexed_to : earliest;
  stream->index_followed = true;
}

/* A bounded piece of the stream's new blocks. True: it queues again, for there is more. */
static bool scan(struct hb_engine *engine, struct hb_stream *stream) {
  struct hb_stream_status status;
  struct hb_err err = {0};
  hb_stream_get_status(stream, &status);
  if (!status.record.frozen || hb_stream_is_deleted(stream)) return false;
  follow(engine, stream, &status);
  if (stream->index_damaged) return false;
  struct hb_cursor cursor;
  hb_cursor_init(&cursor, engine->store, stream, stream->index_scan);
  enum hb_code code = HB_OK;
  bool more = true;
  for (size_t bytes = 0; code == HB_OK && more && stream->index_followed && bytes < SCAN_BYTES;) {
    code = hb_cursor_next(&cursor, status.record.frontier, &more, &err);
    if (code != HB_OK || !more) break;
    code = gather(engine, stream, &cursor, &err);
    bytes += cursor.bytes->size;
  }
  hb_cursor_done(&cursor);
  if (code == HB_CORRUPT && !hb_stream_is_deleted(stream)) {
    give_up(stream, &err); /* what was gathered is from before the damage, and as good as ever */
    return false;
  }
  if (code != HB_OK) {
    set_back(engine, stream, &err);
    return false;
  }
  if (!more || !stream->index_followed) return false;
  hb_indexer_kick(engine, stream);
  return true;
}

/* ---- the thread */

static struct hb_stream *pop_queue_locked(struct hb_indexer *indexer) {
  struct hb_stream *stream = indexer->queue;
  if (!stream) return NULL;
  indexer->queue = stream->index_next;
  if (!indexer->queue) indexer->queue_end = &indexer->queue;
  stream->index_next = NULL;
  stream->index_queued = false;
  return stream;
}

/* The indexer holds nothing of these streams, and never will: they are marked deleted. */
static void forget_locked(struct hb_engine *engine) {
  struct hb_indexer *indexer = &engine->indexer;
  struct hb_node *node = indexer->forgets;
  indexer->forgets = NULL;
  while (node) {
    struct hb_deletion *deletion = (struct hb_deletion *)node;
    node = node->next;
    for (struct hb_stream *at = indexer->parts; at; at = at->part_next) {
      if (at->id != deletion->stream) continue;
      hb_index_part_destroy(take_part(indexer, at));
      break;
    }
    hb_mailbox_post(engine->sequencer.deletions, &deletion->node);
  }
}

static void wait_locked(struct hb_indexer *indexer, uint64_t until_ms) {
  if (until_ms == UINT64_MAX) {
    pthread_cond_wait(&indexer->kicked, &indexer->mutex);
    return;
  }
  struct timespec until = {.tv_sec = (time_t)(until_ms / 1000),
                           .tv_nsec = (long)(until_ms % 1000) * 1000000};
  (void)pthread_cond_timedwait(&indexer->kicked, &indexer->mutex, &until);
}

/* Work off what is queued now; what comes meanwhile waits for the next look. True: there is a
 * backlog, so don't nap before that. */
static bool look_locked(struct hb_engine *engine) {
  struct hb_indexer *indexer = &engine->indexer;
  bool backlog = false;
  struct hb_stream *last = NULL;
  for (struct hb_stream *at = indexer->queue; at; at = at->index_next) last = at;
  while (last && !indexer->stopping && !indexer->forgets && !indexer->paused) {
    struct hb_stream *stream = pop_queue_locked(indexer);
    if (!stream || stream == last) last = NULL;
    if (!stream) break;
    pthread_mutex_unlock(&indexer->mutex);
    if (hb_clock_mono_ms() >= indexer->retry_ms && hb_store_enter(engine)) {
      backlog = scan(engine, stream) || backlog;
      hb_store_leave(engine);
    } else {
      hb_indexer_kick(engine, stream);
    }
    hb_stream_unref(stream);
    pthread_mutex_lock(&indexer->mutex);
  }
  return backlog;
}

static void *run(void *context) {
  struct hb_engine *engine = context;
  struct hb_indexer *indexer = &engine->indexer;
  (void)setpriority(PRIO_PROCESS, (id_t)gettid(), NICE); /* this thread only, on Linux */
  pthread_mutex_lock(&indexer->mutex);
  while (!indexer->stopping) {
    forget_locked(engine);
    if (indexer->paused) {
      pthread_cond_wait(&indexer->kicked, &indexer->mutex);
      continue;
    }
    bool backlog = look_locked(engine);
    pthread_mutex_unlock(&indexer->mutex);
    uint64_t due = UINT64_MAX;
    if (hb_store_enter(engine)) {
      due = cut_due(engine);
      hb_store_leave(engine);
    }
    uint64_t nap = hb_clock_mono_ms() + engine->tuning.index_nap_ms;
    pthread_mutex_lock(&indexer->mutex);
    if (indexer->stopping || indexer->forgets || indexer->paused || backlog) continue;
    indexer->sleeping = !indexer->queue && !indexer->parts;
    wait_locked(indexer, indexer->sleeping ? due : nap);
    indexer->sleeping = false;
  }
  pthread_mutex_unlock(&indexer->mutex);
  return NULL;
}

void hb_indexer_kick(struct hb_engine *engine, struct hb_stream *stream) {
  struct hb_indexer *indexer = &engine->indexer;
  pthread_mutex_lock(&indexer->mutex);
  if (!stream->index_queued && !indexer->stopping) {
    stream->index_queued = true;
    stream->index_next = NULL;
    *indexer->queue_end = hb_stream_ref(stream);
    indexer->queue_end = &stream->index_next;
    if (indexer->sleeping) pthread_cond_signal(&indexer->kicked);
  }
  pthread_mutex_unlock(&indexer->mutex);
}

void hb_indexer_pause(struct hb_engine *engine, bool paused) {
  struct hb_indexer *indexer = &engine->indexer;
  pthread_mutex_lock(&indexer->mutex);
  indexer->paused = paused;
  pthread_cond_signal(&indexer->kicked);
  pthread_mutex_unlock(&indexer->mutex);
}

void hb_indexer_forget(struct hb_engine *engine, struct hb_deletion *deletion) {
  struct hb_indexer *indexer = &engine->indexer;
  pthread_mutex_lock(&indexer->mutex);
  deletion->node.next = indexer->forgets;
  indexer->forgets = &deletion->node;
  pthread_cond_signal(&indexer->kicked);
  pthread_mutex_unlock(&indexer->mutex);
}

void hb_indexer_create(struct hb_engine *engine) {
  struct hb_indexer *indexer = &engine->indexer;
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_mutex_init(&indexer->mutex, NULL);
  pthread_cond_init(&indexer->kicked, &monotonic);
  pthread_condattr_destroy(&monotonic);
  indexer->queue_end = &indexer->queue;
}

void hb_indexer_start(struct hb_engine *engine) {
  hb_thread_start(&engine->indexer.thread, "hb-indexer", run, engine);
  engine->indexer.started = true;
}

void hb_indexer_stop(struct hb_engine *engine) {
  struct hb_indexer *indexer = &engine->indexer;
  pthread_mutex_lock(&indexer->mutex);
  indexer->stopping = true;
  pthread_cond_signal(&indexer->kicked);
  pthread_mutex_unlock(&indexer->mutex);
  if (indexer->started) pthread_join(indexer->thread, NULL);
  indexer->started = false;
  struct hb_stream *stream;
  while ((stream = pop_queue_locked(indexer)) != NULL) hb_stream_unref(stream);
  while (indexer->parts) hb_index_part_destroy(take_part(indexer, indexer->parts));
  forget_locked(engine); /* back to the sequencer's mailbox, which is cleared at close */
}

void hb_indexer_destroy(struct hb_engine *engine) {
  pthread_cond_destroy(&engine->indexer.kicked);
  pthread_mutex_destroy(&engine->indexer.mutex);
}
