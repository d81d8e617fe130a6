/* Every method that the server has, one file each. */
#ifndef HB_SERVER_RPC_METHODS_H
#define HB_SERVER_RPC_METHODS_H

#include "server/rpc/call.h"

extern const struct hb_method hb_method_append;
extern const struct hb_method hb_method_append_stream;
extern const struct hb_method hb_method_attach_processor;
extern const struct hb_method hb_method_compact_store;
extern const struct hb_method hb_method_create_stream;
extern const struct hb_method hb_method_delete_stream;
extern const struct hb_method hb_method_detach_processor;
extern const struct hb_method hb_method_get_key_status;
extern const struct hb_method hb_method_retry_blocked_keys;
extern const struct hb_method hb_method_get_processor;
extern const struct hb_method hb_method_get_server;
extern const struct hb_method hb_method_get_stream;
extern const struct hb_method hb_method_health_check;
extern const struct hb_method hb_method_health_watch;
extern const struct hb_method hb_method_list_gaps;
extern const struct hb_method hb_method_list_keys;
extern const struct hb_method hb_method_list_keys_with_gaps;
extern const struct hb_method hb_method_list_processors;
extern const struct hb_method hb_method_list_streams;
extern const struct hb_method hb_method_list_unprocessed;
extern const struct hb_method hb_method_read_key;
extern const struct hb_method hb_method_reflection_v1;
extern const struct hb_method hb_method_reflection_v1alpha;
extern const struct hb_method hb_method_seal_stream;
extern const struct hb_method hb_method_skip_blocked_key;
extern const struct hb_method hb_method_subscribe;
extern const struct hb_method hb_method_update_stream;
extern const struct hb_method hb_method_verify_store;

/* Calls that are answered with an error at once. */
extern const struct hb_method hb_method_refused;  /* calls_max */
extern const struct hb_method hb_method_stopping; /* the server drains */
extern const struct hb_method hb_method_unknown;  /* no such method */

/* NULL: none has this path. */
const struct hb_method *hb_method_find(const char *path, size_t size);

#endif
