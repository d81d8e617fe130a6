/* ProcessorService.GetProcessor, ListProcessors. A page's token is the last name in it. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "server/rpc/lane.h"
#include "server/rpc/methods.h"
#include "server/rpc/pb.h"
#include "server/rpc/processor_pb.h"
#include "server/rpc/text.h"
#include "server/rpc/unary.h"

/* ---- one */

static void get(struct hb_call *call, struct hb_stream *stream, const char *name) {
  struct hb_processor_info info;
  if (!hb_engine_get_processor(call->rpc->engine, stream, name, &info)) {
    struct hb_err err;
    hb_err_set(&err, HB_NOT_FOUND, "PROCESSOR_NOT_FOUND", "the stream has no processor '%.64s'",
               name);
    hb_call_end(call, &err);
    return;
  }
  struct hb_processor_info_pb pb;
  hb_processor_info_to_pb(&info, &pb);
  Holdback__V1__GetProcessorResponse response = HOLDBACK__V1__GET_PROCESSOR_RESPONSE__INIT;
  response.processor = &pb.info;
  hb_call_answer(call, hb_pb_pack(&response.base));
  hb_processor_info_pb_done(&pb);
  hb_processor_info_done(&info);
}

static void get_received(struct hb_call *call, const grpc_slice *message) {
  Holdback__V1__GetProcessorRequest *request =
      hb_unary_unpack(call, &holdback__v1__get_processor_request__descriptor, message);
  if (!request) return;
  struct hb_stream *stream = hb_unary_find_stream(call, request->stream);
  if (stream) get(call, stream, request->name);
  hb_stream_unref(stream);
  holdback__v1__get_processor_request__free_unpacked(request, NULL);
}

const struct hb_method hb_method_get_processor = {
    .path = "/holdback.v1.ProcessorService/GetProcessor",
    .size = sizeof(struct hb_call),
    .request_bytes_max = HB_REQUEST_BYTES_MAX,
    .opened = hb_unary_opened,
    .received = get_received,
    .drain = hb_unary_drain,
};

/* ---- a page */

static void answer(struct hb_call *call, struct hb_processor_info *infos, size_t count, bool more) {
  struct hb_processor_info_pb *parts = hb_calloc(count + 1, sizeof *parts);
  Holdback__V1__ProcessorInfo **list = hb_calloc(count + 1, sizeof(Holdback__V1__ProcessorInfo *));
  struct hb_buf token = {0};
  for (size_t i = 0; i < count; i++) {
    hb_processor_info_to_pb(&infos[i], &parts[i]);
    list[i] = &parts[i].info;
  }
  if (more) hb_text_encode_token(hb_slice_text(infos[count - 1].name), &token);
  hb_buf_append_u8(&token, '\0');
  Holdback__V1__ListProcessorsResponse response = HOLDBACK__V1__LIST_PROCESSORS_RESPONSE__INIT;
  response.n_processors = count;
  response.processors = list;
  response.next_page_token = (char *)token.data;
  hb_call_answer(call, hb_pb_pack(&response.base));
  for (size_t i = 0; i < count; i++) hb_processor_info_pb_done(&parts[i]);
  hb_buf_done(&token);
  free(list);
  free(parts);
}

static void list_page(struct hb_call *call, struct hb_stream *stream, uint32_t page_size,
                      const char *page_token) {
  struct hb_err err;
  struct hb_buf after = {0};
  uint32_t page;
  if (!hb_unary_page_size(call, page_size, &page)) return;
  if (hb_text_decode_token(hb_slice_text(page_token), &after, &err)) {
    hb_call_end(call, &err);
    hb_buf_done(&after);
    return;
  }
  hb_buf_append_u8(&after, '\0');
  struct hb_processor_info *infos = hb_calloc(page, sizeof *infos);
  bool more = false;
  size_t count = hb_engine_list_processors(call->rpc->engine, stream, (const char *)after.data,
                                           infos, page, &more);
  answer(call, infos, count, more);
  for (size_t i = 0; i < count; i++) hb_processor_info_done(&infos[i]);
  free(infos);
  hb_buf_done(&after);
}

static void list_received(struct hb_call *call, const grpc_slice *message) {
  Holdback__V1__ListProcessorsRequest *request =
      hb_unary_unpack(call, &holdback__v1__list_processors_request__descriptor, message);
  if (!request) return;
  struct hb_stream *stream = hb_unary_find_stream(call, request->stream);
  if (stream) list_page(call, stream, request->page_size, request->page_token);
  hb_stream_unref(stream);
  holdback__v1__list_processors_request__free_unpacked(request, NULL);
}

const struct hb_method hb_method_list_processors = {
    .path = "/holdback.v1.ProcessorService/ListProcessors",
    .size = sizeof(struct hb_call),
    .request_bytes_max = HB_REQUEST_BYTES_MAX,
    .opened = hb_unary_opened,
    .received = list_received,
    .drain = hb_unary_drain,
};
