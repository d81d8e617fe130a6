/* Decides what a page of gaps is to whom: what is asked for in which mode, where a page goes on,
 * how much of the sequencer's time it may take. */
#include "server/engine/gaps.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/endian.h"
#include "server/engine/engine_internal.h"

/* Places of the core's table that one page looks at; bytes of keys in it. */
enum { LOOKS = 4096, KEY_BYTES = 2 << 20 };
/* First byte of a token. The next gap's lowest start; an order of keys, and perhaps a key of it. */
enum { TOKEN_GAPS = 'g', TOKEN_ORDER = 'o', TOKEN_KEY = 'k', TOKEN_SIZE = 9 };

void hb_gap_request_done(struct hb_gap_request *request) {
  free(request->gaps);
  free(request->keys);
  hb_buf_done(&request->key_bytes);
  hb_buf_done(&request->next_token);
}

/* ---- tokens */

static void put_token(struct hb_gap_request *request, uint8_t kind, uint64_t number) {
  struct hb_buf *out = &request->next_token;
  hb_buf_append_u8(out, kind);
  hb_put_u64_le(hb_buf_reserve(out, sizeof number), number);
  out->size += sizeof number;
}

static enum hb_code check_token(const struct hb_gap_request *request, struct hb_err *err) {
  struct hb_slice token = request->token;
  if (token.size == 0) return HB_OK;
  bool good = token.size >= TOKEN_SIZE;
  uint8_t kind = token.data[0];
  if (kind == TOKEN_KEY) {
    good = good && request->of_keys;
  } else {
    good = good && token.size == TOKEN_SIZE;
    good = good && kind == (request->of_keys ? TOKEN_ORDER : TOKEN_GAPS);
  }
  if (good) return HB_OK;
  return hb_err_set(err, HB_INVALID, "PAGE_TOKEN_INVALID",
                    "page_token is not one that was given for this request");
}

static uint64_t number_of(struct hb_slice token) { return hb_get_u64_le(token.data + 1); }

/* ---- pages */

static bool list(struct hb_ordering *core, uint64_t stream, struct hb_gap_request *request) {
  request->gaps = hb_calloc(request->page_size, sizeof *request->gaps);
  struct hb_gap_page page = {
      .from = request->token.size ? (int64_t)number_of(request->token) : INT64_MIN,
      .gaps = request->gaps,
      .max = request->page_size};
  if (!hb_ordering_list_gaps(core, stream, request->key, &page)) return false;
  request->count = page.count;
  request->initial_missing = page.initial_missing;
  if (page.more) put_token(request, TOKEN_GAPS, (uint64_t)page.gaps[page.count - 1].end);
  return true;
}

static bool list_keys(struct hb_ordering *core, uint64_t stream, struct hb_gap_request *request) {
  struct hb_slice token = request->token;
  request->keys = hb_calloc(request->page_size, sizeof *request->keys);
  struct hb_gap_keys_page page = {.prefix = request->key,
                                  .keys = request->keys,
                                  .max = request->page_size,
                                  .bytes_max = KEY_BYTES,
                                  .looks_max = LOOKS,
                                  .bytes = &request->key_bytes};
  if (token.size) {
    page.order = number_of(token);
    page.has_after = token.data[0] == TOKEN_KEY;
    page.after = hb_slice_of(token.data + TOKEN_SIZE, token.size - TOKEN_SIZE);
  }
  if (!hb_ordering_list_gap_keys(core, stream, &page)) return false;
  request->count = page.count;
  if (!page.more) return true;
  put_token(request, page.more_has_key ? TOKEN_KEY : TOKEN_ORDER, page.more_order);
  if (!page.more_has_key) return true;
  struct hb_slice last = request->keys[page.count - 1].key;
  hb_buf_append(&request->next_token, last.data, last.size);
  return true;
}

/* ---- the job */

static enum hb_code check(const struct hb_stream *stream, const struct hb_gap_request *request,
                          struct hb_err *err) {
  bool per_key = hb_stream_mode(stream) == HB_MODE_PER_KEY;
  if (!per_key && (request->of_keys || request->has_key)) {
    return hb_err_set(err, HB_PRECONDITION, "MODE_MISMATCH",
                      "stream '%s' is in GLOBAL mode: gaps are the stream's, no key's",
                      stream->name);
  }
  if (per_key && !request->of_keys && !request->has_key) {
    return hb_err_set(err, HB_INVALID, "KEY_MISSING",
                      "key is not given: stream '%s' is in PER_KEY mode, gaps are a key's",
                      stream->name);
  }
  return check_token(request, err);
}

enum hb_code hb_list_gaps(struct hb_engine *engine, struct hb_job *job, struct hb_err *err) {
  struct hb_sequencer *sequencer = &engine->sequencer;
  struct hb_gap_request *request = job->gaps;
  struct hb_stream *stream = hb_names_find(&engine->names, job->config.name);
  if (!stream) return hb_err_no_stream(err, job->config.name);
  uint64_t id = stream->id;
  enum hb_code code = check(stream, request, err);
  hb_stream_unref(stream);
  if (code != HB_OK) return code;
  if (sequencer->unsynced && !hb_sequencer_sync(engine)) return hb_err_failed(err);
  bool listed = request->of_keys ? list_keys(sequencer->core, id, request)
                                 : list(sequencer->core, id, request);
  HB_ASSERT(listed);
  return HB_OK;
}
