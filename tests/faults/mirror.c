/* Decides nothing: every row of the streams as it is. */
#include "tests/faults/mirror.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/frame/block.h"

#define MIRROR_RESERVE(owner, name)                                                    \
  hb_reserve((void **)&(owner)->name, &(owner)->name##_cap, (owner)->name##_count + 1, \
             sizeof *(owner)->name)

static bool take_stream(void *context, const struct hb_stored_stream *stored) {
  struct hb_fake_stream *stream = hb_fake_add_stream(context, stored->stream, &stored->config);
  stream->record = stored->record;
  return true;
}

static bool take_bundle(void *context, struct hb_bundle_id id, struct hb_slice bytes) {
  struct hb_fake_stream *stream = context;
  MIRROR_RESERVE(stream, bundles);
  stream->bundles[stream->bundles_count++] =
      (struct hb_put_bundle){.id = id, .block = hb_bytes_copy(bytes)};
  return true;
}

static bool take_gap(void *context, const struct hb_gap *gap) {
  struct hb_fake_stream *stream = context;
  MIRROR_RESERVE(stream, gaps);
  stream->gaps[stream->gaps_count++] = *gap;
  return true;
}

static void load_log(struct hb_store *store, struct hb_fake_stream *stream) {
  struct hb_log_reader *reader = NULL;
  struct hb_bytes *bytes = NULL;
  assert_int_equal(hb_log_reader_open(store, stream->id, INT64_MIN, &reader, NULL), HB_OK);
  for (;;) {
    struct hb_block block;
    assert_int_equal(hb_log_reader_next(reader, &bytes, NULL), HB_OK);
    if (!bytes) break;
    assert_int_equal(hb_block_decode(hb_bytes_view(bytes), &block, NULL), HB_OK);
    MIRROR_RESERVE(stream, blocks);
    stream->blocks[stream->blocks_count++] = (struct hb_put_block){
        .stream = stream->id, .from = block.from, .to = block.to, .block = bytes};
  }
  hb_log_reader_close(reader);
}

void hb_mirror_load(struct hb_shell *shell, struct hb_fake_store *out) {
  struct hb_store *store = shell->store;
  hb_fake_store_done(out);
  memset(out, 0, sizeof *out);
  assert_int_equal(hb_stream_each(store, take_stream, out, NULL), HB_OK);
  for (size_t i = 0; i < HB_FAKE_STREAMS; i++) {
    struct hb_fake_stream *stream = &out->streams[i];
    if (!stream->id) continue;
    load_log(store, stream);
    assert_int_equal(hb_bundle_each(store, stream->id, NULL, take_bundle, stream, NULL), HB_OK);
    assert_int_equal(hb_gap_each(store, stream->id, take_gap, stream, NULL), HB_OK);
  }
}
