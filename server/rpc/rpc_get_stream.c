/* StreamService.GetStream: configuration, and the numbers as of the last fsynced commit. */
#include "server/rpc/lane.h"
#include "server/rpc/methods.h"
#include "server/rpc/pb.h"
#include "server/rpc/stream_pb.h"
#include "server/rpc/unary.h"

static void answer(struct hb_call *call, struct hb_stream *stream) {
  struct hb_stream_config config;
  struct hb_stream_status status;
  struct hb_stream_config_pb config_pb;
  struct hb_stream_status_pb status_pb;
  hb_stream_get_config(stream, &config);
  hb_stream_get_status(stream, &status);
  hb_stream_config_to_pb(&config, &config_pb);
  hb_stream_status_to_pb(&status, hb_engine_served_ms(call->rpc->engine), &status_pb);
  Holdback__V1__GetStreamResponse response = HOLDBACK__V1__GET_STREAM_RESPONSE__INIT;
  response.config = &config_pb.config;
  response.status = &status_pb.status;
  response.incarnation = (ProtobufCBinaryData){
      .len = HB_INCARNATION_SIZE, .data = (uint8_t *)(uintptr_t)hb_stream_incarnation(stream)};
  hb_call_answer(call, hb_pb_pack(&response.base));
}

static void received(struct hb_call *call, const grpc_slice *message) {
  Holdback__V1__GetStreamRequest *request =
      hb_unary_unpack(call, &holdback__v1__get_stream_request__descriptor, message);
  if (!request) return;
  struct hb_stream *stream = hb_unary_find_stream(call, request->stream);
  holdback__v1__get_stream_request__free_unpacked(request, NULL);
  if (!stream) return;
  answer(call, stream);
  hb_stream_unref(stream);
}

const struct hb_method hb_method_get_stream = {
    .path = "/holdback.v1.StreamService/GetStream",
    .size = sizeof(struct hb_call),
    .request_bytes_max = HB_REQUEST_BYTES_MAX,
    .opened = hb_unary_opened,
    .received = received,
    .drain = hb_unary_drain,
};
