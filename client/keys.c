/* Decides how pages of a key's list, and of keys, become callbacks.
 *
 * A KeyEntry begins with its Event as field 1: on the wire exactly a frame. It is read in place,
 * like a subscription's, so that a long list costs no allocation per event. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/frame/wire.h"
#include "client/bytebuf.h"
#include "client/decode.h"
#include "client/error.h"
#include "client/unary.h"
#include "holdback/v1/delivery.pb-c.h"

#define METHOD(name) "/holdback.v1.DeliveryService/" name

enum { PAGE_ENTRIES = 1, PAGE_TOKEN = 2, ENTRY_EVENT = 1, ENTRY_POSITION = 2, ENTRY_STATE = 3 };
enum { STATE_RELEASED = 1 };

static ProtobufCBinaryData binary_of(struct holdback_bytes bytes) {
  return (ProtobufCBinaryData){.len = bytes.size, .data = (uint8_t *)(uintptr_t)bytes.data};
}

static struct hb_wire_reader read_from(struct hb_slice bytes) {
  static const uint8_t none[1];
  const uint8_t *at = bytes.size ? bytes.data : none;
  return (struct hb_wire_reader){at, at + bytes.size};
}

static bool decode_entry(struct hb_slice bytes, struct hbc_headers *headers,
                         struct holdback_key_entry *out) {
  struct hb_wire_reader reader = read_from(bytes);
  struct hb_wire_field field;
  enum hb_wire_result result;
  bool has_event = false;
  *out = (struct holdback_key_entry){0};
  while ((result = hb_wire_next(&reader, &field)) == HB_WIRE_FIELD) {
    if (field.number == ENTRY_EVENT && field.type == HB_WIRE_LEN) {
      struct hb_slice frame = hb_slice_of(field.start, (size_t)(field.end - field.start));
      has_event = hbc_event_decode(frame, headers, &out->event);
      if (!has_event) return false;
    } else if (field.number == ENTRY_POSITION && field.type == HB_WIRE_VARINT) {
      out->has_position = true;
      out->position = (int64_t)field.number_value;
    } else if (field.number == ENTRY_STATE && field.type == HB_WIRE_VARINT) {
      out->released = field.number_value == STATE_RELEASED;
    }
  }
  return result == HB_WIRE_END && has_event;
}

/* What one page leads to. */
enum page_end { PAGE_MORE, PAGE_LAST, PAGE_MALFORMED };

struct reading {
  struct hbc_headers headers;
  holdback_key_entry_each *each;
  void *context;
  char *token; /* owned; NULL = the first page */
};

static enum page_end tell_entries(struct reading *reading, struct hb_slice page) {
  struct hb_wire_reader reader = read_from(page);
  struct hb_wire_field field;
  enum hb_wire_result result;
  free(reading->token);
  reading->token = NULL;
  while ((result = hb_wire_next(&reader, &field)) == HB_WIRE_FIELD) {
    if (field.type != HB_WIRE_LEN) continue;
    if (field.number == PAGE_TOKEN && field.bytes.size) {
      free(reading->token);
      reading->token = hb_alloc(field.bytes.size + 1);
      memcpy(reading->token, field.bytes.data, field.bytes.size);
      reading->token[field.bytes.size] = '\0';
    }
    if (field.number != PAGE_ENTRIES) continue;
    struct holdback_key_entry entry;
    if (!decode_entry(field.bytes, &reading->headers, &entry)) return PAGE_MALFORMED;
    if (!reading->each(reading->context, &entry)) return PAGE_LAST;
  }
  if (result != HB_WIRE_END) return PAGE_MALFORMED;
  return reading->token ? PAGE_MORE : PAGE_LAST;
}

/* Each entry of a list may lie in another block of the log, and on a cold disk each is a read: the
 * first page is one event, so that it is soon there, and pages grow as it goes on. */
enum { PAGE_FIRST = 1, PAGE_GROWTH = 8, PAGE_MOST = 1000 };

static uint32_t next_page_size(uint32_t size) {
  if (size == 0) return PAGE_FIRST;
  return size < PAGE_MOST / PAGE_GROWTH ? size * PAGE_GROWTH : PAGE_MOST;
}

static int read_pages(struct holdback_client *client, Holdback__V1__ReadKeyRequest *request,
                      struct reading *reading, struct holdback_error *error) {
  enum page_end end = PAGE_MORE;
  while (end == PAGE_MORE) {
    if (reading->token) request->page_token = reading->token;
    request->page_size = next_page_size(request->page_size);
    grpc_slice page;
    int status = hbc_unary_call_bytes(client, METHOD("ReadKey"), &request->base, &page, error);
    if (status) return status;
    end = tell_entries(reading, hbc_slice_view(&page));
    grpc_slice_unref(page);
  }
  if (end == PAGE_LAST) return HOLDBACK_OK;
  return hbc_error_set(error, HOLDBACK_INTERNAL, NULL, "%s: ReadKey: the answer is malformed",
                       client->server);
}

int holdback_read_key(struct holdback_client *client, const char *stream, struct holdback_bytes key,
                      bool has_from, int64_t from_position, bool released_only,
                      holdback_key_entry_each *each, void *context, struct holdback_error *error) {
  Holdback__V1__ReadKeyRequest request = HOLDBACK__V1__READ_KEY_REQUEST__INIT;
  request.stream = (char *)(uintptr_t)stream;
  request.key = binary_of(key);
  request.released_only = released_only;
  if (has_from) {
    request.from_presence_case = HOLDBACK__V1__READ_KEY_REQUEST__FROM_PRESENCE_FROM_POSITION;
    request.from_position = from_position;
  }
  struct reading reading = {.each = each, .context = context};
  int status = read_pages(client, &request, &reading, error);
  free(reading.token);
  hbc_headers_done(&reading.headers);
  return status;
}

static bool tell_keys(const Holdback__V1__ListKeysResponse *page, holdback_key_each *each,
                      void *context) {
  for (size_t i = 0; i < page->n_keys; i++) {
    struct holdback_bytes key = {.data = page->keys[i]->key.data, .size = page->keys[i]->key.len};
    if (!each(context, key)) return false;
  }
  return page->next_page_token[0] != '\0';
}

int holdback_list_keys(struct holdback_client *client, const char *stream,
                       struct holdback_bytes key_prefix, holdback_key_each *each, void *context,
                       struct holdback_error *error) {
  ProtobufCMessage *page = NULL;
  bool more = true;
  while (more) {
    Holdback__V1__ListKeysRequest request = HOLDBACK__V1__LIST_KEYS_REQUEST__INIT;
    request.stream = (char *)(uintptr_t)stream;
    request.key_prefix = binary_of(key_prefix);
    if (page) request.page_token = ((Holdback__V1__ListKeysResponse *)page)->next_page_token;
    ProtobufCMessage *next = NULL;
    int status = hbc_unary_call(client, METHOD("ListKeys"), &request.base,
                                &holdback__v1__list_keys_response__descriptor, &next, error);
    if (page) protobuf_c_message_free_unpacked(page, NULL);
    if (status) return status;
    page = next;
    more = tell_keys((Holdback__V1__ListKeysResponse *)page, each, context);
  }
  protobuf_c_message_free_unpacked(page, NULL);
  return HOLDBACK_OK;
}
