/* The unary methods, health, reflection, and what no method is for, over real gRPC. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "google/protobuf/descriptor.pb-c.h"
#include "grpc/health/v1/health.pb-c.h"
#include "grpc/reflection/v1/reflection.pb-c.h"
#include "holdback/v1/delivery.pb-c.h"
#include "holdback/v1/server.pb-c.h"
#include "holdback/v1/stream.pb-c.h"
#include "server/rpc/test_server.h"

static char *text(const char *literal) { return (char *)(uintptr_t)literal; }

/* ---- the server */

/* GetServer tells version, ids and every limit. */
static void get_server_tells_limits(void **state) {
  struct test_server *server = *state;
  Holdback__V1__GetServerRequest request = HOLDBACK__V1__GET_SERVER_REQUEST__INIT;
  struct test_status status;
  Holdback__V1__GetServerResponse *response =
      test_unary(&server->client, "/holdback.v1.ServerService/GetServer", &request.base,
                 &holdback__v1__get_server_response__descriptor, &status);
  assert_non_null(response);
  size_t count;
  const struct hb_limit_row *rows = hb_limits_rows(&count);
  assert_int_equal(response->n_limits, count);
  assert_string_equal(response->limits[0]->name, rows[0].name);
  assert_string_equal(response->limits[0]->help, rows[0].help);
  assert_true(response->limits[0]->value == rows[0].value);
  assert_int_equal(response->store_id.len, 16);
  assert_true(strlen(response->version) > 0);
  holdback__v1__get_server_response__free_unpacked(response, NULL);
}

/* CompactStore answers with what the engine did. */
static void compact_store_answers(void **state) {
  struct test_server *server = *state;
  Holdback__V1__CompactStoreRequest request = HOLDBACK__V1__COMPACT_STORE_REQUEST__INIT;
  struct test_status status;
  Holdback__V1__CompactStoreResponse *response =
      test_unary(&server->client, "/holdback.v1.ServerService/CompactStore", &request.base,
                 &holdback__v1__compact_store_response__descriptor, &status);
  assert_non_null(response);
  assert_int_equal(response->bytes_before, 2);
  assert_int_equal(response->bytes_after, 1);
  holdback__v1__compact_store_response__free_unpacked(response, NULL);
}

/* A server that drains does not wait for a compaction: it ends it, and the caller hears why. */
static void drain_ends_a_compaction(void **state) {
  struct test_server *server = *state;
  struct test_call call;
  struct test_status status;
  fake_engine_hold_compactions(server->engine, true);
  test_call_open(&call, &server->client, "/holdback.v1.ServerService/CompactStore");
  (void)test_call_write(&call, hb_slice_of("", 0));
  test_call_half_close(&call);
  while (!fake_engine_is_compacting(server->engine)) get_server_tells_limits(state);
  hb_rpc_drain(server->rpc, 10000);
  test_call_finish(&call, &status);
  assert_int_equal(status.code, GRPC_STATUS_UNAVAILABLE);
  assert_string_equal(status.reason, "SERVER_STOPS");
}

/* An unknown method is UNIMPLEMENTED at once. */
static void unknown_method_is_unimplemented(void **state) {
  struct test_server *server = *state;
  Holdback__V1__GetServerRequest request = HOLDBACK__V1__GET_SERVER_REQUEST__INIT;
  struct test_status status;
  assert_null(test_unary(&server->client, "/holdback.v1.ServerService/Reboot", &request.base,
                         &holdback__v1__get_server_response__descriptor, &status));
  assert_int_equal(status.code, GRPC_STATUS_UNIMPLEMENTED);
}

/* A call without a request, and one with bytes that are none, are INVALID_ARGUMENT. */
static void missing_and_malformed_requests(void **state) {
  struct test_server *server = *state;
  static const struct {
    const char *bytes;
    size_t size;
    const char *reason;
  } requests[] = {{NULL, 0, "REQUEST_MISSING"},
                  {"\x0a\x05"
                   "ab",
                   4, "MALFORMED_REQUEST"},
                  {"\x0a\x03"
                   "a\0b",
                   5, "TEXT_INVALID"},
                  {"\x0a\x01\xff", 3, "TEXT_INVALID"}};
  for (size_t i = 0; i < 4; i++) {
    struct test_call call;
    struct test_status status;
    test_call_open(&call, &server->client, "/holdback.v1.StreamService/GetStream");
    if (requests[i].bytes) {
      (void)test_call_write(&call, hb_slice_of(requests[i].bytes, requests[i].size));
    }
    test_call_half_close(&call);
    test_call_finish(&call, &status);
    assert_int_equal(status.code, GRPC_STATUS_INVALID_ARGUMENT);
    assert_string_equal(status.reason, requests[i].reason);
  }
}

static int start_with_two_calls(void **state) {
  struct hb_limits limits = hb_limits_default();
  limits.calls_max = 2;
  return test_server_start_with(state, &limits);
}

/* One call more than calls_max is RESOURCE_EXHAUSTED; the others go on. */
static void calls_are_bounded(void **state) {
  struct test_server *server = *state;
  struct test_call calls[3];
  struct test_status status;
  Grpc__Reflection__V1__ServerReflectionRequest request =
      GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__INIT;
  request.message_request_case =
      GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_LIST_SERVICES;
  request.list_services = text("");
  for (int i = 0; i < 2; i++) {
    test_call_open(&calls[i], &server->client,
                   "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo");
    (void)test_call_write_pb(&calls[i], &request.base);
    struct hb_buf answer = {0};
    assert_true(test_call_read(&calls[i], &answer));
    hb_buf_done(&answer);
  }
  test_call_open(&calls[2], &server->client, "/holdback.v1.ServerService/GetServer");
  test_call_finish(&calls[2], &status);
  assert_int_equal(status.code, GRPC_STATUS_RESOURCE_EXHAUSTED);
  assert_string_equal(status.reason, "TOO_MANY_CALLS");
  for (int i = 0; i < 2; i++) {
    test_call_half_close(&calls[i]);
    test_call_finish(&calls[i], &status);
    assert_int_equal(status.code, GRPC_STATUS_OK);
  }
}

/* ---- streams */

static void expect_create(struct test_server *server, Holdback__V1__StreamConfig *config,
                          grpc_status_code code, const char *reason) {
  Holdback__V1__CreateStreamRequest request = HOLDBACK__V1__CREATE_STREAM_REQUEST__INIT;
  request.config = config;
  struct test_status status;
  assert_null(test_unary(&server->client, "/holdback.v1.StreamService/CreateStream", &request.base,
                         &holdback__v1__create_stream_response__descriptor, &status));
  if (status.code != code || strcmp(status.reason, reason) != 0) {
    fail_msg("%s: %d %s %s", reason, status.code, status.reason, status.message);
  }
}

static Holdback__V1__StreamConfig good_config(void) {
  Holdback__V1__StreamConfig config = HOLDBACK__V1__STREAM_CONFIG__INIT;
  config.name = text("orders");
  config.mode = HOLDBACK__V1__STREAM_MODE__STREAM_MODE_GLOBAL;
  config.first_case = HOLDBACK__V1__STREAM_CONFIG__FIRST_FIRST_SEQUENCE;
  return config;
}

/* What CreateStream refuses, each with its reason. */
static void create_stream_refuses(void **state) {
  struct test_server *server = *state;
  expect_create(server, NULL, GRPC_STATUS_INVALID_ARGUMENT, "CONFIG_MISSING");
  Holdback__V1__StreamConfig config = good_config();
  config.name = text("Orders");
  expect_create(server, &config, GRPC_STATUS_INVALID_ARGUMENT, "STREAM_NAME_INVALID");
  config = good_config();
  config.mode = HOLDBACK__V1__STREAM_MODE__STREAM_MODE_UNSPECIFIED;
  expect_create(server, &config, GRPC_STATUS_INVALID_ARGUMENT, "MODE_MISSING");
  config.mode = (Holdback__V1__StreamMode)7;
  expect_create(server, &config, GRPC_STATUS_INVALID_ARGUMENT, "MODE_UNKNOWN");
  config = good_config();
  config.first_case = HOLDBACK__V1__STREAM_CONFIG__FIRST__NOT_SET;
  expect_create(server, &config, GRPC_STATUS_INVALID_ARGUMENT, "FIRST_SEQUENCE_MISSING");
  config = good_config();
  config.first_case = HOLDBACK__V1__STREAM_CONFIG__FIRST_FIRST_SEEN; /* but false */
  expect_create(server, &config, GRPC_STATUS_INVALID_ARGUMENT, "FIRST_SEQUENCE_MISSING");
  config = good_config();
  config.first_sequence = INT64_MAX;
  expect_create(server, &config, GRPC_STATUS_INVALID_ARGUMENT, "FIRST_SEQUENCE_INVALID");
  config = good_config();
  config.ack_mode = (Holdback__V1__AckMode)9;
  expect_create(server, &config, GRPC_STATUS_INVALID_ARGUMENT, "ACK_MODE_UNKNOWN");
  Holdback__V1__Retention retention = HOLDBACK__V1__RETENTION__INIT;
  config = good_config();
  config.retention = &retention;
  expect_create(server, &config, GRPC_STATUS_UNIMPLEMENTED, "FEATURE_NOT_BUILT");
}

static Holdback__V1__ListStreamsResponse *list(struct test_server *server, const char *prefix,
                                               uint32_t size, const char *token,
                                               struct test_status *status) {
  Holdback__V1__ListStreamsRequest request = HOLDBACK__V1__LIST_STREAMS_REQUEST__INIT;
  request.name_prefix = text(prefix);
  request.page_size = size;
  request.page_token = text(token);
  return test_unary(&server->client, "/holdback.v1.StreamService/ListStreams", &request.base,
                    &holdback__v1__list_streams_response__descriptor, status);
}

/* Pages come in name order, none missed, none twice; the last has no token. */
static void streams_are_paged(void **state) {
  struct test_server *server = *state;
  char name[16];
  for (int i = 9; i >= 0; i--) {
    (void)snprintf(name, sizeof name, "list-%d", i);
    test_server_create_stream(server, name, i % 2 == 0, 1);
  }
  char token[300] = "";
  int next = 0;
  do {
    struct test_status status;
    Holdback__V1__ListStreamsResponse *page = list(server, "list-", 3, token, &status);
    assert_non_null(page);
    for (size_t i = 0; i < page->n_streams; i++) {
      (void)snprintf(name, sizeof name, "list-%d", next++);
      assert_string_equal(page->streams[i]->name, name);
    }
    (void)snprintf(token, sizeof token, "%s", page->next_page_token);
    holdback__v1__list_streams_response__free_unpacked(page, NULL);
  } while (token[0]);
  assert_int_equal(next, 10);
  struct test_status status;
  assert_null(list(server, "", 1001, "", &status));
  assert_string_equal(status.message, "page_size is 1001, page_size_max is 1000");
  static const char *const bad[] = {"?", "aaaa", "2d", "70312d"}; /* no text, no names, "p1-" */
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    assert_null(list(server, "list-", 1, bad[i], &status));
    assert_string_equal(status.reason, "PAGE_TOKEN_INVALID");
  }
}

/* GetStream tells configuration, numbers and gaps. */
static void get_stream_tells_status(void **state) {
  struct test_server *server = *state;
  test_append(server, "default", 1, 3);
  test_append(server, "default", 6, 1);
  Holdback__V1__GetStreamRequest request = HOLDBACK__V1__GET_STREAM_REQUEST__INIT;
  request.stream = text("default");
  struct test_status status;
  Holdback__V1__GetStreamResponse *response =
      test_unary(&server->client, "/holdback.v1.StreamService/GetStream", &request.base,
                 &holdback__v1__get_stream_response__descriptor, &status);
  assert_non_null(response);
  assert_string_equal(response->config->name, "default");
  assert_int_equal(response->config->ack_mode, HOLDBACK__V1__ACK_MODE__ACK_MODE_DURABLE);
  assert_int_equal(response->status->frontier, 4);
  assert_int_equal(response->status->highest, 6);
  assert_int_equal(response->status->held_events, 1);
  assert_int_equal(response->status->n_gaps, 1);
  assert_int_equal(response->status->gaps[0]->start, 4);
  assert_int_equal(response->status->stored_total, 4);
  assert_null(response->status->max_event_time);
  assert_int_equal(response->incarnation.len, 24);
  holdback__v1__get_stream_response__free_unpacked(response, NULL);
}

/* ListGaps pages through them; what a request says wrongly is refused by name. */
static void gaps_are_paged(void **state) {
  struct test_server *server = *state;
  for (int i = 1; i < 6; i++) test_append(server, "default", 3 * i, 1);
  Holdback__V1__ListGapsRequest request = HOLDBACK__V1__LIST_GAPS_REQUEST__INIT;
  request.stream = text("default");
  request.page_size = 2;
  char token[64] = "";
  int64_t next = 1;
  struct test_status status;
  do {
    request.page_token = token;
    Holdback__V1__ListGapsResponse *page =
        test_unary(&server->client, "/holdback.v1.StreamService/ListGaps", &request.base,
                   &holdback__v1__list_gaps_response__descriptor, &status);
    assert_non_null(page);
    for (size_t i = 0; i < page->n_gaps; i++, next += 3) {
      assert_int_equal(page->gaps[i]->start, next);
      assert_int_equal(page->gaps[i]->end, next + 2);
    }
    (void)snprintf(token, sizeof token, "%s", page->next_page_token);
    holdback__v1__list_gaps_response__free_unpacked(page, NULL);
  } while (token[0]);
  assert_int_equal(next, 16);
  request.page_token = text("?");
  assert_null(test_unary(&server->client, "/holdback.v1.StreamService/ListGaps", &request.base,
                         &holdback__v1__list_gaps_response__descriptor, &status));
  assert_string_equal(status.reason, "PAGE_TOKEN_INVALID");
  request.page_token = text("");
  request.page_size = 1001;
  assert_null(test_unary(&server->client, "/holdback.v1.StreamService/ListGaps", &request.base,
                         &holdback__v1__list_gaps_response__descriptor, &status));
  assert_string_equal(status.reason, "PAGE_TOO_LARGE");
  Holdback__V1__ListKeysWithGapsRequest of_keys = HOLDBACK__V1__LIST_KEYS_WITH_GAPS_REQUEST__INIT;
  of_keys.stream = text("nowhere");
  assert_null(test_unary(&server->client, "/holdback.v1.StreamService/ListKeysWithGaps",
                         &of_keys.base, &holdback__v1__list_keys_with_gaps_response__descriptor,
                         &status));
  assert_int_equal(status.code, GRPC_STATUS_NOT_FOUND);
}

/* ---- what is kept aside */

static void refuse_one(struct test_server *server, int64_t sequence, const char *payload) {
  struct hb_buf bytes = {0}, batch = {0};
  test_put_event(&batch, sequence, "k", payload);
  hb_buf_append(&bytes,
                "\x0a\x07"
                "default\x12",
                10);
  hb_buf_append_u8(&bytes, (uint8_t)batch.size);
  hb_buf_append(&bytes, batch.data, batch.size);
  test_append_bytes(server, &bytes);
  hb_buf_done(&batch);
  hb_buf_done(&bytes);
}

static Holdback__V1__ListUnprocessedResponse *list_unprocessed(
    struct test_server *server, const Holdback__V1__ListUnprocessedRequest *request,
    struct test_status *status) {
  return test_unary(&server->client, "/holdback.v1.DeliveryService/ListUnprocessed", &request->base,
                    &holdback__v1__list_unprocessed_response__descriptor, status);
}

/* The fake tells what is below the first sequence as failed, with a text that is not UTF-8. */
static void expect_unprocessed(const Holdback__V1__UnprocessedEvent *event, bool conflict,
                               uint64_t count) {
  assert_int_equal(event->event->sequence, conflict ? 1 : 0);
  assert_int_equal(event->event->payload.len, conflict ? 5 : 4);
  assert_int_equal(event->reason,
                   conflict ? HOLDBACK__V1__UNPROCESSED_REASON__UNPROCESSED_REASON_CONFLICT
                            : HOLDBACK__V1__UNPROCESSED_REASON__UNPROCESSED_REASON_EXCEPTION);
  assert_int_equal(event->position_presence_case != 0, !conflict);
  assert_int_equal(event->count, count);
  assert_int_equal(event->first_seen->seconds, 1);
  assert_int_equal(event->first_seen->nanos, 1000000);
  assert_int_equal(event->last_seen->seconds, 2);
  assert_string_equal(event->explanation, conflict ? "" : "cut ?");
  assert_string_equal(event->processor, conflict ? "" : "p");
  assert_string_equal(event->producer, conflict ? "alice" : "");
}

/* ListUnprocessed pages through them, each event whole beside why it is there. */
static void unprocessed_is_paged(void **state) {
  struct test_server *server = *state;
  test_append(server, "default", 1, 1);
  refuse_one(server, 1, "other");
  refuse_one(server, 0, "late");
  Holdback__V1__ListUnprocessedRequest request = HOLDBACK__V1__LIST_UNPROCESSED_REQUEST__INIT;
  request.stream = text("default");
  request.page_size = 1;
  char token[64] = "";
  uint64_t next = 0;
  struct test_status status;
  do {
    request.page_token = token;
    Holdback__V1__ListUnprocessedResponse *page = list_unprocessed(server, &request, &status);
    assert_non_null(page);
    assert_int_equal(page->n_events, 1);
    next++;
    expect_unprocessed(page->events[0], next == 1, next);
    (void)snprintf(token, sizeof token, "%s", page->next_page_token);
    holdback__v1__list_unprocessed_response__free_unpacked(page, NULL);
  } while (token[0]);
  assert_int_equal(next, 2);
}

static void expect_refused(struct test_server *server,
                           const Holdback__V1__ListUnprocessedRequest *request,
                           const char *reason) {
  struct test_status status;
  assert_null(list_unprocessed(server, request, &status));
  assert_string_equal(status.reason, reason);
}

/* What a request for them says wrongly is refused by name. */
static void unprocessed_requests_are_checked(void **state) {
  struct test_server *server = *state;
  const Holdback__V1__ListUnprocessedRequest none = HOLDBACK__V1__LIST_UNPROCESSED_REQUEST__INIT;
  Holdback__V1__ListUnprocessedRequest request = none;
  request.stream = text("nowhere");
  expect_refused(server, &request, "STREAM_NOT_FOUND");
  request.stream = text("default");
  request.reason = (Holdback__V1__UnprocessedReason)2;
  expect_refused(server, &request, "UNPROCESSED_REASON_INVALID");
  request.reason = (Holdback__V1__UnprocessedReason)-1;
  expect_refused(server, &request, "UNPROCESSED_REASON_INVALID");
  request.reason = HOLDBACK__V1__UNPROCESSED_REASON__UNPROCESSED_REASON_CONFLICT;
  request.processor = text("p");
  expect_refused(server, &request, "UNPROCESSED_REASON_INVALID");
  request.reason = HOLDBACK__V1__UNPROCESSED_REASON__UNPROCESSED_REASON_EXCEPTION;
  expect_refused(server, &request, "PROCESSOR_NOT_FOUND");
  request = none;
  request.stream = text("default");
  request.page_size = 1001;
  expect_refused(server, &request, "PAGE_TOO_LARGE");
  request.page_size = 0;
  request.page_token = text("?");
  expect_refused(server, &request, "PAGE_TOKEN_INVALID");
  request.page_token = text("");
  static uint8_t large[65537];
  request.key_presence_case = HOLDBACK__V1__LIST_UNPROCESSED_REQUEST__KEY_PRESENCE_KEY;
  request.key = (ProtobufCBinaryData){.len = sizeof large, .data = large};
  expect_refused(server, &request, "KEY_TOO_LARGE");
}

/* ---- keys */

/* ReadKey pages through a key's list; each entry has its position and state. */
static void read_key_pages(void **state) {
  struct test_server *server = *state;
  test_append(server, "default", 1, 5);
  test_append(server, "default", 7, 1);
  char token[64] = "";
  int64_t expected[] = {1, 2, 3, 4, 5, 7};
  size_t next = 0;
  do {
    Holdback__V1__ReadKeyRequest request = HOLDBACK__V1__READ_KEY_REQUEST__INIT;
    request.stream = text("default");
    request.key = (ProtobufCBinaryData){.len = 1, .data = (uint8_t *)(uintptr_t) "k"};
    request.page_size = 2;
    request.page_token = token;
    struct test_status status;
    Holdback__V1__ReadKeyResponse *page =
        test_unary(&server->client, "/holdback.v1.DeliveryService/ReadKey", &request.base,
                   &holdback__v1__read_key_response__descriptor, &status);
    assert_non_null(page);
    for (size_t i = 0; i < page->n_entries; i++, next++) {
      const Holdback__V1__KeyEntry *entry = page->entries[i];
      assert_int_equal(entry->position, expected[next]);
      assert_int_equal(entry->event->sequence, expected[next]);
      assert_int_equal(entry->event->payload.len, 7);
      assert_int_equal(entry->state, next < 5 ? HOLDBACK__V1__ENTRY_STATE__ENTRY_STATE_RELEASED
                                              : HOLDBACK__V1__ENTRY_STATE__ENTRY_STATE_HELD);
    }
    (void)snprintf(token, sizeof token, "%s", page->next_page_token);
    holdback__v1__read_key_response__free_unpacked(page, NULL);
  } while (token[0]);
  assert_int_equal(next, 6);
}

/* ListKeys brings keys, the empty one too; a key over the limit is refused. */
static void list_keys_brings_keys(void **state) {
  struct test_server *server = *state;
  struct hb_buf bytes = {0}, batch = {0};
  test_put_event(&batch, 1, "", "p");
  test_put_event(&batch, 2, "alpha", "p");
  hb_buf_append(&bytes,
                "\x0a\x07"
                "default\x12",
                10);
  hb_buf_append_u8(&bytes, (uint8_t)batch.size);
  hb_buf_append(&bytes, batch.data, batch.size);
  test_append_bytes(server, &bytes);
  Holdback__V1__ListKeysRequest request = HOLDBACK__V1__LIST_KEYS_REQUEST__INIT;
  request.stream = text("default");
  struct test_status status;
  Holdback__V1__ListKeysResponse *page =
      test_unary(&server->client, "/holdback.v1.DeliveryService/ListKeys", &request.base,
                 &holdback__v1__list_keys_response__descriptor, &status);
  assert_non_null(page);
  assert_int_equal(page->n_keys, 2);
  assert_int_equal(page->keys[0]->key.len, 0);
  assert_memory_equal(page->keys[1]->key.data, "alpha", 5);
  holdback__v1__list_keys_response__free_unpacked(page, NULL);
  request.key_prefix.len = 65537;
  request.key_prefix.data = calloc(1, 65537);
  assert_null(test_unary(&server->client, "/holdback.v1.DeliveryService/ListKeys", &request.base,
                         &holdback__v1__list_keys_response__descriptor, &status));
  assert_string_equal(status.message, "key_prefix has 65537 bytes, key_bytes_max is 65536");
  free(request.key_prefix.data);
  hb_buf_done(&bytes);
  hb_buf_done(&batch);
}

/* ---- health */

static int health_of(struct test_server *server, const char *service, struct test_status *status) {
  Grpc__Health__V1__HealthCheckRequest request = GRPC__HEALTH__V1__HEALTH_CHECK_REQUEST__INIT;
  request.service = text(service);
  Grpc__Health__V1__HealthCheckResponse *response =
      test_unary(&server->client, "/grpc.health.v1.Health/Check", &request.base,
                 &grpc__health__v1__health_check_response__descriptor, status);
  int health = response ? (int)response->status : -1;
  if (response) grpc__health__v1__health_check_response__free_unpacked(response, NULL);
  return health;
}

/* The server and each service are SERVING; another name is NOT_FOUND. */
static void health_check(void **state) {
  struct test_status status;
  assert_int_equal(health_of(*state, "", &status), 1);
  assert_int_equal(health_of(*state, "ingest", &status), 1);
  assert_int_equal(health_of(*state, "holdback.v1.DeliveryService", &status), 1);
  assert_int_equal(health_of(*state, "nothing", &status), -1);
  assert_int_equal(status.code, GRPC_STATUS_NOT_FOUND);
}

/* Where nothing can be written only ingest says so. */
static void health_of_ingest(void **state) {
  static const char *const others[] = {"", "delivery", "stream", "server",
                                       "holdback.v1.DeliveryService"};
  struct test_server *server = *state;
  struct test_status status;
  fake_engine_set_ingesting(server->engine, false);
  assert_int_equal(health_of(server, "ingest", &status), 2);
  assert_int_equal(health_of(server, "holdback.v1.IngestService", &status), 2);
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
    assert_int_equal(health_of(server, others[i], &status), 1);
  }
  fake_engine_set_ingesting(server->engine, true);
  assert_int_equal(health_of(server, "ingest", &status), 1);
}

static int next_health(struct test_call *call) {
  Grpc__Health__V1__HealthCheckResponse *response =
      test_call_read_pb(call, &grpc__health__v1__health_check_response__descriptor);
  int health = response ? (int)response->status : -1;
  if (response) grpc__health__v1__health_check_response__free_unpacked(response, NULL);
  return health;
}

static void watch_health(struct test_server *server, struct test_call *call, const char *service) {
  Grpc__Health__V1__HealthCheckRequest request = GRPC__HEALTH__V1__HEALTH_CHECK_REQUEST__INIT;
  request.service = text(service);
  test_call_open(call, &server->client, "/grpc.health.v1.Health/Watch");
  (void)test_call_write_pb(call, &request.base);
  test_call_half_close(call);
}

/* A watch of ingest tells each change; another one tells none of them. */
static void health_watch_of_ingest(void **state) {
  struct test_server *server = *state;
  struct test_call ingest, whole;
  watch_health(server, &ingest, "ingest");
  watch_health(server, &whole, "");
  assert_int_equal(next_health(&ingest), 1);
  assert_int_equal(next_health(&whole), 1);
  for (int i = 0; i < 3; i++) {
    fake_engine_set_ingesting(server->engine, false);
    assert_int_equal(next_health(&ingest), 2);
    fake_engine_set_ingesting(server->engine, true);
    assert_int_equal(next_health(&ingest), 1);
  }
  hb_rpc_drain(server->rpc, 10000);
  assert_int_equal(next_health(&ingest), 2);
  assert_int_equal(next_health(&whole), 2); /* the first since SERVING */
  assert_int_equal(next_health(&ingest), -1);
  assert_int_equal(next_health(&whole), -1);
  struct test_status status;
  test_call_finish(&ingest, &status);
  test_call_finish(&whole, &status);
}

/* Watch tells SERVING, and NOT_SERVING when the server drains, then ends. */
static void health_watch(void **state) {
  struct test_server *server = *state;
  Grpc__Health__V1__HealthCheckRequest request = GRPC__HEALTH__V1__HEALTH_CHECK_REQUEST__INIT;
  struct test_call call, other;
  struct test_status status;
  test_call_open(&call, &server->client, "/grpc.health.v1.Health/Watch");
  (void)test_call_write_pb(&call, &request.base);
  test_call_half_close(&call);
  assert_int_equal(next_health(&call), 1);
  request.service = text("nothing");
  test_call_open(&other, &server->client, "/grpc.health.v1.Health/Watch");
  (void)test_call_write_pb(&other, &request.base);
  test_call_half_close(&other);
  assert_int_equal(next_health(&other), 3);
  hb_rpc_drain(server->rpc, 10000);
  assert_int_equal(next_health(&call), 2);
  assert_int_equal(next_health(&call), -1);
  test_call_finish(&call, &status);
  assert_int_equal(status.code, GRPC_STATUS_UNAVAILABLE);
  test_call_finish(&other, &status);
  assert_int_equal(status.code, GRPC_STATUS_UNAVAILABLE);
}

static int stop_drained(void **state) {
  struct test_server *server = *state;
  test_client_done(&server->client);
  hb_rpc_stop(server->rpc);
  fake_engine_destroy(server->engine);
  free(server);
  return 0;
}

/* ---- reflection */

static Grpc__Reflection__V1__ServerReflectionResponse *ask(struct test_call *call, int kind,
                                                           const char *name) {
  Grpc__Reflection__V1__ServerReflectionRequest request =
      GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__INIT;
  request.message_request_case =
      (Grpc__Reflection__V1__ServerReflectionRequest__MessageRequestCase)kind;
  request.list_services = text(name); /* each member is a text */
  (void)test_call_write_pb(call, &request.base);
  Grpc__Reflection__V1__ServerReflectionResponse *response =
      test_call_read_pb(call, &grpc__reflection__v1__server_reflection_response__descriptor);
  assert_non_null(response);
  return response;
}

static const struct {
  const char *symbol;
  const char *file; /* NULL: not found */
} symbols[] = {
    {"holdback.v1.DeliveryService", "holdback/v1/delivery.proto"},
    {"holdback.v1.DeliveryService.Subscribe", "holdback/v1/delivery.proto"},
    {"holdback.v1.Event", "holdback/v1/event.proto"},
    {"holdback.v1.Event.payload", "holdback/v1/event.proto"},
    {"holdback.v1.OUTCOME_STORED", "holdback/v1/ingest.proto"},
    {"grpc.health.v1.HealthCheckResponse.ServingStatus", "grpc/health/v1/health.proto"},
    {"google.protobuf.Timestamp", "google/protobuf/timestamp.proto"},
    {"holdback.v1.Nothing", NULL},
};

static void expect_symbol(struct test_call *call, const char *symbol, const char *file) {
  Grpc__Reflection__V1__ServerReflectionResponse *response = ask(call, 4, symbol);
  if (!file) {
    assert_int_equal(response->message_response_case, 7);
    assert_int_equal(response->error_response->error_code, GRPC_STATUS_NOT_FOUND);
  } else {
    assert_int_equal(response->message_response_case, 4);
    const ProtobufCBinaryData *first =
        &response->file_descriptor_response->file_descriptor_proto[0];
    Google__Protobuf__FileDescriptorProto *parsed =
        google__protobuf__file_descriptor_proto__unpack(NULL, first->len, first->data);
    assert_non_null(parsed);
    assert_string_equal(parsed->name, file);
    /* The file and its imports, so that a client needs no second question. */
    assert_true(response->file_descriptor_response->n_file_descriptor_proto > parsed->n_dependency);
    google__protobuf__file_descriptor_proto__free_unpacked(parsed, NULL);
  }
  grpc__reflection__v1__server_reflection_response__free_unpacked(response, NULL);
}

/* Both versions list every service and find files by symbol, at any depth. */
static void reflection_answers(void **state) {
  struct test_server *server = *state;
  static const char *const paths[] = {
      "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
      "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"};
  for (size_t i = 0; i < 2; i++) {
    struct test_call call;
    struct test_status status;
    test_call_open(&call, &server->client, paths[i]);
    Grpc__Reflection__V1__ServerReflectionResponse *response = ask(&call, 7, "");
    assert_int_equal(response->list_services_response->n_service, 8);
    grpc__reflection__v1__server_reflection_response__free_unpacked(response, NULL);
    for (size_t k = 0; k < sizeof symbols / sizeof symbols[0]; k++) {
      expect_symbol(&call, symbols[k].symbol, symbols[k].file);
    }
    response = ask(&call, 3, "holdback/v1/ingest.proto");
    assert_int_equal(response->file_descriptor_response->n_file_descriptor_proto, 3);
    grpc__reflection__v1__server_reflection_response__free_unpacked(response, NULL);
    response = ask(&call, 6, "holdback.v1.Event");
    assert_string_equal(response->all_extension_numbers_response->base_type_name,
                        "holdback.v1.Event");
    grpc__reflection__v1__server_reflection_response__free_unpacked(response, NULL);
    test_call_half_close(&call);
    test_call_finish(&call, &status);
    assert_int_equal(status.code, GRPC_STATUS_OK);
  }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, test_server_start, test_server_stop)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(get_server_tells_limits),
      TEST(compact_store_answers),
      cmocka_unit_test_setup_teardown(drain_ends_a_compaction, test_server_start, stop_drained),
      TEST(unknown_method_is_unimplemented),
      TEST(missing_and_malformed_requests),
      cmocka_unit_test_setup_teardown(calls_are_bounded, start_with_two_calls, test_server_stop),
      TEST(create_stream_refuses),
      TEST(streams_are_paged),
      TEST(get_stream_tells_status),
      TEST(gaps_are_paged),
      TEST(unprocessed_is_paged),
      TEST(unprocessed_requests_are_checked),
      TEST(read_key_pages),
      TEST(list_keys_brings_keys),
      TEST(health_check),
      TEST(health_of_ingest),
      cmocka_unit_test_setup_teardown(health_watch_of_ingest, test_server_start, stop_drained),
      cmocka_unit_test_setup_teardown(health_watch, test_server_start, stop_drained),
      TEST(reflection_answers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
