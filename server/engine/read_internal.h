/* The kinds of reads, each in its room. A reader's thread calls them through hb_read_run. */
#ifndef HB_SERVER_ENGINE_READ_INTERNAL_H
#define HB_SERVER_ENGINE_READ_INTERNAL_H

#include "base/err.h"
#include "server/engine/engine_internal.h"
#include "server/engine/reads.h"

/* HB_OK: done. *out_again true: a step is done, `read` wants another one after others had theirs
 * (its state stays in read->state). */
enum hb_code hb_read_log(struct hb_engine *engine, struct hb_read *read, struct hb_err *err);
enum hb_code hb_read_time(struct hb_engine *engine, struct hb_read *read, struct hb_err *err);
enum hb_code hb_read_key(struct hb_engine *engine, struct hb_read *read, struct hb_err *err);
enum hb_code hb_read_keys(struct hb_engine *engine, struct hb_read *read, bool *out_again,
                          struct hb_err *err);
void hb_read_keys_done(void *state);
enum hb_code hb_read_unprocessed(struct hb_engine *engine, struct hb_read *read,
                                 struct hb_err *err);

/* FNV-1a over bytes; ties a token to what it was given for. */
uint64_t hb_token_hash(uint64_t seed, struct hb_slice bytes);
enum hb_code hb_token_invalid(struct hb_err *err);

/* ---- read_standings.c: how keys stand, into read->standings */
struct hb_standings_pass;
/* `keys` ascend, and live as long as the pass. */
HB_MUST_CHECK enum hb_code hb_standings_begin(struct hb_engine *engine, struct hb_read *read,
                                              const struct hb_slice *keys, size_t count,
                                              struct hb_standings_pass **out, struct hb_err *err);
HB_MUST_CHECK enum hb_code hb_standings_step(struct hb_standings_pass *pass, bool *out_done,
                                             struct hb_err *err);
void hb_standings_done(struct hb_standings_pass *pass); /* NULL is allowed */

#endif
