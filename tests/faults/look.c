/* Decides what a store has to be in itself, whatever was told to anyone: blocks without a hole up
 * to the frontier, every event once, in its place, with its content; and nothing that verification
 * finds. */
#include <inttypes.h>
#include <string.h>

#include "base/frame/block.h"
#include "storage/read.h"
#include "storage/verify.h"
#include "tests/faults/run_internal.h"

struct look {
  const struct hb_input *input;
  struct hb_told *told;
  struct hb_store *store;
  uint64_t id;     /* of the stream in the store */
  uint32_t stream; /* of the input, from 0 */
};

static void find(struct look *look, int64_t sequence, struct hb_slice frame) {
  struct hb_found_stream *found = &look->told->found[look->stream];
  if (sequence < 0 || sequence >= HB_INPUT_EVENTS) {
    hb_run_wrong(look->told, "sequence %" PRId64 " was never sent", sequence);
  }
  if (found->stored[sequence]) {
    hb_run_wrong(look->told, "stream %u: sequence %" PRId64 " is there twice (I10)",
                 look->stream + 1, sequence);
  }
  struct hb_event event;
  if (hb_scan_frame(frame, &event, NULL) || event.sequence != sequence ||
      hb_test_content(&event) != hb_input_content(look->input, look->stream, sequence)) {
    hb_run_wrong(look->told, "stream %u: sequence %" PRId64 " has other content", look->stream + 1,
                 sequence);
  }
  found->stored[sequence] = true;
}

static void find_in_block(struct look *look, struct hb_slice bytes, int64_t from) {
  struct hb_block block;
  if (hb_block_decode(bytes, &block, NULL)) hb_run_wrong(look->told, "a block that is none");
  for (uint32_t i = hb_block_find(&block, from); i < block.count; i++) {
    find(look, hb_block_sequence(&block, i), hb_block_frame(&block, i));
  }
}

static bool find_in_bundle(void *context, struct hb_bundle_id id, struct hb_slice bytes) {
  struct look *look = context;
  (void)id;
  find_in_block(look, bytes, look->told->found[look->stream].frontier);
  return true;
}

/* Blocks without a hole from the first sequence to the frontier (I4), every event in its place. */
static enum hb_code look_at_log(struct look *look, struct hb_err *err) {
  struct hb_log_reader *reader = NULL;
  enum hb_code code = hb_log_reader_open(look->store, look->id, 0, &reader, err);
  if (code) return code;
  int64_t at = 0;
  for (;;) {
    struct hb_bytes *bytes = NULL;
    struct hb_block block;
    code = hb_log_reader_next(reader, &bytes, err);
    if (code || !bytes) break;
    if (hb_block_decode(hb_bytes_view(bytes), &block, NULL) || block.from != at ||
        block.to - block.from != block.count) {
      hb_run_wrong(look->told, "stream %u: the log has a hole at %" PRId64 " (I4)",
                   look->stream + 1, at);
    }
    at = block.to;
    find_in_block(look, hb_bytes_view(bytes), block.from);
    hb_bytes_unref(bytes);
  }
  hb_log_reader_close(reader);
  if (!code && at != look->told->found[look->stream].frontier) {
    hb_run_wrong(look->told, "stream %u: the log ends at %" PRId64 " (I4)", look->stream + 1, at);
  }
  return code;
}

static enum hb_code look_at_global(struct look *look, struct hb_err *err) {
  enum hb_code code = look_at_log(look, err);
  return code ? code : hb_bundle_each(look->store, look->id, NULL, find_in_bundle, look, err);
}

static bool take_record(void *context, const struct hb_stored_stream *stored) {
  struct look *look = context;
  if (stored->stream != look->id) return true;
  struct hb_found_stream *found = &look->told->found[look->stream];
  found->frontier = stored->record.frontier;
  found->complete_to = stored->record.complete_to;
  return false;
}

enum hb_code hb_look_at_store(const struct hb_input *input, struct hb_told *told,
                              struct hb_store *store, const uint64_t ids[HB_INPUT_STREAMS],
                              struct hb_err *err) {
  struct look look = {.input = input, .told = told, .store = store};
  memset(told->found, 0, sizeof told->found);
  enum hb_code code = HB_OK;
  for (; !code && look.stream < HB_INPUT_STREAMS; look.stream++) {
    look.id = ids[look.stream];
    if (!look.id) continue;
    code = hb_stream_each(store, take_record, &look, err);
    if (code) break;
    code = look.stream == HB_INPUT_KEYED ? hb_look_at_keyed(input, told, store, look.id, err)
                                         : look_at_global(&look, err);
  }
  return code;
}

static void found_wrong(void *context, const struct hb_finding *finding) {
  char line[HB_FINDING_LINE_SIZE];
  hb_run_wrong(context, "verification: %s", hb_finding_line(finding, line));
}

void hb_look_verify(struct hb_told *told, struct hb_store *store) {
  struct hb_verify_options options = {.store = store, .found = found_wrong, .context = told};
  struct hb_verify *verify = hb_verify_create(&options);
  while (hb_verify_step(verify, 1 << 20)) continue;
  hb_verify_destroy(verify);
}
