/* Decides which method a path means, and what is said where there is none. */
#include "server/rpc/methods.h"

#include <inttypes.h>
#include <string.h>

#include "server/rpc/lane.h"

static const struct hb_method *const methods[] = {
    &hb_method_append_stream,      &hb_method_append,           &hb_method_subscribe,
    &hb_method_get_stream,         &hb_method_read_key,         &hb_method_list_keys,
    &hb_method_create_stream,      &hb_method_update_stream,    &hb_method_delete_stream,
    &hb_method_list_streams,       &hb_method_get_server,       &hb_method_compact_store,
    &hb_method_health_check,       &hb_method_health_watch,     &hb_method_reflection_v1,
    &hb_method_reflection_v1alpha, &hb_method_verify_store,     &hb_method_seal_stream,
    &hb_method_attach_processor,   &hb_method_detach_processor, &hb_method_get_processor,
    &hb_method_list_processors,    &hb_method_get_key_status,   &hb_method_retry_blocked_keys,
    &hb_method_skip_blocked_key,   &hb_method_list_gaps,        &hb_method_list_keys_with_gaps,
    &hb_method_list_unprocessed,
};

const struct hb_method *hb_method_find(const char *path, size_t size) {
  for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
    const char *known = methods[i]->path;
    if (strlen(known) == size && memcmp(known, path, size) == 0) return methods[i];
  }
  return NULL;
}

static void ignore_message(struct hb_call *call, const grpc_slice *message) {
  (void)call;
  (void)message;
}

static void refuse(struct hb_call *call) {
  struct hb_err err;
  hb_err_set(&err, HB_LIMIT, "TOO_MANY_CALLS", "calls_max is %" PRIu64 ", so many calls are open",
             call->rpc->limits->calls_max);
  hb_call_end(call, &err);
}

static void stopping(struct hb_call *call) {
  struct hb_err err;
  hb_err_set(&err, HB_UNAVAILABLE, "SERVER_STOPS", "server stops");
  hb_call_end(call, &err);
}

static void unknown(struct hb_call *call) {
  struct hb_err err;
  hb_err_set(&err, HB_UNIMPLEMENTED, "METHOD_UNKNOWN",
             "this server has no such method; reflection lists those that it has");
  hb_call_end(call, &err);
}

const struct hb_method hb_method_refused = {
    .path = "", .size = sizeof(struct hb_call), .opened = refuse, .received = ignore_message};
const struct hb_method hb_method_stopping = {
    .path = "", .size = sizeof(struct hb_call), .opened = stopping, .received = ignore_message};
const struct hb_method hb_method_unknown = {
    .path = "", .size = sizeof(struct hb_call), .opened = unknown, .received = ignore_message};
