/* What is missing, in pages: the gaps of a stream or of one key, and the keys that have some. A
 * job, since the sequencer's core has it in memory; each page costs it a fraction of a millisecond.
 */
#ifndef HB_SERVER_ENGINE_GAPS_H
#define HB_SERVER_ENGINE_GAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "base/types.h"
#include "ordering/gap_list.h"

/* With HB_JOB_LIST_GAPS; the stream is job->config.name. What is answered is durable, also of an
 * ASYNC stream, which is fsynced for it. HB_NOT_FOUND: the stream. HB_INVALID: the token, or no key
 * in PER_KEY mode. HB_PRECONDITION: a key, or of_keys, in GLOBAL mode. */
struct hb_gap_request {
  bool of_keys;          /* the keys that have gaps, else gaps */
  bool has_key;          /* gaps: of this key */
  struct hb_slice key;   /* or of_keys: keys that begin so; lives until done */
  struct hb_slice token; /* empty: the first page; lives until done */
  uint32_t page_size;
  /* out; owned: hb_gap_request_done */
  struct hb_gap *gaps;
  bool initial_missing;
  struct hb_key_gaps *keys; /* named in key_bytes */
  struct hb_buf key_bytes;
  size_t count;
  struct hb_buf next_token; /* empty: that was the last page */
};
void hb_gap_request_done(struct hb_gap_request *request);

#endif
