/* The hand-written scanner against generated code: both must read the same out of any bytes.
 *
 * Batches are random but well-formed: fields in any order, again, padded, unknown. The seed is
 * printed; HB_TEST_SEED=N runs that one again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* clang-format off: cmocka needs the four above */
#include <cmocka.h>
/* clang-format on */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/frame/scan.h"
#include "base/frame/wire.h"
#include "holdback/v1/event.pb-c.h"

enum { BATCHES = 3000, EVENTS_MAX = 8, FIELDS_MAX = 12 };

static uint64_t random_state;

/* splitmix64: small, and the same on every machine. */
static uint64_t next_random(void) {
  uint64_t z = random_state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

static uint64_t below(uint64_t limit) { return next_random() % limit; }

/* Numbers of every length, small ones and edges often. */
static uint64_t random_number(void) {
  static const uint64_t edges[] = {0, 1, INT64_MAX, (uint64_t)INT64_MIN, UINT64_MAX};
  if (below(4) == 0) return edges[below(sizeof edges / sizeof edges[0])];
  return next_random() >> below(64);
}

static struct hb_slice random_bytes(size_t size_max) {
  static uint8_t bytes[512];
  size_t size = below(size_max + 1);
  for (size_t i = 0; i < size; i++) bytes[i] = (uint8_t)('a' + below(26));
  return hb_slice_of(bytes, size);
}

/* Sometimes with bytes that say nothing: a padded varint of at most `size_max` bytes. */
static void append_varint(struct hb_buf *buf, uint64_t value, size_t size_max) {
  uint8_t bytes[HB_VARINT_MAX];
  size_t size = hb_wire_put_varint(bytes, value);
  if (below(8) == 0) {
    while (size < size_max && below(2)) {
      bytes[size - 1] |= 0x80;
      bytes[size++] = 0;
    }
  }
  hb_buf_append(buf, bytes, size);
}

static void append_number(struct hb_buf *buf, uint32_t field, uint64_t value) {
  append_varint(buf, field << 3 | HB_WIRE_VARINT, 5);
  append_varint(buf, value, HB_VARINT_MAX);
}

static void append_slice(struct hb_buf *buf, uint32_t field, struct hb_slice bytes) {
  append_varint(buf, field << 3 | HB_WIRE_LEN, 5);
  append_varint(buf, bytes.size, 5);
  hb_buf_append(buf, bytes.data, bytes.size);
}

static void append_unknown(struct hb_buf *buf) {
  uint32_t field = 9 + (uint32_t)below(below(2) ? 20 : (1 << 29) - 9);
  switch (below(4)) {
    case 0:
      append_number(buf, field, random_number());
      break;
    case 1:
      append_slice(buf, field, random_bytes(40));
      break;
    case 2:
      append_varint(buf, field << 3 | HB_WIRE_I64, 5);
      hb_buf_append(buf, "\xff\x00\x0a\x08\x07\x80\x80\x80", 8);
      break;
    default:
      append_varint(buf, field << 3 | HB_WIRE_I32, 5);
      hb_buf_append(buf, "\xff\x0a\x08\x80", 4);
  }
}

/* Parts of a Timestamp that keep its range, in any number and order. */
static void append_time(struct hb_buf *event) {
  struct hb_buf time = {0};
  for (uint64_t n = below(4); n > 0; n--) {
    switch (below(3)) {
      case 0:
        append_number(&time, 1, (uint64_t)((int64_t)below(UINT64_C(300000000000)) - 60000000000));
        break;
      case 1:
        append_number(&time, 2, below(1000000000));
        break;
      default:
        append_unknown(&time);
    }
  }
  append_slice(event, 3, hb_buf_view(&time));
  hb_buf_done(&time);
}

static void append_header(struct hb_buf *event) {
  struct hb_buf header = {0};
  for (uint64_t n = below(4); n > 0; n--) {
    append_slice(&header, 1 + (uint32_t)below(2), random_bytes(20));
  }
  append_slice(event, 4, hb_buf_view(&header));
  hb_buf_done(&header);
}

/* At most one event_time: protobuf-c loses the first one's numbers where it should merge them. */
static void append_event(struct hb_buf *batch) {
  struct hb_buf event = {0};
  bool timed = false;
  for (uint64_t n = below(FIELDS_MAX + 1); n > 0; n--) {
    uint32_t field = 1 + (uint32_t)below(9);
    switch (field) {
      case 1:
      case 6:
        append_number(&event, field, random_number());
        break;
      case 2:
      case 5:
        append_slice(&event, field, random_bytes(300));
        break;
      case 3:
        if (!timed) append_time(&event);
        timed = true;
        break;
      case 4:
        append_header(&event);
        break;
      case 7:
      case 8:
        append_number(&event, field, below(3));
        break;
      default:
        append_unknown(&event);
    }
  }
  append_slice(batch, 1, hb_buf_view(&event));
  hb_buf_done(&event);
}

static bool same_bytes(struct hb_slice ours, ProtobufCBinaryData theirs) {
  return hb_slice_equal(ours, hb_slice_of(theirs.data, theirs.len));
}

static bool same_time(struct hb_time ours, const Google__Protobuf__Timestamp *theirs) {
  if (!theirs) return !ours.present;
  return ours.present && ours.seconds == theirs->seconds && ours.nanos == theirs->nanos;
}

static bool same_event(const struct hb_event *ours, const Holdback__V1__Event *theirs) {
  bool has_previous =
      theirs->previous_presence_case == HOLDBACK__V1__EVENT__PREVIOUS_PRESENCE_PREVIOUS;
  uint32_t flags = (has_previous ? HB_EVENT_HAS_PREVIOUS : 0) |
                   (theirs->initial ? HB_EVENT_INITIAL : 0) | (theirs->last ? HB_EVENT_LAST : 0);
  return ours->sequence == theirs->sequence && same_bytes(hb_event_key(ours), theirs->key) &&
         same_bytes(hb_event_payload(ours), theirs->payload) && ours->flags == flags &&
         (!has_previous || ours->previous == theirs->previous) &&
         same_time(ours->time, theirs->event_time);
}

static bool same_batch(const struct hb_events *ours, const Holdback__V1__EventBatch *theirs) {
  if (ours->count != theirs->n_events) return false;
  for (size_t i = 0; i < ours->count; i++) {
    if (!same_event(&ours->items[i], theirs->events[i])) return false;
  }
  return true;
}

static void fail_with_bytes(const char *what, uint64_t seed, struct hb_slice batch) {
  (void)fprintf(stderr, "%s: HB_TEST_SEED=%" PRIu64 " batch:", what, seed);
  for (size_t i = 0; i < batch.size; i++) (void)fprintf(stderr, " %02x", batch.data[i]);
  fail_msg("%s", what);
}

/* Each batch has its own seed, so that one can be run alone. */
static void for_each_seed(void (*check)(uint64_t seed, struct hb_buf *batch)) {
  const char *text = getenv("HB_TEST_SEED");
  uint64_t first = text ? strtoull(text, NULL, 10) : (uint64_t)time(NULL) * BATCHES;
  print_message("HB_TEST_SEED=%" PRIu64 " and the %d after it\n", first, text ? 0 : BATCHES - 1);
  struct hb_buf batch = {0};
  for (uint64_t seed = first; seed < first + (text ? 1 : BATCHES); seed++) {
    random_state = seed;
    hb_buf_clear(&batch);
    for (uint64_t n = below(EVENTS_MAX + 1); n > 0; n--) append_event(&batch);
    check(seed, &batch);
  }
  hb_buf_done(&batch);
}

static void check_well_formed(uint64_t seed, struct hb_buf *batch) {
  struct hb_limits limits = hb_limits_default();
  struct hb_events events = {0};
  struct hb_err err = {0};
  if (hb_scan_batch(hb_buf_view(batch), &limits, &events, &err)) {
    fail_with_bytes(err.message, seed, hb_buf_view(batch));
  }
  Holdback__V1__EventBatch *theirs =
      holdback__v1__event_batch__unpack(NULL, batch->size, batch->data);
  assert_non_null(theirs);
  if (!same_batch(&events, theirs)) fail_with_bytes("differ", seed, hb_buf_view(batch));
  holdback__v1__event_batch__free_unpacked(theirs, NULL);
  hb_events_done(&events);
}

/* Well-formed bytes, however odd: both accept, and read the same. */
static void well_formed_batches_read_the_same(void **state) {
  (void)state;
  for_each_seed(check_well_formed);
}

static bool lies_in_frame(const struct hb_event *event, uint32_t offset, uint32_t size) {
  return offset <= event->frame_size && size <= event->frame_size - offset;
}

static void check_damaged(uint64_t seed, struct hb_buf *batch) {
  if (!batch->size) return;
  for (uint64_t n = 1 + below(3); n > 0; n--) {
    batch->data[below(batch->size)] ^= (uint8_t)(1u << below(8));
  }
  struct hb_slice copy = hb_slice_of(hb_memdup(batch->data, batch->size), batch->size);
  struct hb_limits limits = hb_limits_default();
  struct hb_events events = {0};
  enum hb_code code = hb_scan_batch(copy, &limits, &events, NULL);
  if (code && (code != HB_INVALID || events.count)) fail_with_bytes("kept some", seed, copy);
  for (size_t i = 0; i < events.count; i++) {
    const struct hb_event *event = &events.items[i];
    struct hb_event again;
    bool good = lies_in_frame(event, event->key_offset, event->key_size) &&
                lies_in_frame(event, event->payload_offset, event->payload_size) &&
                hb_scan_frame(hb_event_frame(event), &again, NULL) == HB_OK &&
                hb_event_same(event, &again) && again.frame_size == event->frame_size;
    if (!good) fail_with_bytes("read wrongly", seed, copy);
  }
  hb_events_done(&events);
  free((void *)copy.data);
}

/* Flipped bits (not compared: protobuf-c is lax there): all of the batch is kept or nothing, and
 * what is kept lies in its frame and reads the same when it is stored; sanitizers watch the end. */
static void damaged_batches_are_read_safely(void **state) {
  (void)state;
  for_each_seed(check_damaged);
}

static void pack_and_scan(const Holdback__V1__EventBatch *batch) {
  size_t size = holdback__v1__event_batch__get_packed_size(batch);
  uint8_t *bytes = malloc(size);
  holdback__v1__event_batch__pack(batch, bytes);
  struct hb_limits limits = hb_limits_default();
  struct hb_events events = {0};
  assert_int_equal(hb_scan_batch(hb_slice_of(bytes, size), &limits, &events, NULL), HB_OK);
  assert_true(same_batch(&events, batch));
  hb_events_done(&events);
  free(bytes);
}

/* What generated code writes is understood. */
static void generated_bytes_are_understood(void **state) {
  (void)state;
  Google__Protobuf__Timestamp time = GOOGLE__PROTOBUF__TIMESTAMP__INIT;
  time.seconds = -1;
  time.nanos = 999999999;
  Holdback__V1__Header header = HOLDBACK__V1__HEADER__INIT;
  header.name = (char *)"name";
  header.value = (ProtobufCBinaryData){3, (uint8_t *)"abc"};
  Holdback__V1__Header *headers[] = {&header, &header};
  Holdback__V1__Event full = HOLDBACK__V1__EVENT__INIT;
  full.sequence = INT64_MIN;
  full.key = (ProtobufCBinaryData){1, (uint8_t *)"k"};
  full.event_time = &time;
  full.n_headers = 2;
  full.headers = headers;
  full.payload = (ProtobufCBinaryData){4, (uint8_t *)"load"};
  full.previous_presence_case = HOLDBACK__V1__EVENT__PREVIOUS_PRESENCE_PREVIOUS;
  full.initial = 1;
  full.last = 1;
  Holdback__V1__Event empty = HOLDBACK__V1__EVENT__INIT;
  Holdback__V1__Event *events[] = {&full, &empty, &full};
  Holdback__V1__EventBatch batch = HOLDBACK__V1__EVENT_BATCH__INIT;
  batch.n_events = 3;
  batch.events = events;
  pack_and_scan(&batch);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(well_formed_batches_read_the_same),
      cmocka_unit_test(damaged_batches_are_read_safely),
      cmocka_unit_test(generated_bytes_are_understood),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
