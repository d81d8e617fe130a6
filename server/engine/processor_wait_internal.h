/* Between the rooms that look after keys that wait at an event that failed: processor_wait.c (when
 * and with what they are tried), processor_copies.c, processor_retry.c. All on the processor's
 * thread. */
#ifndef HB_SERVER_ENGINE_PROCESSOR_WAIT_INTERNAL_H
#define HB_SERVER_ENGINE_PROCESSOR_WAIT_INTERNAL_H

#include "server/engine/processor_internal.h"

/* ---- processor_copies.c */
struct hb_copy {
  uint64_t seen_ms;
  uint64_t hash;
};
struct hb_copies {
  const struct hb_blocked_row *row;
  struct hb_copy items[HB_COPIES_MAX];
  size_t count;
};

/* Of keys of which copies were kept, those that wait are to be looked at. */
void hb_copies_take_notes(struct hb_processor *processor);
/* In order of arrival, the first HB_COPIES_MAX. */
HB_MUST_CHECK enum hb_code hb_copies_find(struct hb_processor *processor,
                                          const struct hb_blocked_row *row, struct hb_copies *out,
                                          struct hb_err *err);
bool hb_copies_was_tried(const struct hb_blocked_key *key, uint64_t hash);
/* An event to try: of these copies, or, `hash` NULL, the one that failed. It lives until the next.
 */
HB_MUST_CHECK enum hb_code hb_copies_read(struct hb_feeding *feeding,
                                          const struct hb_blocked_row *row, const uint64_t *hash,
                                          struct hb_event *out, enum hb_try *out_kind,
                                          struct hb_err *err);

/* ---- processor_retry.c */
/* The first one that is asked for and not under way. */
void hb_retry_begin(struct hb_processor *processor);
/* Nothing is left to do. True: somebody was told. */
bool hb_retry_end(struct hb_processor *processor);

#endif
