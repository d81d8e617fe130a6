/* Settings of streams: which are valid, what 0 stands for, what differs. Pure.
 *
 * A configuration is stored as it was stated; "resolved" has the server's defaults filled in. */
#ifndef HB_SERVER_ENGINE_CONFIG_H
#define HB_SERVER_ENGINE_CONFIG_H

#include "base/err.h"
#include "base/limits.h"
#include "base/types.h"

/* For a new stream; ack 0 and limits 0 = not stated. HB_INVALID with field, value and limit.
 */
HB_MUST_CHECK enum hb_code hb_config_check(const struct hb_stream_config *config,
                                           struct hb_err *err);
/* Of an update only name, ack and limits count. */
HB_MUST_CHECK enum hb_code hb_config_check_changes(const struct hb_stream_config *changes,
                                                   struct hb_err *err);
/* HB_EXISTS naming the first field that differs, with both values. Both are resolved. */
HB_MUST_CHECK enum hb_code hb_config_check_same(const struct hb_stream_config *have,
                                                const struct hb_stream_config *want,
                                                struct hb_err *err);
struct hb_stream_config hb_config_resolve(const struct hb_limits *limits,
                                          const struct hb_stream_config *stored);
/* What `changes` states, ack and limits, put over `stored`. */
void hb_config_change(struct hb_stream_config *stored, const struct hb_stream_config *changes);

#endif
