/* Looks at what is kept of a stream's processors: their rows in `streams`, the log of their results
 * (each position up to the place's lies in exactly one block, as in I4), states and timers.
 *
 * A bundle is one write, and what is dropped goes in one: so a place that was read once says which
 * results must be there from then on, unless the processor has gone since. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/frame/scan.h"
#include "storage/key_internal.h"
#include "storage/record_internal.h"
#include "storage/record_processor_internal.h"
#include "storage/verify_internal.h"

static const char bad_key[] = "not a key of this family";

/* ---- who is there */

static bool has_config(struct hb_verify *verify, uint64_t processor) {
  struct hb_processor_id id = {.stream = verify->stream.id, .processor = processor};
  struct hb_key key = hb_key_processor_row(id, HB_PART_CONFIG);
  struct hb_bytes *value = NULL;
  enum hb_code code = hb_rocks_get(verify->options.store->engine, HB_FAMILY_STREAMS,
                                   hb_key_view(&key), &value, NULL);
  bool any = code != HB_OK || value; /* unreadable rows are told elsewhere */
  if (!code) hb_bytes_unref(value);
  return any;
}

/* Or it is the number of one's statuses. */
static bool is_there(struct hb_verify *verify, uint64_t processor) {
  return has_config(verify, processor) || (processor > 0 && has_config(verify, processor - 1));
}

static struct hb_verify_processor *find(struct hb_verify *verify, uint64_t processor) {
  struct hb_verify_processors *all = &verify->processors;
  for (size_t i = 0; i < all->count; i++) {
    if (all->items[i].id == processor) return &all->items[i];
  }
  return NULL;
}

static struct hb_verify_processor *add(struct hb_verify *verify, uint64_t processor) {
  struct hb_verify_processors *all = &verify->processors;
  struct hb_verify_processor *found = find(verify, processor);
  if (found) return found;
  hb_reserve((void **)&all->items, &all->cap, all->count + 1, sizeof *all->items);
  all->items[all->count] = (struct hb_verify_processor){.id = processor};
  return &all->items[all->count++];
}

void hb_verify_processors_done(struct hb_verify_processors *processors) {
  free(processors->items);
  hb_buf_done(&processors->key);
  *processors = (struct hb_verify_processors){.count = 0};
}

/* ---- rows in `streams` */

static const char *look_at_part(struct hb_verify *verify, struct hb_slice key,
                                struct hb_slice value, struct hb_err *err) {
  struct hb_processor_id id;
  enum hb_processor_part part;
  struct hb_processor_config config;
  struct hb_processor_place place;
  struct hb_processor_attempt attempt;
  if (key.size < 9 || key.data[8] != HB_KIND_PROCESSOR) return NULL; /* told before */
  if (!hb_key_parse_processor_row(key, &id, &part)) return bad_key;
  struct hb_verify_processor *statuses = add(verify, hb_statuses_id(id).processor);
  if (!statuses->is_statuses) statuses->results = -1; /* not known before the place */
  statuses->is_statuses = statuses->has_config = statuses->has_place = true;
  struct hb_verify_processor *processor = add(verify, id.processor);
  enum hb_code code = HB_OK;
  switch (part) {
    case HB_PART_CONFIG:
      processor->has_config = true;
      code = hb_record_get_processor(value, &config, err);
      break;
    case HB_PART_PLACE:
      code = hb_record_get_place(value, &place, err);
      processor->has_place = true;
      processor->results = code ? -1 : place.next_result;
      add(verify, hb_statuses_id(id).processor)->results = code ? -1 : place.next_status;
      break;
    case HB_PART_ATTEMPT:
      code = hb_record_get_attempt(value, &attempt, err);
      break;
    case HB_PART_END:
      return bad_key;
  }
  return code ? err->message : NULL;
}

static void check_parts(struct hb_verify *verify) {
  const struct hb_verify_processors *all = &verify->processors;
  for (size_t i = 0; i < all->count; i++) {
    const struct hb_verify_processor *at = &all->items[i];
    if (at->has_config && at->has_place) continue;
    /* Its rows come and go in one write, but are not read at one moment. */
    if (verify->options.live && !is_there(verify, at->id)) continue;
    hb_verify_report(verify, "streams", NULL, "processor %" PRIu64 " has no %s", at->id,
                     at->has_config ? "place" : "configuration");
  }
}

bool hb_verify_processors(struct hb_verify *verify) {
  if (!verify->scan.verify) {
    hb_scan_begin(&verify->scan, verify, HB_FAMILY_STREAMS, verify->stream.id, NULL);
  }
  if (!hb_verify_each_row(verify, look_at_part)) return false;
  check_parts(verify);
  return true;
}

/* ---- whose rows they are */

/* Now, and not when the walk over the family began: it may have been dropped meanwhile. */
static bool has_rows(struct hb_verify *verify, enum hb_family family, struct hb_processor_id id) {
  struct hb_key start = hb_key_processor(id);
  struct hb_key end = hb_key_processor_end(id);
  struct hb_rocks_iter *iter = hb_rocks_iter_create(verify->options.store->engine, family,
                                                    hb_key_view(&start), hb_key_view(&end));
  hb_rocks_iter_first(iter);
  bool any = hb_rocks_iter_valid(iter);
  hb_rocks_iter_destroy(iter);
  return any;
}

/* Once for each processor that nobody knows. NULL: it is known, or told. */
static const char *check_owner(struct hb_verify *verify, struct hb_processor_id id) {
  struct hb_verify_processors *all = &verify->processors;
  if (find(verify, id.processor)) return NULL;
  if (all->any_unknown && all->unknown == id.processor) return NULL;
  all->any_unknown = true;
  all->unknown = id.processor;
  if (is_there(verify, id.processor)) return NULL; /* attached since */
  return has_rows(verify, verify->scan.family, id) ? "of a processor that is not known" : NULL;
}

/* ---- results */

static void tell_range(struct hb_verify *verify, int64_t from, int64_t to, uint64_t processor,
                       const char *text) {
  if (verify->options.live && !is_there(verify, processor)) return;
  struct hb_range range = {from, to};
  hb_verify_report(verify, "results", &range, "processor %" PRIu64 ": %s", processor, text);
}

static void check_frames(struct hb_verify *verify, uint64_t processor,
                         const struct hb_block *block) {
  if (block->count != (uint64_t)block->to - (uint64_t)block->from) {
    tell_range(verify, block->from, block->to, processor, "not each position has a result");
  }
  for (uint32_t i = 0; i < block->count; i++) {
    struct hb_event result;
    struct hb_err err;
    struct hb_slice frame = hb_block_frame(block, i);
    int64_t position = hb_block_sequence(block, i);
    if (hb_scan_frame(frame, &result, &err)) {
      tell_range(verify, position, position + 1, processor, err.message);
    } else if (result.frame_size != frame.size) {
      tell_range(verify, position, position + 1, processor, "there is more behind its frame");
    } else if (result.sequence != position) {
      tell_range(verify, position, position + 1, processor,
                 "the result there has another position");
    }
  }
}

/* The block at `from` of one that is known. */
static void look_at_block(struct hb_verify *verify, struct hb_verify_processor *processor,
                          int64_t from, struct hb_slice value) {
  bool above = processor->has_place && processor->results >= 0 && from >= processor->results;
  if (above && verify->options.live) return; /* newer than the place */
  if (above) {
    tell_range(verify, from, from + 1, processor->id, "a block is above the processor's place");
    return;
  }
  struct hb_block block;
  struct hb_err err;
  if (from != processor->next) {
    int64_t low = from < processor->next ? from : processor->next;
    int64_t high = from < processor->next ? processor->next : from;
    tell_range(verify, low, high, processor->id,
               from < processor->next ? "two blocks account for these positions"
                                      : "no block accounts for these positions");
  }
  enum hb_code code = hb_block_decode(value, &block, &err);
  if (!code && block.from != from) {
    code = hb_err_set(&err, HB_CORRUPT, NULL, "the block there starts at %" PRId64, block.from);
  }
  processor->next = code ? from + 1 : block.to;
  processor->broken = code;
  if (code) {
    tell_range(verify, from, from + 1, processor->id, err.message);
    return;
  }
  check_frames(verify, processor->id, &block);
}

static const char *look_at_results(struct hb_verify *verify, struct hb_slice key,
                                   struct hb_slice value, struct hb_err *err) {
  (void)err;
  struct hb_processor_id id;
  int64_t from;
  if (!hb_key_parse_result(key, &id, &from)) return bad_key;
  struct hb_verify_processor *processor = find(verify, id.processor);
  if (!processor) return check_owner(verify, id);
  if (processor->broken) { /* how far the one before went is not known */
    processor->broken = false;
    processor->next = from;
  }
  look_at_block(verify, processor, from, value);
  return NULL;
}

static void check_ends(struct hb_verify *verify) {
  const struct hb_verify_processors *all = &verify->processors;
  for (size_t i = 0; i < all->count; i++) {
    const struct hb_verify_processor *at = &all->items[i];
    if (!at->has_place || at->results < 0 || at->broken || at->next >= at->results) continue;
    tell_range(verify, at->next, at->results, at->id,
               "the results end before the processor's place");
  }
}

static void begin(struct hb_verify *verify, enum hb_family family) {
  if (verify->scan.verify) return;
  verify->processors.any_unknown = false;
  hb_scan_begin(&verify->scan, verify, family, verify->stream.id, NULL);
}

bool hb_verify_results(struct hb_verify *verify) {
  begin(verify, HB_FAMILY_RESULTS);
  if (!hb_verify_each_row(verify, look_at_results)) return false;
  check_ends(verify);
  return true;
}

/* ---- states, timers */

static const char *look_at_state(struct hb_verify *verify, struct hb_slice key,
                                 struct hb_slice value, struct hb_err *err) {
  struct hb_processor_id id;
  struct hb_slice name;
  struct hb_slice bytes;
  if (!hb_key_parse_state(key, &id, &verify->processors.key, &name)) return bad_key;
  const struct hb_verify_processor *owner = find(verify, id.processor);
  struct hb_key_status status;
  enum hb_code code = owner && owner->is_statuses ? hb_record_get_key_status(value, &status, err)
                                                  : hb_record_get_bytes(value, &bytes, err);
  return code ? err->message : check_owner(verify, id);
}

bool hb_verify_states(struct hb_verify *verify) {
  begin(verify, HB_FAMILY_STATES);
  return hb_verify_each_row(verify, look_at_state);
}

/* True: *out says what there is to tell. Under the number of a processor's statuses lie the keys
 * that wait; what nobody owns is neither. */
static bool is_blocked(struct hb_verify *verify, struct hb_slice key, struct hb_slice value,
                       const char **out, struct hb_err *err) {
  struct hb_processor_id id;
  struct hb_slice name;
  if (!hb_key_parse_state(key, &id, &verify->processors.key, &name)) return false;
  const struct hb_verify_processor *owner = find(verify, id.processor);
  if (owner && !owner->is_statuses) return false;
  if (!owner) {
    *out = check_owner(verify, id);
    return true;
  }
  struct hb_blocked_row row = {.key = hb_buf_view(&verify->processors.key)};
  *out = name.size ? bad_key : hb_record_get_blocked(value, &row, err) ? err->message : NULL;
  return true;
}

static const char *look_at_timer(struct hb_verify *verify, struct hb_slice key,
                                 struct hb_slice value, struct hb_err *err) {
  struct hb_processor_id id;
  struct hb_timer_row row;
  const char *blocked;
  if (is_blocked(verify, key, value, &blocked, err)) return blocked;
  if (!hb_key_parse_timer(key, &id, &verify->processors.key, &row)) return bad_key;
  if (hb_record_get_bytes(value, &row.name, err)) return err->message;
  return check_owner(verify, id);
}

bool hb_verify_timers(struct hb_verify *verify) {
  begin(verify, HB_FAMILY_TIMERS);
  return hb_verify_each_row(verify, look_at_timer);
}
