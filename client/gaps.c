/* Decides how pages of gaps, and of keys that have some, become callbacks. */
#include "client/error.h"
#include "client/unary.h"
#include "holdback/v1/stream.pb-c.h"

#define METHOD(name) "/holdback.v1.StreamService/" name

static ProtobufCBinaryData binary_of(struct holdback_bytes bytes) {
  return (ProtobufCBinaryData){.len = bytes.size, .data = (uint8_t *)(uintptr_t)bytes.data};
}

static struct holdback_gap gap_of(const Holdback__V1__Gap *from) {
  return (struct holdback_gap){.start = from->start, .end = from->end, .age_ms = from->age_ms};
}

/* The page before, of which the token is, lives until the next one is there. */
struct pages {
  struct holdback_client *client;
  ProtobufCMessage *page; /* owned */
};

static int next_page(struct pages *pages, const char *method, const ProtobufCMessage *request,
                     const ProtobufCMessageDescriptor *type, struct holdback_error *error) {
  ProtobufCMessage *next = NULL;
  int status = hbc_unary_call(pages->client, method, request, type, &next, error);
  if (pages->page) protobuf_c_message_free_unpacked(pages->page, NULL);
  pages->page = status ? NULL : next;
  return status;
}

static bool tell_gaps(const Holdback__V1__ListGapsResponse *page, holdback_gap_each *each,
                      void *context) {
  for (size_t i = 0; i < page->n_gaps; i++) {
    struct holdback_gap gap = gap_of(page->gaps[i]);
    if (!each(context, &gap)) return false;
  }
  return page->next_page_token[0] != '\0';
}

int holdback_list_gaps(struct holdback_client *client, const char *stream,
                       const struct holdback_bytes *key, holdback_gap_each *each, void *context,
                       bool *out_initial_missing, struct holdback_error *error) {
  struct pages pages = {.client = client};
  bool more = true;
  while (more) {
    Holdback__V1__ListGapsRequest request = HOLDBACK__V1__LIST_GAPS_REQUEST__INIT;
    request.stream = (char *)(uintptr_t)stream;
    if (key) {
      request.key_presence_case = HOLDBACK__V1__LIST_GAPS_REQUEST__KEY_PRESENCE_KEY;
      request.key = binary_of(*key);
    }
    request.page_size = 1000;
    const Holdback__V1__ListGapsResponse *page = (Holdback__V1__ListGapsResponse *)pages.page;
    if (page) request.page_token = page->next_page_token;
    int status = next_page(&pages, METHOD("ListGaps"), &request.base,
                           &holdback__v1__list_gaps_response__descriptor, error);
    if (status) return status;
    page = (Holdback__V1__ListGapsResponse *)pages.page;
    if (out_initial_missing) *out_initial_missing = page->initial_missing;
    more = tell_gaps(page, each, context);
  }
  protobuf_c_message_free_unpacked(pages.page, NULL);
  return HOLDBACK_OK;
}

static bool tell_keys(const Holdback__V1__ListKeysWithGapsResponse *page,
                      holdback_key_gaps_each *each, void *context) {
  for (size_t i = 0; i < page->n_keys; i++) {
    const Holdback__V1__KeyGaps *from = page->keys[i];
    struct holdback_key_gaps key = {.key = {from->key.data, from->key.len},
                                    .has_complete_to = from->complete_to_presence_case != 0,
                                    .complete_to = from->complete_to,
                                    .highest = from->highest,
                                    .held_events = from->held_events,
                                    .gaps_total = from->gaps_total,
                                    .has_gap = from->gap != NULL};
    if (from->gap) key.gap = gap_of(from->gap);
    if (!each(context, &key)) return false;
  }
  return page->next_page_token[0] != '\0';
}

int holdback_list_keys_with_gaps(struct holdback_client *client, const char *stream,
                                 struct holdback_bytes key_prefix, holdback_key_gaps_each *each,
                                 void *context, struct holdback_error *error) {
  struct pages pages = {.client = client};
  bool more = true;
  while (more) {
    Holdback__V1__ListKeysWithGapsRequest request = HOLDBACK__V1__LIST_KEYS_WITH_GAPS_REQUEST__INIT;
    request.stream = (char *)(uintptr_t)stream;
    request.key_prefix = binary_of(key_prefix);
    request.page_size = 1000;
    const Holdback__V1__ListKeysWithGapsResponse *page =
        (Holdback__V1__ListKeysWithGapsResponse *)pages.page;
    if (page) request.page_token = page->next_page_token;
    int status = next_page(&pages, METHOD("ListKeysWithGaps"), &request.base,
                           &holdback__v1__list_keys_with_gaps_response__descriptor, error);
    if (status) return status;
    more = tell_keys((Holdback__V1__ListKeysWithGapsResponse *)pages.page, each, context);
  }
  protobuf_c_message_free_unpacked(pages.page, NULL);
  return HOLDBACK_OK;
}
