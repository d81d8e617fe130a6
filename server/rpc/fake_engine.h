/* An engine for tests: in memory, on the caller's thread, decided naively. It can be told to be
 * full, to keep answers back and to have a short tail, so that a test can force what a real
 * engine does seldom. Implements engine.h, stream.h and reads.h. */
#ifndef HB_SERVER_RPC_FAKE_ENGINE_H
#define HB_SERVER_RPC_FAKE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>

#include "server/engine/engine.h"

struct hb_engine *fake_engine_create(const struct hb_limits *limits);
void fake_engine_destroy(struct hb_engine *engine);

/* true: hb_engine_try_append refuses; false: it takes again, and who waits for room is told. */
void fake_engine_set_full(struct hb_engine *engine, bool full);
/* false: as if the disk were full; who asked to be told is. Batches are taken all the same. */
void fake_engine_set_ingesting(struct hb_engine *engine, bool ingesting);
/* true: batches are taken but not answered; false: all that wait are answered, in order. */
void fake_engine_hold_answers(struct hb_engine *engine, bool hold);
/* The next answers are this error (code HB_OK: none). */
void fake_engine_fail_answers(struct hb_engine *engine, enum hb_code code);
/* Compactions wait until the engine is told to end them; else they are done at once, with 2 and 1
 * bytes. */
void fake_engine_hold_compactions(struct hb_engine *engine, bool hold);
bool fake_engine_is_compacting(struct hb_engine *engine);
/* Blocks that the tail keeps; older ones are BEHIND. */
void fake_engine_set_tail(struct hb_engine *engine, size_t blocks);
/* Most batches that were taken and not answered at one time. */
size_t fake_engine_most_unanswered(struct hb_engine *engine);
/* Who sent the batch that was taken last; an id is the length of the producer's text. */
uint32_t fake_engine_last_peer(struct hb_engine *engine);
/* Batches that are taken and not answered now. */
size_t fake_engine_unanswered(struct hb_engine *engine);
/* Every processor of `stream` has these results, and has processed what lies below `processed_to`.
 */
void fake_engine_set_results(struct hb_stream *stream, struct hb_stream *results,
                             int64_t processed_to);

/* Verifications have so many steps, each with one finding for each of `findings`. */
void fake_engine_set_verification(struct hb_engine *engine, size_t steps, size_t findings);
/* true: the next step does not end before this is set to false. */
void fake_engine_hold_verification(struct hb_engine *engine, bool hold);
/* What a release waits for can't be read (HB_OK: it can). */
void fake_engine_set_damage(struct hb_stream *stream, enum hb_code code);

#endif
