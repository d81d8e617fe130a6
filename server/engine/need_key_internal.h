/* NEED of a PER_KEY stream. On a reader's thread. */
#ifndef HB_SERVER_ENGINE_NEED_KEY_INTERNAL_H
#define HB_SERVER_ENGINE_NEED_KEY_INTERNAL_H

#include "server/engine/engine_internal.h"

/* Answer need->keys. HB_CORRUPT: what the records say is not in the log. */
HB_MUST_CHECK enum hb_code hb_need_keys(struct hb_engine *engine, struct hb_need *need,
                                        struct hb_stream *stream, struct hb_err *err);
/* Its part about what is held, in bundles on disk. */
HB_MUST_CHECK enum hb_code hb_need_keys_held(struct hb_engine *engine, struct hb_need *need,
                                             struct hb_err *err);

#endif
