/* Decides one page of what is kept of a stream in `unprocessed`: which rows, and where it ends.
 *
 * Rows stay where they are until their stream goes, so the place of the row looked at last is all
 * that a token needs. What is kept between two pages is shown if its place is still ahead.
 *
 * A view may show what is not fsynced yet. So nothing is given before the stream, and each
 * processor that gave something up, have published all that was written when the view was taken
 * (I2). A processor that is no longer in the list left it behind an fsync. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/endian.h"
#include "base/frame/scan.h"
#include "server/engine/engine_internal.h"
#include "server/engine/read_internal.h"
#include "server/engine/stream_internal.h"
#include "storage/kept.h"

enum { TOKEN_VERSION = 1, TOKEN_SIZE = 1 + 8 + 1 + 8 + 8, ROW_BYTES = 64 };

/* A processor that is named in the page. */
struct author {
  uint64_t id;
  struct hb_processor *processor; /* reference; NULL: it is gone */
};

struct page {
  struct hb_engine *engine;
  struct hb_read *read;
  size_t entries_cap;
  size_t bytes;   /* of the entries */
  int64_t budget; /* bytes that may still be looked at */
  struct hb_kept_place last;
  bool any;     /* `last` is valid */
  bool stopped; /* there may be more behind it */
  struct author *authors;
  size_t authors_count;
  size_t authors_cap;
  struct hb_buf parts; /* of one entry */
  enum hb_code code;
  struct hb_err *err;
};

/* ---- token */

static uint64_t purpose_of(const struct hb_read *read) {
  uint64_t seed = read->stream->id ^ (read->processor << 32) ^ ((uint64_t)read->reason << 8) ^
                  (read->has_key ? UINT64_C(1) << 63 : 0);
  return hb_token_hash(~seed, read->has_key ? read->key : (struct hb_slice){0});
}

static void put_token(const struct hb_kept_place *place, struct hb_read *read) {
  uint8_t *at = hb_buf_reserve(&read->next_token, TOKEN_SIZE);
  at[0] = TOKEN_VERSION;
  hb_put_u64_le(at + 1, purpose_of(read));
  at[9] = place->reason;
  hb_put_u64_le(at + 10, (uint64_t)place->position);
  hb_put_u64_le(at + 18, place->hash);
  read->next_token.size += TOKEN_SIZE;
}

/* The reason whose rows alone are looked at. */
static uint8_t reason_of(const struct hb_read *read) {
  return read->processor ? HB_KEPT_FAILED : read->reason;
}

static enum hb_code take_token(const struct hb_read *read, struct hb_kept_place *out,
                               struct hb_err *err) {
  const uint8_t *at = read->token.data;
  if (read->token.size != TOKEN_SIZE || at[0] != TOKEN_VERSION ||
      hb_get_u64_le(at + 1) != purpose_of(read)) {
    return hb_token_invalid(err);
  }
  uint8_t reason = reason_of(read);
  if (reason != HB_KEPT_ANY && at[9] != reason) return hb_token_invalid(err);
  *out = (struct hb_kept_place){
      .reason = at[9], .position = (int64_t)hb_get_u64_le(at + 10), .hash = hb_get_u64_le(at + 18)};
  return HB_OK;
}

/* ---- who gave up */

static struct hb_slice name_of(struct page *page, uint64_t id) {
  size_t at = 0;
  while (at < page->authors_count && page->authors[at].id != id) at++;
  if (at == page->authors_count) {
    hb_reserve((void **)&page->authors, &page->authors_cap, at + 1, sizeof *page->authors);
    struct hb_processor_id of = {.stream = page->read->stream->id, .processor = id};
    page->authors[page->authors_count++] =
        (struct author){.id = id, .processor = hb_processors_find_id(page->engine, of)};
  }
  const struct hb_processor *processor = page->authors[at].processor;
  return processor ? hb_slice_text(processor->config.name) : (struct hb_slice){0};
}

/* ---- rows */

static bool add(struct page *page, const struct hb_kept *row) {
  struct hb_read *read = page->read;
  bool failed = row->place.reason == HB_KEPT_FAILED;
  struct hb_slice name = failed ? name_of(page, row->processor) : (struct hb_slice){0};
  hb_buf_clear(&page->parts);
  hb_buf_append(&page->parts, row->frame.data, row->frame.size);
  hb_buf_append(&page->parts, row->explanation.data, row->explanation.size);
  hb_buf_append(&page->parts, name.data, name.size);
  size_t before = page->parts.size;
  hb_peers_text(&page->engine->peers, row->peer, &page->parts);
  size_t size = page->parts.size + ROW_BYTES;
  size_t max = page->engine->tuning.key_page_bytes;
  if (read->unprocessed_count > 0 && (page->bytes >= max || size > max - page->bytes)) return false;
  struct hb_bytes *owner = hb_bytes_copy(hb_buf_view(&page->parts));
  const uint8_t *at = owner->data;
  hb_reserve((void **)&read->unprocessed, &page->entries_cap, read->unprocessed_count + 1,
             sizeof *read->unprocessed);
  read->unprocessed[read->unprocessed_count++] = (struct hb_unprocessed_entry){
      .owner = owner,
      .reason = row->place.reason,
      .position = row->place.position,
      .count = row->count,
      .first_seen_wall_ms = row->first_seen_wall_ms,
      .last_seen_wall_ms = row->last_seen_wall_ms,
      .frame = hb_slice_of(at, row->frame.size),
      .explanation = hb_slice_of(at + row->frame.size, row->explanation.size),
      .processor = hb_slice_of(at + row->frame.size + row->explanation.size, name.size),
      .producer = hb_slice_of(at + before, page->parts.size - before)};
  page->bytes += size;
  return true;
}

/* The frame goes out as it is: it must be one. */
static enum hb_code check(const struct page *page, const struct hb_kept *row, bool *out_wanted) {
  const struct hb_read *read = page->read;
  *out_wanted = !read->processor || row->processor == read->processor;
  if (row->frame.size == 0) { /* a timer's, or an end's */
    *out_wanted = *out_wanted && !read->has_key;
    return HB_OK;
  }
  struct hb_event event;
  enum hb_code code = hb_scan_frame(row->frame, &event, page->err);
  if (code != HB_OK || event.frame_size != row->frame.size) {
    return hb_err_set(page->err, HB_CORRUPT, NULL,
                      "unprocessed event of position %" PRId64 ": its frame is malformed",
                      row->place.position);
  }
  if (read->has_key) *out_wanted = *out_wanted && hb_slice_equal(hb_event_key(&event), read->key);
  return HB_OK;
}

static bool visit(void *context, const struct hb_kept *row) {
  struct page *page = context;
  bool wanted;
  page->stopped = true; /* unless this row is passed */
  if (page->budget <= 0 || page->read->unprocessed_count >= page->read->page_size) return false;
  page->code = check(page, row, &wanted);
  if (page->code != HB_OK || (wanted && !add(page, row))) return false;
  page->stopped = false;
  page->last = row->place;
  page->any = true;
  page->budget -= (int64_t)(ROW_BYTES + row->frame.size + row->explanation.size);
  return true;
}

/* ---- what was seen is durable */

static bool settle(struct page *page) {
  if (!hb_stream_settle(page->read->stream)) return false;
  for (size_t i = 0; i < page->authors_count; i++) {
    const struct hb_processor *processor = page->authors[i].processor;
    if (!processor || hb_stream_settle(processor->results)) continue;
    if (!hb_stream_is_deleted(processor->results)) return false;
  }
  return true;
}

static void done(struct page *page) {
  for (size_t i = 0; i < page->authors_count; i++) {
    if (page->authors[i].processor) hb_processor_unref(page->authors[i].processor);
  }
  free(page->authors);
  hb_buf_done(&page->parts);
}

enum hb_code hb_read_unprocessed(struct hb_engine *engine, struct hb_read *read,
                                 struct hb_err *err) {
  struct hb_kept_place after;
  if (read->token.size > 0) {
    enum hb_code code = take_token(read, &after, err);
    if (code != HB_OK) return code;
  }
  if (read->page_size == 0) read->page_size = 1;
  if (read->page_size > engine->limits.page_size_max) {
    read->page_size = (uint32_t)engine->limits.page_size_max;
  }
  struct page page = {
      .engine = engine, .read = read, .budget = engine->tuning.read_step_bytes, .err = err};
  enum hb_code code = hb_kept_each(engine->store, read->stream->id, reason_of(read),
                                   read->token.size ? &after : NULL, visit, &page, err);
  if (code == HB_OK) code = page.code;
  if (code == HB_OK && !settle(&page)) code = hb_err_failed(err);
  if (code == HB_OK && page.stopped && page.any) put_token(&page.last, read);
  done(&page);
  return code;
}
