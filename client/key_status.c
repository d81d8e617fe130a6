/* Decides how a key's status looks in the contract, and back. */
#include "base/slice.h"
#include "client/error.h"
#include "client/unary.h"
#include "holdback/v1/delivery.pb-c.h"
#include "holdback/v1/processor.pb-c.h"

static char *text_of(const char *text) { return (char *)(uintptr_t)text; } /* only read */

static ProtobufCBinaryData binary_of(struct holdback_bytes bytes) {
  return (ProtobufCBinaryData){.len = bytes.size, .data = (uint8_t *)(uintptr_t)bytes.data};
}

static void take(const Holdback__V1__KeyStatus *from, struct holdback_bytes key,
                 struct holdback_key_status *out) {
  *out = (struct holdback_key_status){.key = key,
                                      .has_last_processed = from->last_processed_presence_case != 0,
                                      .last_processed = from->last_processed,
                                      .processed = from->processed,
                                      .failed = from->failed,
                                      .results = from->results,
                                      .duplicates = from->duplicates,
                                      .rejected = from->rejected,
                                      .last_received = from->last_received != 0,
                                      .has_waiting = from->waiting_presence_case != 0,
                                      .waiting = from->waiting,
                                      .earliest_waiting = from->earliest_waiting,
                                      .latest_waiting = from->latest_waiting,
                                      .received = from->received,
                                      .told_at_ms = from->told_at_ms,
                                      .has_blocked_at = from->blocked_at_presence_case != 0,
                                      .blocked_at = from->blocked_at};
}

int holdback_key_status(struct holdback_client *client, const char *stream, const char *processor,
                        struct holdback_bytes key, struct holdback_key_status *out,
                        struct holdback_error *error) {
  Holdback__V1__GetKeyStatusRequest request = HOLDBACK__V1__GET_KEY_STATUS_REQUEST__INIT;
  request.stream = text_of(stream);
  request.processor = text_of(processor);
  request.key = binary_of(key);
  ProtobufCMessage *answer;
  int status = hbc_unary_call(client, "/holdback.v1.ProcessorService/GetKeyStatus", &request.base,
                              &holdback__v1__get_key_status_response__descriptor, &answer, error);
  if (status) return status;
  const Holdback__V1__KeyStatus *told = ((Holdback__V1__GetKeyStatusResponse *)answer)->status;
  *out = (struct holdback_key_status){.key = key};
  if (told) take(told, key, out);
  protobuf_c_message_free_unpacked(answer, NULL);
  return HOLDBACK_OK;
}

static bool tell_page(const Holdback__V1__ListKeysResponse *page, holdback_key_status_each *each,
                      void *context) {
  for (size_t i = 0; i < page->n_keys; i++) {
    const Holdback__V1__KeyInfo *info = page->keys[i];
    struct holdback_key_status status;
    if (!info->status) continue;
    take(info->status, (struct holdback_bytes){info->key.data, info->key.len}, &status);
    if (!each(context, &status)) return false;
  }
  return page->next_page_token[0] != '\0';
}

int holdback_list_key_statuses(struct holdback_client *client, const char *stream,
                               const char *processor, struct holdback_bytes key_prefix,
                               holdback_key_status_each *each, void *context,
                               struct holdback_error *error) {
  ProtobufCMessage *page = NULL;
  bool more = true;
  while (more) {
    Holdback__V1__ListKeysRequest request = HOLDBACK__V1__LIST_KEYS_REQUEST__INIT;
    request.stream = text_of(stream);
    request.processor = text_of(processor);
    request.key_prefix = binary_of(key_prefix);
    if (page) request.page_token = ((Holdback__V1__ListKeysResponse *)page)->next_page_token;
    ProtobufCMessage *next = NULL;
    int status = hbc_unary_call(client, "/holdback.v1.DeliveryService/ListKeys", &request.base,
                                &holdback__v1__list_keys_response__descriptor, &next, error);
    if (page) protobuf_c_message_free_unpacked(page, NULL);
    if (status) return status;
    page = next;
    more = tell_page((Holdback__V1__ListKeysResponse *)page, each, context);
  }
  protobuf_c_message_free_unpacked(page, NULL);
  return HOLDBACK_OK;
}
