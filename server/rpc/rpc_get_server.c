/* ServerService.GetServer: who the server is, and every limit as it is set. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/version.h"
#include "holdback/v1/server.pb-c.h"
#include "server/rpc/lane.h"
#include "server/rpc/methods.h"
#include "server/rpc/pb.h"
#include "server/rpc/unary.h"

static void limit_to_pb(const struct hb_limits *limits, const struct hb_limit_row *row,
                        Holdback__V1__Limit *pb) {
  holdback__v1__limit__init(pb);
  pb->name = (char *)(uintptr_t)row->name;
  pb->value = hb_limits_get(limits, row);
  pb->min = row->min;
  pb->max = row->max;
  pb->unit = (char *)(uintptr_t)row->unit;
  pb->help = (char *)(uintptr_t)row->help;
}

static void received(struct hb_call *call, const grpc_slice *message) {
  Holdback__V1__GetServerRequest *request =
      hb_unary_unpack(call, &holdback__v1__get_server_request__descriptor, message);
  if (!request) return;
  holdback__v1__get_server_request__free_unpacked(request, NULL);
  size_t count;
  const struct hb_limit_row *rows = hb_limits_rows(&count);
  Holdback__V1__Limit *parts = hb_calloc(count, sizeof *parts);
  Holdback__V1__Limit **list = hb_calloc(count, sizeof *list);
  for (size_t i = 0; i < count; i++) {
    limit_to_pb(call->rpc->limits, &rows[i], &parts[i]);
    list[i] = &parts[i];
  }
  const struct hb_engine_info *info = hb_engine_info(call->rpc->engine);
  Holdback__V1__GetServerResponse response = HOLDBACK__V1__GET_SERVER_RESPONSE__INIT;
  response.version = (char *)(uintptr_t)HB_VERSION_TEXT;
  response.store_id = (ProtobufCBinaryData){.len = sizeof info->store_id,
                                            .data = (uint8_t *)(uintptr_t)info->store_id};
  response.store_incarnation = (ProtobufCBinaryData){
      .len = sizeof info->incarnation, .data = (uint8_t *)(uintptr_t)info->incarnation};
  response.n_limits = count;
  response.limits = list;
  response.served_ms = hb_engine_served_ms(call->rpc->engine);
  hb_call_answer(call, hb_pb_pack(&response.base));
  free(list);
  free(parts);
}

const struct hb_method hb_method_get_server = {
    .path = "/holdback.v1.ServerService/GetServer",
    .size = sizeof(struct hb_call),
    .request_bytes_max = HB_REQUEST_BYTES_MAX,
    .opened = hb_unary_opened,
    .received = received,
    .drain = hb_unary_drain,
};
