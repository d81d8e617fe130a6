/* Decides how pages of what is kept aside become callbacks.
 *
 * An UnprocessedEvent begins with its Event as field 1, on the wire exactly a frame: it is read in
 * place, as in a key's list. The other fields are short; they are unpacked as a message. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/frame/wire.h"
#include "client/bytebuf.h"
#include "client/decode.h"
#include "client/error.h"
#include "client/unary.h"
#include "holdback/v1/delivery.pb-c.h"

#define METHOD "/holdback.v1.DeliveryService/ListUnprocessed"

enum { PAGE_EVENTS = 1, PAGE_TOKEN = 2, PAGE_MOST = 1000 };

enum page_end { PAGE_MORE, PAGE_LAST, PAGE_MALFORMED };

struct listing {
  struct hbc_headers headers;
  holdback_unprocessed_each *each;
  void *context;
  char *token; /* owned; NULL = the first page */
};

/* 0 for what no server says: users format it, from year 1970 to 9999. */
static int64_t ms_of(const Google__Protobuf__Timestamp *time) {
  if (!time || time->seconds < 0 || time->seconds > INT64_C(253402300799)) return 0;
  if (time->nanos < 0 || time->nanos > 999999999) return 0;
  return time->seconds * 1000 + time->nanos / 1000000;
}

static bool take_event(struct hb_slice bytes, struct hbc_headers *headers,
                       struct holdback_unprocessed *out) {
  const uint8_t *end = bytes.data + bytes.size;
  struct hb_wire_reader reader = {bytes.data, end};
  struct hb_wire_field field;
  enum hb_wire_result result;
  while ((result = hb_wire_next(&reader, &field)) == HB_WIRE_FIELD) {
    if (field.number != 1 || field.type != HB_WIRE_LEN) continue;
    struct hb_slice frame = hb_slice_of(field.start, (size_t)(field.end - field.start));
    out->has_event = hbc_event_decode(frame, headers, &out->event);
    if (!out->has_event) return false;
  }
  return result == HB_WIRE_END;
}

static enum page_end tell(struct listing *listing, struct hb_slice bytes) {
  Holdback__V1__UnprocessedEvent *from =
      holdback__v1__unprocessed_event__unpack(NULL, bytes.size, bytes.data);
  if (!from) return PAGE_MALFORMED;
  struct holdback_unprocessed out = {.reason = (int)from->reason,
                                     .has_position = from->position_presence_case != 0,
                                     .position = from->position,
                                     .processor = from->processor,
                                     .explanation = from->explanation,
                                     .producer = from->producer,
                                     .count = from->count,
                                     .first_seen_ms = ms_of(from->first_seen),
                                     .last_seen_ms = ms_of(from->last_seen)};
  enum page_end end = PAGE_MALFORMED;
  if (take_event(bytes, &listing->headers, &out)) {
    end = listing->each(listing->context, &out) ? PAGE_MORE : PAGE_LAST;
  }
  holdback__v1__unprocessed_event__free_unpacked(from, NULL);
  return end;
}

static void keep_token(struct listing *listing, struct hb_slice token) {
  free(listing->token);
  listing->token = hb_alloc(token.size + 1);
  memcpy(listing->token, token.data, token.size);
  listing->token[token.size] = '\0';
}

static enum page_end tell_page(struct listing *listing, struct hb_slice page) {
  static const uint8_t none[1];
  const uint8_t *at = page.size ? page.data : none;
  struct hb_wire_reader reader = {at, at + page.size};
  struct hb_wire_field field;
  enum hb_wire_result result;
  free(listing->token);
  listing->token = NULL;
  while ((result = hb_wire_next(&reader, &field)) == HB_WIRE_FIELD) {
    if (field.type != HB_WIRE_LEN) continue;
    if (field.number == PAGE_TOKEN && field.bytes.size) keep_token(listing, field.bytes);
    if (field.number != PAGE_EVENTS) continue;
    enum page_end end = field.bytes.size ? tell(listing, field.bytes) : PAGE_MALFORMED;
    if (end != PAGE_MORE) return end;
  }
  if (result != HB_WIRE_END) return PAGE_MALFORMED;
  return listing->token ? PAGE_MORE : PAGE_LAST;
}

static int list_pages(struct holdback_client *client, Holdback__V1__ListUnprocessedRequest *request,
                      struct listing *listing, struct holdback_error *error) {
  enum page_end end = PAGE_MORE;
  while (end == PAGE_MORE) {
    if (listing->token) request->page_token = listing->token;
    grpc_slice page;
    int status = hbc_unary_call_bytes(client, METHOD, &request->base, &page, error);
    if (status) return status;
    end = tell_page(listing, hbc_slice_view(&page));
    grpc_slice_unref(page);
  }
  if (end == PAGE_LAST) return HOLDBACK_OK;
  return hbc_error_set(error, HOLDBACK_INTERNAL, NULL,
                       "%s: ListUnprocessed: the answer is malformed", client->server);
}

int holdback_list_unprocessed(struct holdback_client *client, const char *stream,
                              const struct holdback_unprocessed_filter *filter,
                              holdback_unprocessed_each *each, void *context,
                              struct holdback_error *error) {
  Holdback__V1__ListUnprocessedRequest request = HOLDBACK__V1__LIST_UNPROCESSED_REQUEST__INIT;
  request.stream = (char *)(uintptr_t)stream;
  request.page_size = PAGE_MOST;
  if (filter) {
    if (filter->processor) request.processor = (char *)(uintptr_t)filter->processor;
    request.reason = (Holdback__V1__UnprocessedReason)filter->reason;
  }
  if (filter && filter->key) {
    request.key_presence_case = HOLDBACK__V1__LIST_UNPROCESSED_REQUEST__KEY_PRESENCE_KEY;
    request.key = (ProtobufCBinaryData){.len = filter->key->size,
                                        .data = (uint8_t *)(uintptr_t)filter->key->data};
  }
  struct listing listing = {.each = each, .context = context};
  int status = list_pages(client, &request, &listing, error);
  free(listing.token);
  hbc_headers_done(&listing.headers);
  return status;
}
