/* An answer of a subscription as the client reads it. Raw: nothing outside of the message is
 * touched, and reading again gives the same. Canonical (made again by generated code): both say
 * the same. */
#include <string.h>

#include <string.h>

#include "base/assert.h"
#include "client/bytebuf.h"
#include "client/message.h"
#include "holdback/v1/delivery.pb-c.h"
#include "tests/fuzz/canonical.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct holdback_message *message_of(struct hb_slice bytes) {
  grpc_slice slice = grpc_slice_from_copied_buffer((const char *)bytes.data, bytes.size);
  grpc_byte_buffer *buffer = grpc_raw_byte_buffer_create(&slice, 1);
  grpc_slice_unref(slice);
  return hbc_message_create(buffer);
}

/* How many events can be read; each lies in the message. */
static size_t read_events(const struct holdback_message *message) {
  struct hb_slice all = hbc_slice_view(&message->bytes);
  struct holdback_event event;
  size_t cursor = 0;
  size_t count = 0;
  int64_t position;
  while (holdback_message_event(message, &cursor, &event, &position)) {
    const uint8_t *key = event.key.data;
    const uint8_t *payload = event.payload.data;
    if (event.key.size) HB_ASSERT(key >= all.data && key + event.key.size <= all.data + all.size);
    if (event.payload.size) {
      HB_ASSERT(payload >= all.data && payload + event.payload.size <= all.data + all.size);
    }
    count++;
  }
  return count;
}

static void check_raw(struct hb_slice bytes) {
  struct holdback_message *message = message_of(bytes);
  bool good = hbc_message_decode(message);
  HB_ASSERT(hbc_message_decode(message) == good);
  size_t count = read_events(message);
  if (!message->scratch || !message->scratch->malformed) HB_ASSERT(read_events(message) == count);
  struct holdback_progress progress;
  struct holdback_void range;
  HB_ASSERT(!good || count == 0 || holdback_message_kind(message) == HOLDBACK_MESSAGE_EVENTS);
  (void)holdback_message_progress(message, &progress);
  if (holdback_message_void(message, &range)) {
    HB_ASSERT(memchr(range.reason, '\0', sizeof range.reason));
    HB_ASSERT(memchr(range.actor, '\0', sizeof range.actor));
  }
  hbc_message_destroy(message);
}

static bool is_same(struct holdback_bytes ours, ProtobufCBinaryData theirs) {
  return hb_slice_equal(hb_slice_of(ours.data, ours.size), hb_slice_of(theirs.data, theirs.len));
}

static void compare_batch(const struct holdback_message *ours, const Holdback__V1__Batch *theirs) {
  HB_ASSERT(ours->kind == HOLDBACK_MESSAGE_EVENTS);
  HB_ASSERT(holdback_message_next_position(ours) == theirs->next_position);
  size_t cursor = 0;
  struct holdback_event event;
  int64_t position = 0;
  for (size_t i = 0; i < theirs->n_events; i++) {
    const Holdback__V1__Event *from = theirs->events[i];
    HB_ASSERT(holdback_message_event(ours, &cursor, &event, &position));
    HB_ASSERT(event.sequence == from->sequence && event.headers_count == from->n_headers);
    HB_ASSERT(is_same(event.key, from->key) && is_same(event.payload, from->payload));
    HB_ASSERT(event.has_event_time == (from->event_time != NULL));
    int64_t expected = theirs->n_positions
                           ? theirs->positions[i]
                           : (int64_t)((uint64_t)theirs->first_position + (uint64_t)i);
    HB_ASSERT(position == expected);
  }
  HB_ASSERT(!holdback_message_event(ours, &cursor, &event, NULL));
}

static void compare_progress(const struct holdback_message *ours,
                             const Holdback__V1__Progress *theirs) {
  struct holdback_progress progress;
  HB_ASSERT(holdback_message_progress(ours, &progress));
  HB_ASSERT(progress.frontier == theirs->frontier);
  HB_ASSERT(progress.held_events == theirs->held_events);
  HB_ASSERT(progress.blocked == (theirs->blocked_by != NULL));
  HB_ASSERT(progress.caught_up == (theirs->caught_up != 0));
  HB_ASSERT(holdback_message_next_position(ours) == theirs->next_position);
}

static void compare(const Holdback__V1__SubscribeResponse *theirs, struct hb_slice canonical) {
  struct holdback_message *ours = message_of(canonical);
  bool good = hbc_message_decode(ours);
  switch ((int)theirs->message_case) {
    case HOLDBACK__V1__SUBSCRIBE_RESPONSE__MESSAGE_BATCH:
      HB_ASSERT(good == (!theirs->batch->n_positions ||
                         theirs->batch->n_positions == theirs->batch->n_events));
      if (good) compare_batch(ours, theirs->batch);
      break;
    case HOLDBACK__V1__SUBSCRIBE_RESPONSE__MESSAGE_PROGRESS:
      HB_ASSERT(good);
      compare_progress(ours, theirs->progress);
      break;
    case HOLDBACK__V1__SUBSCRIBE_RESPONSE__MESSAGE_VOID:
      HB_ASSERT(good && holdback_message_kind(ours) == HOLDBACK_MESSAGE_VOID);
      break;
    case HOLDBACK__V1__SUBSCRIBE_RESPONSE__MESSAGE_END:
      HB_ASSERT(good && holdback_message_kind(ours) == HOLDBACK_MESSAGE_END);
      break;
    default:
      HB_ASSERT(!good);
  }
  hbc_message_destroy(ours);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  check_raw(hb_slice_of(data, size));
  Holdback__V1__SubscribeResponse *message =
      holdback__v1__subscribe_response__unpack(NULL, size, data);
  if (!message) return 0;
  struct hb_buf canonical = {0};
  if (canonical_pack(&message->base, &canonical)) compare(message, hb_buf_view(&canonical));
  hb_buf_done(&canonical);
  holdback__v1__subscribe_response__free_unpacked(message, NULL);
  return 0;
}
