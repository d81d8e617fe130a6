/* Decides how a read runs on a reader's thread: which room does it, and how it ends. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/live.h"
#include "server/engine/engine_internal.h"
#include "server/engine/read_internal.h"
#include "server/engine/reads.h"
#include "server/engine/stream_internal.h"
#include "storage/read.h"

static enum hb_code run(struct hb_engine *engine, struct hb_read *read, bool *out_again) {
  switch (read->kind) {
    case HB_READ_LOG:
      return hb_read_log(engine, read, &read->error);
    case HB_READ_TIME:
      return hb_read_time(engine, read, &read->error);
    case HB_READ_KEY:
      return hb_read_key(engine, read, &read->error);
    case HB_READ_KEYS:
    case HB_READ_KEY_STATUS:
      return hb_read_keys(engine, read, out_again, &read->error);
    case HB_READ_UNPROCESSED:
      return hb_read_unprocessed(engine, read, &read->error);
    default:
      HB_UNREACHABLE();
  }
}

static void drop_results(struct hb_read *read) {
  for (uint32_t i = 0; i < read->blocks_count; i++) hb_bytes_unref(read->blocks[i]);
  read->blocks_count = 0;
  for (size_t i = 0; i < read->entries_count; i++) hb_bytes_unref(read->entries[i].owner);
  free(read->entries);
  read->entries = NULL;
  read->entries_count = 0;
  for (size_t i = 0; i < read->unprocessed_count; i++) hb_bytes_unref(read->unprocessed[i].owner);
  free(read->unprocessed);
  read->unprocessed = NULL;
  read->unprocessed_count = 0;
  hb_buf_done(&read->keys);
  read->keys_count = 0;
  free(read->standings);
  read->standings = NULL;
  hb_buf_done(&read->next_token);
  hb_read_keys_done(read->state);
  read->state = NULL;
}

/* The store knows streams by number; who is told knows a name. */
static void name_stream(struct hb_read *read) {
  if (strncmp(read->error.message, "stream '", 8) == 0) return;
  hb_err_wrap(&read->error, "stream '%s'", read->stream->name);
}

void hb_read_run(struct hb_engine *engine, struct hb_node *node) {
  struct hb_read *read = (struct hb_read *)node;
  bool again = false;
  enum hb_code code = run(engine, read, &again);
  /* Whatever a read met while its stream's data was being dropped: this is why. */
  if (hb_stream_is_deleted(read->stream)) {
    code = hb_err_no_stream(&read->error, read->stream->name);
  }
  HB_ASSERT(code == read->error.code);
  if (code == HB_CORRUPT) name_stream(read);
  if (code == HB_OK && again) {
    hb_pool_post(&engine->readers, HB_WORK_READ, node);
    return;
  }
  if (code != HB_OK) drop_results(read);
  hb_read_keys_done(read->state);
  read->state = NULL;
  hb_live_gone(HB_LIVE_reads);
  read->done(read);
}

void hb_read_refuse(struct hb_engine *engine, struct hb_node *node) {
  (void)engine;
  struct hb_read *read = (struct hb_read *)node;
  (void)hb_err_no_store(&read->error);
  drop_results(read);
  read->done(read);
}

void hb_engine_read(struct hb_engine *engine, struct hb_read *read) {
  read->error = (struct hb_err){0};
  read->state = NULL;
  if (!hb_door_enter(engine)) {
    (void)hb_err_stops(&read->error);
    read->done(read);
    return;
  }
  hb_live_born(HB_LIVE_reads);
  hb_pool_post(&engine->readers, HB_WORK_READ, &read->node);
  hb_door_leave(engine);
}

void hb_read_done(struct hb_read *read) { drop_results(read); }

uint64_t hb_token_hash(uint64_t seed, struct hb_slice bytes) {
  uint64_t value = seed ^ UINT64_C(14695981039346656037);
  for (size_t i = 0; i < bytes.size; i++) value = (value ^ bytes.data[i]) * UINT64_C(1099511628211);
  return value;
}

enum hb_code hb_token_invalid(struct hb_err *err) {
  return hb_err_set(err, HB_INVALID, "PAGE_TOKEN_INVALID",
                    "page_token is not one that was given for this request");
}
