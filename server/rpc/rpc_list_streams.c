/* StreamService.ListStreams: pages in name order. A page's token is the last name in it, so a
 * stream made or deleted in between is neither skipped over nor repeated. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/stream_name.h"
#include "server/rpc/lane.h"
#include "server/rpc/methods.h"
#include "server/rpc/pb.h"
#include "server/rpc/stream_pb.h"
#include "server/rpc/text.h"
#include "server/rpc/unary.h"

static void answer(struct hb_call *call, const struct hb_stream_config *configs, size_t count,
                   bool more) {
  struct hb_stream_config_pb *parts = hb_calloc(count + 1, sizeof *parts);
  Holdback__V1__StreamConfig **list = hb_calloc(count + 1, sizeof *list);
  struct hb_buf token = {0};
  for (size_t i = 0; i < count; i++) {
    hb_stream_config_to_pb(&configs[i], &parts[i]);
    list[i] = &parts[i].config;
  }
  if (more) hb_text_encode_token(hb_slice_text(configs[count - 1].name), &token);
  hb_buf_append_u8(&token, '\0');
  Holdback__V1__ListStreamsResponse response = HOLDBACK__V1__LIST_STREAMS_RESPONSE__INIT;
  response.n_streams = count;
  response.streams = list;
  response.next_page_token = (char *)token.data;
  hb_call_answer(call, hb_pb_pack(&response.base));
  hb_buf_done(&token);
  free(list);
  free(parts);
}

/* A token is the last name of the page before: one that this prefix can't have come to is none. */
static enum hb_code read_token(const Holdback__V1__ListStreamsRequest *request, struct hb_buf *out,
                               struct hb_err *err) {
  enum hb_code code = hb_text_decode_token(hb_slice_text(request->page_token), out, err);
  if (code || out->size == 0) return code;
  struct hb_slice last = hb_buf_view(out);
  if (hb_stream_name_check("page_token", last, NULL) == HB_OK &&
      hb_slice_starts_with(last, hb_slice_text(request->name_prefix))) {
    return HB_OK;
  }
  return hb_err_set(err, HB_INVALID, "PAGE_TOKEN_INVALID",
                    "page_token is not one that was given for this request");
}

static void list(struct hb_call *call, const Holdback__V1__ListStreamsRequest *request) {
  struct hb_err err;
  struct hb_buf after = {0};
  uint32_t page;
  if (!hb_unary_page_size(call, request->page_size, &page)) return;
  if (read_token(request, &after, &err)) {
    hb_call_end(call, &err);
    hb_buf_done(&after);
    return;
  }
  hb_buf_append_u8(&after, '\0');
  struct hb_stream_config *configs = hb_calloc(page, sizeof *configs);
  bool more = false;
  size_t count = hb_engine_list_streams(call->rpc->engine, request->name_prefix,
                                        (const char *)after.data, configs, page, &more);
  answer(call, configs, count, more);
  free(configs);
  hb_buf_done(&after);
}

static void received(struct hb_call *call, const grpc_slice *message) {
  Holdback__V1__ListStreamsRequest *request =
      hb_unary_unpack(call, &holdback__v1__list_streams_request__descriptor, message);
  if (!request) return;
  list(call, request);
  holdback__v1__list_streams_request__free_unpacked(request, NULL);
}

const struct hb_method hb_method_list_streams = {
    .path = "/holdback.v1.StreamService/ListStreams",
    .size = sizeof(struct hb_call),
    .request_bytes_max = HB_REQUEST_BYTES_MAX,
    .opened = hb_unary_opened,
    .received = received,
    .drain = hb_unary_drain,
};
