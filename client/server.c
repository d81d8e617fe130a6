/* The server as a whole. Decides what a ping is: GetServer, timed; and that a compaction is waited
 * for without a limit of time. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "client/unary.h"
#include "holdback/v1/server.pb-c.h"

int holdback_ping(struct holdback_client *client, struct holdback_server *out,
                  struct holdback_error *error) {
  Holdback__V1__GetServerRequest request = HOLDBACK__V1__GET_SERVER_REQUEST__INIT;
  ProtobufCMessage *answer;
  uint64_t start_ns = hb_clock_mono_ns();
  int status = hbc_unary_call(client, "/holdback.v1.ServerService/GetServer", &request.base,
                              &holdback__v1__get_server_response__descriptor, &answer, error);
  if (status) return status;
  const Holdback__V1__GetServerResponse *server = (Holdback__V1__GetServerResponse *)answer;
  *out = (struct holdback_server){
      .served_ms = server->served_ms,
      .round_trip_ms = (double)(hb_clock_mono_ns() - start_ns) / 1e6,
  };
  (void)snprintf(out->version, sizeof out->version, "%s", server->version);
  if (server->store_id.len == sizeof out->store_id)
    memcpy(out->store_id, server->store_id.data, sizeof out->store_id);
  protobuf_c_message_free_unpacked(answer, NULL);
  return HOLDBACK_OK;
}

int holdback_compact(struct holdback_client *client, struct holdback_compaction *out,
                     struct holdback_error *error) {
  Holdback__V1__CompactStoreRequest request = HOLDBACK__V1__COMPACT_STORE_REQUEST__INIT;
  ProtobufCMessage *answer;
  int status =
      hbc_unary_call_patiently(client, "/holdback.v1.ServerService/CompactStore", &request.base,
                               &holdback__v1__compact_store_response__descriptor, &answer, error);
  if (status) return status;
  const Holdback__V1__CompactStoreResponse *done = (Holdback__V1__CompactStoreResponse *)answer;
  *out = (struct holdback_compaction){.bytes_before = done->bytes_before,
                                      .bytes_after = done->bytes_after};
  protobuf_c_message_free_unpacked(answer, NULL);
  return HOLDBACK_OK;
}
