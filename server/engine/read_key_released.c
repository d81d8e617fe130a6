/* Reads a key's released entries: below indexed_to from the index, each entry's frame from its
 * block; above it every block of the log's tail is looked through. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/frame/scan.h"
#include "server/engine/cursor_internal.h"
#include "server/engine/read_key_internal.h"
#include "storage/index.h"

struct found {
  int64_t position;
  int64_t block;
  uint32_t offset;
  uint32_t length;
};

struct gather {
  struct found *items;
  size_t count;
  size_t max;
  size_t bytes;
  size_t bytes_max;
};

static bool gather_entry(void *context, const struct hb_index_entry *entry) {
  struct gather *gather = context;
  gather->items[gather->count++] = (struct found){.position = entry->position,
                                                  .block = entry->block,
                                                  .offset = entry->offset,
                                                  .length = entry->length};
  gather->bytes += entry->length;
  return gather->count < gather->max && gather->bytes < gather->bytes_max;
}

/* The frame of an entry, from the block that the cursor is at. */
static enum hb_code frame_of(const struct hb_cursor *cursor, const struct found *item,
                             struct hb_slice *out, struct hb_err *err) {
  struct hb_slice frames = cursor->block.frames;
  if (cursor->block.from != item->block || item->offset > frames.size ||
      item->length > frames.size - item->offset) {
    return hb_err_set(err, HB_CORRUPT, NULL,
                      "stream '%s': the index names a place that the log has not",
                      cursor->stream->name);
  }
  *out = hb_slice_of(frames.data + item->offset, item->length);
  return HB_OK;
}

/* *out_all false: the page is full or the budget used up before. */
static enum hb_code give_found(struct hb_key_page *page, const struct gather *gather,
                               struct hb_cursor *cursor, bool *out_all, struct hb_err *err) {
  *out_all = false;
  for (size_t i = 0; i < gather->count; i++) {
    const struct found *item = &gather->items[i];
    if (page->budget <= 0) return HB_OK;
    const struct hb_bytes *before = cursor->bytes;
    bool found;
    enum hb_code code = hb_cursor_find_block(cursor, item->block, &found, err);
    if (code == HB_OK && !found) code = hb_cursor_hole(page->read->stream, item->position, err);
    struct hb_slice frame;
    if (code == HB_OK) code = frame_of(cursor, item, &frame, err);
    if (code != HB_OK) return code;
    if (cursor->bytes != before) page->budget -= (int64_t)cursor->bytes->size;
    if (!hb_key_page_add(page, item->position, frame, true)) return HB_OK;
    page->state->next = item->position + 1;
  }
  *out_all = true;
  return HB_OK;
}

/* Entries in [next, end), where `end` <= indexed_to. */
static enum hb_code read_indexed(struct hb_key_page *page, int64_t end, struct hb_err *err) {
  struct hb_key_state *state = page->state;
  struct gather gather = {.max = page->read->page_size - page->read->entries_count,
                          .bytes_max = page->engine->tuning.key_page_bytes - page->frame_bytes};
  gather.items = hb_calloc(gather.max, sizeof *gather.items);
  enum hb_code code = hb_index_each(page->engine->store, page->read->stream->id, page->read->key,
                                    state->next, end, gather_entry, &gather, err);
  bool all = false;
  if (code == HB_OK) {
    struct hb_cursor cursor;
    hb_cursor_init(&cursor, page->engine->store, page->read->stream, state->next);
    code = give_found(page, &gather, &cursor, &all, err);
    hb_cursor_done(&cursor);
  }
  bool more = gather.count == gather.max || gather.bytes >= gather.bytes_max;
  if (code == HB_OK && all && !more) state->next = end;
  free(gather.items);
  return code;
}

/* Events of one block from `next` on. *out_all false: the page is full. */
static enum hb_code give_block(struct hb_key_page *page, const struct hb_block *block,
                               bool *out_all, struct hb_err *err) {
  *out_all = false;
  for (uint32_t i = hb_block_find(block, page->state->next); i < block->count; i++) {
    struct hb_event event;
    enum hb_code code = hb_scan_frame(hb_block_frame(block, i), &event, err);
    if (code != HB_OK) return code;
    if (!hb_slice_equal(hb_event_key(&event), page->read->key)) continue;
    int64_t position = hb_block_sequence(block, i);
    if (!hb_key_page_add(page, position, hb_event_frame(&event), true)) return HB_OK;
    page->state->next = position + 1;
  }
  *out_all = true;
  return HB_OK;
}

static enum hb_code read_tail(struct hb_key_page *page, int64_t end, struct hb_err *err) {
  struct hb_key_state *state = page->state;
  struct hb_cursor cursor;
  hb_cursor_init(&cursor, page->engine->store, page->read->stream, state->next);
  enum hb_code code = HB_OK;
  while (code == HB_OK && page->budget > 0) {
    bool more;
    bool all = false;
    code = hb_cursor_next(&cursor, end, &more, err);
    if (code != HB_OK || !more) break;
    page->budget -= (int64_t)cursor.bytes->size;
    code = give_block(page, &cursor.block, &all, err);
    if (code != HB_OK || !all) break;
    state->next = cursor.block.to;
  }
  hb_cursor_done(&cursor);
  return code;
}

enum hb_code hb_key_read_released(struct hb_key_page *page, int64_t end, bool *out_done,
                                  struct hb_err *err) {
  struct hb_key_state *state = page->state;
  struct hb_stream_status status;
  hb_stream_get_status(page->read->stream, &status);
  if (state->next < status.record.earliest) state->next = status.record.earliest;
  int64_t indexed_end = status.indexed_to < end ? status.indexed_to : end;
  enum hb_code code = HB_OK;
  if (state->next < indexed_end && !hb_key_page_is_full(page)) {
    code = read_indexed(page, indexed_end, err);
  }
  if (code == HB_OK && state->next >= indexed_end && state->next < end &&
      !hb_key_page_is_full(page)) {
    code = read_tail(page, end, err);
  }
  if (code == HB_OK) *out_done = state->next >= end;
  return code;
}
