/* Decides what the PER_KEY stream has to be in itself: each key's released events are its lowest
 * ones, in order (I3), exactly those that its row says; what waits lies above them, once (I10). */
#include <inttypes.h>

#include "base/frame/block.h"
#include "storage/keys.h"
#include "storage/read.h"
#include "tests/faults/run_internal.h"

struct keyed {
  const struct hb_input *input;
  struct hb_told *told;
  struct hb_store *store;
  uint64_t id; /* of the stream in the store */
  int64_t next[HB_INPUT_KEYS];
  int64_t first_position[HB_INPUT_KEYS];
  int64_t last_position[HB_INPUT_KEYS];
};

static uint32_t key_of(const struct keyed *keyed, const struct hb_event *event) {
  for (uint32_t key = 0; key < HB_INPUT_KEYS; key++) {
    if (hb_slice_equal(hb_event_key(event), hb_slice_text(hb_input_key(key)))) return key;
  }
  hb_run_wrong(keyed->told, "a key that was never sent");
}

static void find_keyed(struct keyed *keyed, struct hb_slice frame, bool held, int64_t position) {
  struct hb_found_stream *found = &keyed->told->found[HB_INPUT_KEYED];
  struct hb_event event;
  if (hb_scan_frame(frame, &event, NULL)) hb_run_wrong(keyed->told, "a frame that is none");
  uint32_t key = key_of(keyed, &event);
  if (held && event.sequence < keyed->next[key]) return; /* released, its bundle is still there */
  if (!held && event.sequence != keyed->next[key]) {
    hb_run_wrong(keyed->told, "key %u: sequence %" PRId64 " is released, not %" PRId64 " (I3)", key,
                 event.sequence, keyed->next[key]);
  }
  int64_t number = event.sequence * HB_INPUT_KEYS + key;
  if (number < 0 || number >= HB_INPUT_EVENTS || found->stored[number]) {
    hb_run_wrong(keyed->told,
                 "key %u: sequence %" PRId64 " is there twice, or was never sent (I10)", key,
                 event.sequence);
  }
  if (hb_test_content(&event) != hb_input_content(keyed->input, HB_INPUT_KEYED, number)) {
    hb_run_wrong(keyed->told, "key %u: sequence %" PRId64 " has other content", key,
                 event.sequence);
  }
  found->stored[number] = true;
  if (held) return;
  if (!keyed->next[key]++) keyed->first_position[key] = position;
  keyed->last_position[key] = position;
}

static bool find_in_keyed_bundle(void *context, struct hb_bundle_id id, struct hb_slice bytes) {
  struct keyed *keyed = context;
  struct hb_block block;
  (void)id;
  if (hb_block_decode(bytes, &block, NULL)) hb_run_wrong(keyed->told, "a bundle that is none");
  for (uint32_t i = 0; i < block.count; i++) {
    find_keyed(keyed, hb_block_frame(&block, i), true, 0);
  }
  return true;
}

static enum hb_code find_in_keyed_log(struct keyed *keyed, int64_t frontier, struct hb_err *err) {
  struct hb_log_reader *reader = NULL;
  struct hb_bytes *bytes = NULL;
  int64_t at = 0;
  enum hb_code code = hb_log_reader_open(keyed->store, keyed->id, 0, &reader, err);
  while (!code) {
    struct hb_block block;
    code = hb_log_reader_next(reader, &bytes, err);
    if (code || !bytes) break;
    if (hb_block_decode(hb_bytes_view(bytes), &block, NULL) || block.from != at) {
      hb_run_wrong(keyed->told, "the PER_KEY log has a hole at %" PRId64 " (I4)", at);
    }
    for (uint32_t i = 0; i < block.count; i++) {
      find_keyed(keyed, hb_block_frame(&block, i), false, at++);
    }
    if (block.to != at)
      hb_run_wrong(keyed->told, "the PER_KEY log has a hole at %" PRId64 " (I4)", at);
    hb_bytes_unref(bytes);
  }
  hb_log_reader_close(reader);
  if (!code && at != frontier)
    hb_run_wrong(keyed->told, "the PER_KEY log ends at %" PRId64 " (I4)", at);
  return code;
}

static enum hb_code check_rows(const struct keyed *keyed, struct hb_err *err) {
  enum hb_code code = HB_OK;
  for (uint32_t key = 0; !code && key < HB_INPUT_KEYS; key++) {
    bool found = false;
    struct hb_key_record record = {0};
    code = hb_key_record_read(keyed->store, keyed->id, hb_slice_text(hb_input_key(key)), &found,
                              &record, err);
    if (code) break;
    bool well = found ? record.first == 0 && record.next == keyed->next[key] &&
                            record.first_position == keyed->first_position[key] &&
                            record.last_position == keyed->last_position[key]
                      : keyed->next[key] == 0;
    if (!well) {
      hb_run_wrong(keyed->told, "key %u: its row says %" PRId64 ", the log has %" PRId64 " (I4)",
                   key, record.next, keyed->next[key]);
    }
  }
  return code;
}

enum hb_code hb_look_at_keyed(const struct hb_input *input, struct hb_told *told,
                              struct hb_store *store, uint64_t id, struct hb_err *err) {
  struct keyed keyed = {.input = input, .told = told, .store = store, .id = id};
  enum hb_code code = find_in_keyed_log(&keyed, told->found[HB_INPUT_KEYED].frontier, err);
  if (!code) code = hb_bundle_each(store, id, NULL, find_in_keyed_bundle, &keyed, err);
  return code ? code : check_rows(&keyed, err);
}
