/* Decides as naively as can be: an array of events per stream, searched from front to end. */
#include "server/rpc/fake_engine.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/frame/block.h"
#include "base/frame/scan.h"
#include "server/engine/config.h"
#include "server/engine/gaps.h"
#include "server/engine/reads.h"
#include "server/engine/stream.h"
#include "server/rpc/fake_internal.h"

struct hb_engine *fake_engine_create(const struct hb_limits *limits) {
  struct hb_engine *engine = hb_calloc(1, sizeof *engine);
  pthread_mutex_init(&engine->mutex, NULL);
  engine->limits = *limits;
  engine->tail = SIZE_MAX;
  memset(engine->info.store_id, 's', sizeof engine->info.store_id);
  memset(engine->info.incarnation, 'i', sizeof engine->info.incarnation);
  return engine;
}

static void free_stream(struct hb_stream *stream) {
  for (size_t i = 0; i < stream->count; i++) {
    free((void *)(uintptr_t)stream->events[i].event.frame);
  }
  for (size_t i = 0; i < stream->blocks_count; i++) hb_bytes_unref(stream->blocks[i]);
  for (size_t i = 0; i < stream->refused_count; i++) hb_bytes_unref(stream->refused[i].frame);
  free(stream->refused);
  free(stream->events);
  free(stream->blocks);
  free(stream->block_ends);
  free(stream);
}

void fake_engine_destroy(struct hb_engine *engine) {
  HB_ASSERT(engine->unanswered == 0);
  for (size_t i = 0; i < engine->streams_count; i++) {
    HB_ASSERT(!engine->streams[i]->watches);
    HB_ASSERT(engine->streams[i]->refs == 1);
    free_stream(engine->streams[i]);
  }
  pthread_mutex_destroy(&engine->mutex);
  free(engine);
}

const struct hb_engine_info *hb_engine_info(const struct hb_engine *engine) {
  return &engine->info;
}
const struct hb_limits *hb_engine_limits(const struct hb_engine *engine) { return &engine->limits; }
uint64_t hb_engine_served_ms(const struct hb_engine *engine) {
  (void)engine;
  return 1000;
}
uint32_t hb_engine_intern_peer(struct hb_engine *engine, struct hb_slice text) {
  (void)engine;
  return (uint32_t)text.size;
}

/* ---- streams */

static void lock(struct hb_engine *engine) { pthread_mutex_lock(&engine->mutex); }
static void unlock(struct hb_engine *engine) { pthread_mutex_unlock(&engine->mutex); }

struct hb_stream *hb_stream_ref(struct hb_stream *stream) {
  lock(stream->engine);
  stream->refs++;
  unlock(stream->engine);
  return stream;
}

/* Streams live as long as the fake: a reference is only counted. */
void hb_stream_unref(struct hb_stream *stream) {
  if (!stream) return;
  lock(stream->engine);
  stream->refs--;
  unlock(stream->engine);
}

const uint8_t *hb_stream_incarnation(const struct hb_stream *stream) { return stream->incarnation; }
uint64_t hb_stream_event_bytes_max(struct hb_stream *stream) {
  return stream->config.limits.event_bytes_max;
}

void hb_stream_get_config(struct hb_stream *stream, struct hb_stream_config *out) {
  lock(stream->engine);
  *out = stream->config;
  unlock(stream->engine);
}

enum hb_mode hb_stream_mode(const struct hb_stream *stream) { return stream->config.mode; }

bool hb_stream_is_deleted(struct hb_stream *stream) {
  lock(stream->engine);
  bool deleted = stream->deleted;
  unlock(stream->engine);
  return deleted;
}

static void status_locked(const struct hb_stream *stream, struct hb_stream_status *out) {
  *out = (struct hb_stream_status){.record = stream->record};
  const struct hb_frontier *record = &stream->record;
  out->window_end = INT64_MAX;
  out->processed_to = stream->processed_to;
  out->indexed_to = record->frontier;
  int64_t expected = record->frontier;
  for (size_t i = 0; record->frozen && i < stream->count; i++) {
    int64_t sequence = stream->events[i].event.sequence;
    if (sequence < record->frontier) continue;
    out->held_events++;
    if (sequence > expected && out->gaps_total++ < HB_STATUS_GAPS_MAX) {
      out->gaps[out->gaps_count++] = (struct hb_gap){.start = expected, .end = sequence};
    }
    expected = sequence + 1;
  }
}

void hb_stream_get_status(struct hb_stream *stream, struct hb_stream_status *out) {
  lock(stream->engine);
  status_locked(stream, out);
  unlock(stream->engine);
}

static struct hb_stream *find_locked(struct hb_engine *engine, const char *name) {
  for (size_t i = 0; i < engine->streams_count; i++) {
    struct hb_stream *stream = engine->streams[i];
    if (!stream->deleted && strcmp(stream->config.name, name) == 0) return stream;
  }
  return NULL;
}

struct hb_stream *hb_engine_find_stream(struct hb_engine *engine, const char *name) {
  lock(engine);
  struct hb_stream *stream = find_locked(engine, name);
  if (stream) stream->refs++;
  unlock(engine);
  return stream;
}

size_t hb_engine_list_streams(struct hb_engine *engine, const char *prefix, const char *after,
                              struct hb_stream_config *out, size_t max, bool *out_more) {
  size_t count = 0;
  *out_more = false;
  lock(engine);
  for (const char *last = after;;) {
    struct hb_stream *next = NULL;
    for (size_t i = 0; i < engine->streams_count; i++) {
      struct hb_stream *stream = engine->streams[i];
      const char *name = stream->config.name;
      if (stream->deleted || strcmp(name, last) <= 0) continue;
      if (strncmp(name, prefix, strlen(prefix)) != 0) continue;
      if (!next || strcmp(name, next->config.name) < 0) next = stream;
    }
    if (!next) break;
    if (count == max) {
      *out_more = true;
      break;
    }
    out[count++] = next->config;
    last = next->config.name;
  }
  unlock(engine);
  return count;
}

static struct hb_stream *create_locked(struct hb_engine *engine,
                                       const struct hb_stream_config *config) {
  HB_ASSERT(engine->streams_count < STREAMS_MAX);
  struct hb_stream *stream = hb_calloc(1, sizeof *stream);
  stream->refs = 1;
  stream->engine = engine;
  stream->config = hb_config_resolve(&engine->limits, config);
  memset(stream->incarnation, ++engine->next_incarnation, sizeof stream->incarnation);
  if (!config->first_seen) {
    stream->record = (struct hb_frontier){.frozen = true,
                                          .first_sequence = config->first_sequence,
                                          .complete_to = config->first_sequence,
                                          .frontier = config->first_sequence,
                                          .earliest = config->first_sequence};
  }
  engine->streams[engine->streams_count++] = stream;
  return stream;
}

static enum hb_code check_job(const struct hb_job *job, struct hb_err *err) {
  switch (job->kind) {
    case HB_JOB_CREATE_STREAM:
      return hb_config_check(&job->config, err);
    case HB_JOB_UPDATE_STREAM:
      return hb_config_check_changes(&job->config, err);
    case HB_JOB_DELETE_STREAM:
    case HB_JOB_SEAL_STREAM:
    case HB_JOB_ATTACH_PROCESSOR:
    case HB_JOB_DETACH_PROCESSOR:
    case HB_JOB_LIST_GAPS:
      break;
  }
  return HB_OK;
}

void hb_gap_request_done(struct hb_gap_request *request) {
  free(request->gaps);
  hb_buf_done(&request->next_token);
}

/* Of a stream; the token is a gap's number. */
static void list_gaps_locked(const struct hb_stream *stream, struct hb_gap_request *request) {
  struct hb_stream_status status;
  status_locked(stream, &status);
  uint32_t at = request->token.size ? request->token.data[0] : 0;
  request->gaps = hb_calloc(request->page_size, sizeof *request->gaps);
  while (at < status.gaps_count && request->count < request->page_size) {
    request->gaps[request->count++] = status.gaps[at++];
  }
  if (at < status.gaps_count) hb_buf_append_u8(&request->next_token, (uint8_t)at);
}

void hb_engine_submit_job(struct hb_engine *engine, struct hb_job *job) {
  job->error = (struct hb_err){.code = HB_OK};
  if (check_job(job, &job->error)) {
    job->done(job);
    return;
  }
  lock(engine);
  struct hb_stream *stream = find_locked(engine, job->config.name);
  if (job->kind == HB_JOB_CREATE_STREAM) {
    if (!stream) stream = create_locked(engine, &job->config);
    memcpy(job->incarnation, stream->incarnation, sizeof job->incarnation);
    job->config = stream->config;
  } else if (!stream) {
    hb_err_set(&job->error, HB_NOT_FOUND, "STREAM_NOT_FOUND", "stream '%s' does not exist",
               job->config.name);
  } else if (job->kind == HB_JOB_DELETE_STREAM) {
    stream->deleted = true;
  } else if (job->kind == HB_JOB_SEAL_STREAM) {
    stream->record.sealed = true;
    stream->record.seal_end = job->seal_end;
  } else if (job->kind == HB_JOB_LIST_GAPS) {
    list_gaps_locked(stream, job->gaps);
  } else {
    hb_config_change(&stream->config, &job->config);
    job->config = stream->config;
  }
  unlock(engine);
  if (stream) fake_engine_tell(stream);
  job->done(job);
}

/* ---- compaction: at once, or when it is ended */

void fake_engine_hold_compactions(struct hb_engine *engine, bool hold) {
  lock(engine);
  engine->hold_compactions = hold;
  unlock(engine);
}

bool fake_engine_is_compacting(struct hb_engine *engine) {
  lock(engine);
  bool compacting = engine->compaction != NULL;
  unlock(engine);
  return compacting;
}

void hb_engine_compact(struct hb_engine *engine, struct hb_compaction *compaction) {
  compaction->error = (struct hb_err){.code = HB_OK};
  compaction->bytes_before = 2;
  compaction->bytes_after = 1;
  lock(engine);
  bool held = engine->hold_compactions && !engine->compaction;
  if (held) engine->compaction = compaction;
  unlock(engine);
  if (!held) compaction->done(compaction);
}

void hb_engine_end_compaction(struct hb_engine *engine) {
  lock(engine);
  struct hb_compaction *compaction = engine->compaction;
  engine->compaction = NULL;
  unlock(engine);
  if (!compaction) return;
  hb_err_set(&compaction->error, HB_UNAVAILABLE, "SERVER_STOPS", "server stops");
  compaction->done(compaction);
}

/* ---- watches */

void fake_engine_tell(struct hb_stream *stream) {
  lock(stream->engine);
  for (struct hb_watch *watch = stream->watches; watch; watch = watch->next) {
    bool was_armed = watch->armed;
    watch->armed = false;
    watch->previous = (struct hb_watch *)1; /* news */
    if (was_armed) {
      watch->previous = NULL;
      watch->changed(watch);
    }
  }
  unlock(stream->engine);
}

void hb_watch_start(struct hb_watch *watch, struct hb_stream *stream) {
  lock(stream->engine);
  watch->stream = stream;
  watch->armed = true;
  watch->previous = NULL;
  watch->next = stream->watches;
  stream->watches = watch;
  unlock(stream->engine);
}

bool hb_watch_arm(struct hb_watch *watch) {
  lock(watch->stream->engine);
  bool news = watch->previous != NULL;
  watch->previous = NULL;
  watch->armed = !news;
  unlock(watch->stream->engine);
  return news;
}

void hb_watch_stop(struct hb_watch *watch) {
  lock(watch->stream->engine);
  struct hb_watch **at = &watch->stream->watches;
  while (*at != watch) at = &(*at)->next;
  *at = watch->next;
  unlock(watch->stream->engine);
}

/* ---- appending */

static struct hb_event *lookup(struct hb_stream *stream, int64_t sequence, size_t *out_place) {
  size_t at = stream->count;
  while (at > 0 && stream->events[at - 1].event.sequence >= sequence) at--;
  *out_place = at;
  bool found = at < stream->count && stream->events[at].event.sequence == sequence;
  return found ? &stream->events[at].event : NULL;
}

static enum hb_outcome keep(struct hb_stream *stream, enum hb_outcome outcome,
                            const struct hb_event *event) {
  hb_reserve((void **)&stream->refused, &stream->refused_cap, stream->refused_count + 1,
             sizeof *stream->refused);
  stream->refused[stream->refused_count++] =
      (struct refused){.outcome = outcome,
                       .sequence = event->sequence,
                       .frame = hb_bytes_copy(hb_event_frame(event))};
  return outcome;
}

static enum hb_outcome decide(struct hb_stream *stream, const struct hb_event *event) {
  if (event->sequence == INT64_MAX) return HB_OUTCOME_OUT_OF_RANGE;
  if (event->sequence < stream->record.first_sequence) {
    return keep(stream, HB_OUTCOME_BEFORE_FIRST, event);
  }
  size_t place;
  const struct hb_event *known = lookup(stream, event->sequence, &place);
  if (known && hb_event_same(known, event)) return HB_OUTCOME_DUPLICATE;
  if (known) return keep(stream, HB_OUTCOME_CONFLICT, event);
  hb_reserve((void **)&stream->events, &stream->cap, stream->count + 1, sizeof *stream->events);
  memmove(&stream->events[place + 1], &stream->events[place],
          (stream->count - place) * sizeof *stream->events);
  stream->events[place].event = *event;
  stream->events[place].event.frame = hb_memdup(event->frame, event->frame_size);
  stream->count++;
  if (!stream->record.any || event->sequence > stream->record.highest) {
    stream->record.highest = event->sequence;
  }
  stream->record.any = true;
  stream->record.counters.stored++;
  return HB_OUTCOME_STORED;
}

static void freeze(struct hb_stream *stream, const struct hb_batch *batch) {
  int64_t lowest = INT64_MAX;
  for (uint32_t i = 0; i < batch->count; i++) {
    if (batch->events[i].sequence < lowest) lowest = batch->events[i].sequence;
  }
  stream->record.frozen = true;
  stream->record.first_sequence = stream->record.complete_to = lowest;
  stream->record.frontier = stream->record.earliest = lowest;
}

static void release(struct hb_stream *stream) {
  struct hb_block_entry entries[BLOCK_EVENTS];
  size_t at;
  for (;;) {
    size_t count = 0;
    int64_t from = stream->record.frontier;
    (void)lookup(stream, from, &at);
    while (count < BLOCK_EVENTS && at + count < stream->count) {
      const struct hb_event *event = &stream->events[at + count].event;
      if (event->sequence != from + (int64_t)count) break;
      entries[count++] = (struct hb_block_entry){
          .sequence = event->sequence, .frame = event->frame, .frame_size = event->frame_size};
      if (hb_time_compare(event->time, stream->record.max_event_time) > 0) {
        stream->record.max_event_time = event->time;
      }
    }
    if (count == 0) return;
    stream->record.frontier = stream->record.complete_to = from + (int64_t)count;
    hb_reserve((void **)&stream->blocks, &stream->blocks_cap, stream->blocks_count + 1,
               sizeof *stream->blocks);
    hb_reserve((void **)&stream->block_ends, &stream->ends_cap, stream->blocks_count + 1,
               sizeof *stream->block_ends);
    stream->block_ends[stream->blocks_count] = stream->record.frontier;
    stream->blocks[stream->blocks_count++] =
        hb_block_encode(HB_BLOCK_EVENTS, from, stream->record.frontier,
                        stream->record.max_event_time, entries, count);
  }
}

static void answer_locked(struct hb_engine *engine, struct hb_append *append) {
  struct hb_stream *stream = append->target;
  struct hb_batch *batch = &append->batch;
  if (engine->fail) {
    hb_err_set(&batch->error, engine->fail, NULL, "outcome unknown, send again");
  } else if (stream->deleted) {
    hb_err_set(&batch->error, HB_NOT_FOUND, "STREAM_NOT_FOUND", "the stream was deleted");
  } else {
    if (!stream->record.frozen) freeze(stream, batch);
    for (uint32_t i = 0; i < batch->count; i++) {
      batch->decisions[i].outcome = (uint8_t)decide(stream, &batch->events[i]);
    }
    release(stream);
    status_locked(stream, &append->status);
  }
  engine->unanswered--;
}

static void answer(struct hb_engine *engine, struct hb_append *append) {
  struct hb_stream *stream = append->target;
  lock(engine);
  answer_locked(engine, append);
  unlock(engine);
  fake_engine_tell(stream); /* before answered: the call's reference keeps the stream */
  append->answered(append);
}

bool hb_engine_try_append(struct hb_engine *engine, struct hb_append *append) {
  lock(engine);
  bool full = engine->full;
  bool hold = engine->hold;
  if (!full) {
    engine->unanswered++;
    engine->last_peer = append->batch.receipt.peer;
    if (engine->unanswered > engine->most_unanswered) engine->most_unanswered = engine->unanswered;
    if (hold) {
      HB_ASSERT(engine->waiting_count < sizeof engine->waiting / sizeof engine->waiting[0]);
      engine->waiting[engine->waiting_count++] = append;
    }
  }
  unlock(engine);
  if (!full && !hold) answer(engine, append);
  return !full;
}

void hb_engine_on_room(struct hb_engine *engine, struct hb_room *waiter) {
  lock(engine);
  bool full = engine->full;
  if (full) {
    HB_ASSERT(engine->rooms_count < sizeof engine->rooms / sizeof engine->rooms[0]);
    engine->rooms[engine->rooms_count++] = waiter;
  }
  unlock(engine);
  if (!full) waiter->room(waiter);
}

void fake_engine_set_full(struct hb_engine *engine, bool full) {
  lock(engine);
  engine->full = full;
  size_t count = full ? 0 : engine->rooms_count;
  struct hb_room *rooms[64];
  memcpy(rooms, engine->rooms, sizeof rooms);
  if (!full) engine->rooms_count = 0;
  unlock(engine);
  for (size_t i = 0; i < count; i++) rooms[i]->room(rooms[i]);
}

bool hb_engine_is_ingesting(const struct hb_engine *engine) {
  lock((struct hb_engine *)(uintptr_t)engine);
  bool stopped = engine->ingest_stopped;
  unlock((struct hb_engine *)(uintptr_t)engine);
  return !stopped;
}

void hb_engine_on_ingest(struct hb_engine *engine, void (*changed)(void *context), void *context) {
  lock(engine);
  engine->ingest_changed = changed;
  engine->ingest_context = context;
  unlock(engine);
}

void fake_engine_set_ingesting(struct hb_engine *engine, bool ingesting) {
  lock(engine);
  engine->ingest_stopped = !ingesting;
  if (engine->ingest_changed) engine->ingest_changed(engine->ingest_context);
  unlock(engine);
}

void fake_engine_hold_answers(struct hb_engine *engine, bool hold) {
  lock(engine);
  engine->hold = hold;
  size_t count = hold ? 0 : engine->waiting_count;
  struct hb_append *waiting[1024];
  memcpy(waiting, engine->waiting, sizeof waiting);
  if (!hold) engine->waiting_count = 0;
  unlock(engine);
  for (size_t i = 0; i < count; i++) answer(engine, waiting[i]);
}

void fake_engine_fail_answers(struct hb_engine *engine, enum hb_code code) {
  lock(engine);
  engine->fail = code;
  unlock(engine);
}

void fake_engine_set_tail(struct hb_engine *engine, size_t blocks) {
  lock(engine);
  engine->tail = blocks;
  unlock(engine);
}

size_t fake_engine_most_unanswered(struct hb_engine *engine) {
  lock(engine);
  size_t most = engine->most_unanswered;
  unlock(engine);
  return most;
}

uint32_t fake_engine_last_peer(struct hb_engine *engine) {
  lock(engine);
  uint32_t peer = engine->last_peer;
  unlock(engine);
  return peer;
}

size_t fake_engine_unanswered(struct hb_engine *engine) {
  lock(engine);
  size_t count = engine->unanswered;
  unlock(engine);
  return count;
}

/* ---- reading */

static size_t block_of(const struct hb_stream *stream, int64_t position) {
  size_t at = 0;
  while (at < stream->blocks_count && stream->block_ends[at] <= position) at++;
  return at;
}

static size_t take_blocks(struct hb_stream *stream, size_t at, struct hb_bytes **out, size_t max,
                          size_t bytes_max) {
  size_t count = 0;
  size_t bytes = 0;
  while (count < max && at + count < stream->blocks_count && (count == 0 || bytes < bytes_max)) {
    out[count] = hb_bytes_ref(stream->blocks[at + count]);
    bytes += out[count++]->size;
  }
  return count;
}

enum hb_tail_result hb_stream_read_tail(struct hb_stream *stream, int64_t position,
                                        struct hb_bytes **out, size_t max, size_t bytes_max,
                                        size_t *out_count) {
  enum hb_tail_result result = HB_TAIL_CAUGHT_UP;
  lock(stream->engine);
  size_t at = block_of(stream, position);
  size_t tail = stream->engine->tail;
  size_t oldest = stream->blocks_count > tail ? stream->blocks_count - tail : 0;
  if (at < oldest) {
    result = HB_TAIL_BEHIND;
  } else if (at < stream->blocks_count) {
    *out_count = take_blocks(stream, at, out, max, bytes_max);
    result = HB_TAIL_BLOCKS;
  }
  unlock(stream->engine);
  return result;
}

void hb_engine_read(struct hb_engine *engine, struct hb_read *read) {
  lock(engine);
  read->error = (struct hb_err){.code = HB_OK};
  switch (read->kind) {
    case HB_READ_LOG:
      read->blocks_count =
          (uint32_t)take_blocks(read->stream, block_of(read->stream, read->position), read->blocks,
                                HB_READ_BLOCKS_MAX, read->bytes_max);
      break;
    case HB_READ_TIME:
    case HB_READ_KEY:
    case HB_READ_KEYS:
    case HB_READ_KEY_STATUS:
    case HB_READ_UNPROCESSED:
      fake_read_locked(read);
      break;
  }
  unlock(engine);
  read->done(read);
}

void hb_read_done(struct hb_read *read) {
  for (uint32_t i = 0; i < read->blocks_count; i++) hb_bytes_unref(read->blocks[i]);
  for (size_t i = 0; i < read->entries_count; i++) hb_bytes_unref(read->entries[i].owner);
  for (size_t i = 0; i < read->unprocessed_count; i++) hb_bytes_unref(read->unprocessed[i].owner);
  read->blocks_count = 0;
  free(read->unprocessed);
  free(read->entries);
  hb_buf_done(&read->keys);
  hb_buf_done(&read->next_token);
}

bool hb_stream_get_damage(struct hb_stream *stream, struct hb_err *out) {
  lock(stream->engine);
  enum hb_code code = stream->damage;
  unlock(stream->engine);
  if (code) hb_err_set(out, code, NULL, "stream '%s': can't be read", stream->config.name);
  return code != HB_OK;
}

void fake_engine_set_damage(struct hb_stream *stream, enum hb_code code) {
  lock(stream->engine);
  stream->damage = code;
  unlock(stream->engine);
}
