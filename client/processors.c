/* Decides how a processor looks in the contract, and back. */
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "client/error.h"
#include "client/unary.h"
#include "holdback/v1/processor.pb-c.h"

#define METHOD(name) "/holdback.v1.ProcessorService/" name

static char *text_of(const char *text) { return (char *)(uintptr_t)text; } /* only read */

static int require(const char *what, const char *value, struct holdback_error *error) {
  if (value && value[0]) return HOLDBACK_OK;
  return hbc_error_set(error, HOLDBACK_INVALID_ARGUMENT, NULL, "%s is empty", what);
}

/* ---- attach, detach */

struct parameters {
  Holdback__V1__ProcessorParameter *items; /* owned, as the list */
  Holdback__V1__ProcessorParameter **list;
};

static void put_parameters(const struct holdback_processor_config *config, struct parameters *out,
                           Holdback__V1__ProcessorConfig *wanted) {
  size_t count = config->parameters_count;
  out->items = hb_calloc(count + 1, sizeof *out->items);
  out->list = hb_calloc(count + 1, sizeof(Holdback__V1__ProcessorParameter *));
  for (size_t i = 0; i < count; i++) {
    const struct holdback_parameter *from = &config->parameters[i];
    holdback__v1__processor_parameter__init(&out->items[i]);
    out->items[i].name = text_of(from->name);
    out->items[i].value = (ProtobufCBinaryData){.len = from->value.size,
                                                .data = (uint8_t *)(uintptr_t)from->value.data};
    out->list[i] = &out->items[i];
  }
  wanted->n_parameters = count;
  wanted->parameters = out->list;
}

int holdback_processor_attach(struct holdback_client *client, const char *stream,
                              const struct holdback_processor_config *config, bool from_now,
                              struct holdback_error *error) {
  int status = require("stream", stream, error);
  if (!status) status = require("name", config->name, error);
  if (!status) status = require("processor", config->processor, error);
  if (status) return status;
  struct parameters parameters;
  Holdback__V1__ProcessorConfig wanted = HOLDBACK__V1__PROCESSOR_CONFIG__INIT;
  wanted.name = text_of(config->name);
  wanted.processor = text_of(config->processor);
  wanted.on_error = (Holdback__V1__OnError)config->on_error;
  wanted.key_status = (Holdback__V1__KeyStatusMode)config->key_status;
  wanted.key_status_interval_ms = config->key_status_interval_ms;
  put_parameters(config, &parameters, &wanted);
  Holdback__V1__AttachProcessorRequest request = HOLDBACK__V1__ATTACH_PROCESSOR_REQUEST__INIT;
  request.stream = text_of(stream);
  request.config = &wanted;
  request.start = from_now ? HOLDBACK__V1__START_POINT__START_POINT_NOW
                           : HOLDBACK__V1__START_POINT__START_POINT_EARLIEST;
  ProtobufCMessage *answer;
  status = hbc_unary_call(client, METHOD("AttachProcessor"), &request.base,
                          &holdback__v1__attach_processor_response__descriptor, &answer, error);
  free(parameters.items);
  free(parameters.list);
  if (!status) protobuf_c_message_free_unpacked(answer, NULL);
  return status;
}

int holdback_processor_detach(struct holdback_client *client, const char *stream, const char *name,
                              bool keep_state, struct holdback_error *error) {
  int status = require("stream", stream, error);
  if (!status) status = require("name", name, error);
  if (status) return status;
  Holdback__V1__DetachProcessorRequest request = HOLDBACK__V1__DETACH_PROCESSOR_REQUEST__INIT;
  request.stream = text_of(stream);
  request.name = text_of(name);
  request.state = keep_state ? HOLDBACK__V1__DETACHED_STATE__DETACHED_STATE_KEEP
                             : HOLDBACK__V1__DETACHED_STATE__DETACHED_STATE_DROP;
  ProtobufCMessage *answer;
  status = hbc_unary_call(client, METHOD("DetachProcessor"), &request.base,
                          &holdback__v1__detach_processor_response__descriptor, &answer, error);
  if (!status) protobuf_c_message_free_unpacked(answer, NULL);
  return status;
}

int holdback_retry_blocked(struct holdback_client *client, const char *stream,
                           const char *processor, const struct holdback_bytes *key,
                           struct holdback_retried *out, struct holdback_error *error) {
  int status = require("stream", stream, error);
  if (!status) status = require("processor", processor, error);
  if (status) return status;
  Holdback__V1__RetryBlockedKeysRequest request = HOLDBACK__V1__RETRY_BLOCKED_KEYS_REQUEST__INIT;
  request.stream = text_of(stream);
  request.processor = text_of(processor);
  if (key) {
    request.key_presence_case = HOLDBACK__V1__RETRY_BLOCKED_KEYS_REQUEST__KEY_PRESENCE_KEY;
    request.key = (ProtobufCBinaryData){.len = key->size, .data = (uint8_t *)(uintptr_t)key->data};
  }
  ProtobufCMessage *answer;
  status = hbc_unary_call(client, METHOD("RetryBlockedKeys"), &request.base,
                          &holdback__v1__retry_blocked_keys_response__descriptor, &answer, error);
  if (status) return status;
  const Holdback__V1__RetryBlockedKeysResponse *told =
      (const Holdback__V1__RetryBlockedKeysResponse *)answer;
  *out = (struct holdback_retried){
      .tried = told->tried, .processed = told->processed, .blocked = told->blocked};
  (void)snprintf(out->reason, sizeof out->reason, "%s", told->reason);
  protobuf_c_message_free_unpacked(answer, NULL);
  return HOLDBACK_OK;
}

int holdback_skip_blocked(struct holdback_client *client, const char *stream, const char *processor,
                          struct holdback_bytes key, const int64_t *sequence,
                          struct holdback_skipped *out, struct holdback_error *error) {
  int status = require("stream", stream, error);
  if (!status) status = require("processor", processor, error);
  if (status) return status;
  Holdback__V1__SkipBlockedKeyRequest request = HOLDBACK__V1__SKIP_BLOCKED_KEY_REQUEST__INIT;
  request.stream = text_of(stream);
  request.processor = text_of(processor);
  request.key_presence_case = HOLDBACK__V1__SKIP_BLOCKED_KEY_REQUEST__KEY_PRESENCE_KEY;
  request.key = (ProtobufCBinaryData){.len = key.size, .data = (uint8_t *)(uintptr_t)key.data};
  if (sequence) {
    request.sequence_presence_case =
        HOLDBACK__V1__SKIP_BLOCKED_KEY_REQUEST__SEQUENCE_PRESENCE_SEQUENCE;
    request.sequence = *sequence;
  }
  ProtobufCMessage *answer;
  status = hbc_unary_call(client, METHOD("SkipBlockedKey"), &request.base,
                          &holdback__v1__skip_blocked_key_response__descriptor, &answer, error);
  if (status) return status;
  const Holdback__V1__SkipBlockedKeyResponse *told =
      (const Holdback__V1__SkipBlockedKeyResponse *)answer;
  *out = (struct holdback_skipped){.skipped = told->skipped,
                                   .has_blocked_at = told->blocked_at_presence_case != 0,
                                   .blocked_at = told->blocked_at,
                                   .blocked = told->blocked};
  protobuf_c_message_free_unpacked(answer, NULL);
  return HOLDBACK_OK;
}

/* ---- looking */

static void take_status(const Holdback__V1__ProcessorStatus *from,
                        struct holdback_processor_status *out) {
  *out = (struct holdback_processor_status){
      .state = (int)from->state,
      .has_position = from->position_presence_case != 0,
      .position = from->position,
      .lag = from->lag,
      .results = from->results,
      .events = from->events,
      .failed = from->failed,
      .timers_fired = from->timers_fired,
      .timers = from->timers,
      .blocked_keys = from->blocked_keys,
      .state_cache_bytes = from->state_cache_bytes,
      .call_ms = from->call_ms,
      .stopped_at = from->stopped_at,
      .reason = from->reason,
      .has_last_failure = from->last_failure_position_presence_case != 0,
      .last_failure_position = from->last_failure_position,
      .last_failure = from->last_failure,
  };
  if (!from->watermark) return;
  out->has_watermark = true;
  out->watermark_seconds = from->watermark->seconds;
  out->watermark_nanos = from->watermark->nanos;
}

static bool tell(const Holdback__V1__ProcessorInfo *info, holdback_processor_each *each,
                 void *context) {
  if (!info || !info->config || !info->status) return true;
  const Holdback__V1__ProcessorConfig *from = info->config;
  struct holdback_parameter *parameters = hb_calloc(from->n_parameters + 1, sizeof *parameters);
  for (size_t i = 0; i < from->n_parameters; i++) {
    parameters[i] = (struct holdback_parameter){
        .name = from->parameters[i]->name,
        .value = {from->parameters[i]->value.data, from->parameters[i]->value.len}};
  }
  struct holdback_processor_config config = {
      .name = from->name,
      .processor = from->processor,
      .parameters = parameters,
      .parameters_count = from->n_parameters,
      .on_error = (int)from->on_error,
      .key_status = (int)from->key_status,
      .key_status_interval_ms = from->key_status_interval_ms};
  struct holdback_processor_status status;
  take_status(info->status, &status);
  bool more = each(context, &config, &status);
  free(parameters);
  return more;
}

static int get(struct holdback_client *client, const char *stream, const char *name,
               holdback_processor_each *each, void *context, struct holdback_error *error) {
  Holdback__V1__GetProcessorRequest request = HOLDBACK__V1__GET_PROCESSOR_REQUEST__INIT;
  request.stream = text_of(stream);
  request.name = text_of(name);
  ProtobufCMessage *answer;
  int status = hbc_unary_call(client, METHOD("GetProcessor"), &request.base,
                              &holdback__v1__get_processor_response__descriptor, &answer, error);
  if (status) return status;
  (void)tell(((Holdback__V1__GetProcessorResponse *)answer)->processor, each, context);
  protobuf_c_message_free_unpacked(answer, NULL);
  return HOLDBACK_OK;
}

static bool tell_page(const Holdback__V1__ListProcessorsResponse *page,
                      holdback_processor_each *each, void *context) {
  for (size_t i = 0; i < page->n_processors; i++)
    if (!tell(page->processors[i], each, context)) return false;
  return page->next_page_token[0] != '\0';
}

int holdback_processor_list(struct holdback_client *client, const char *stream, const char *name,
                            holdback_processor_each *each, void *context,
                            struct holdback_error *error) {
  int status = require("stream", stream, error);
  if (status) return status;
  if (name) return get(client, stream, name, each, context, error);
  ProtobufCMessage *page = NULL;
  bool more = true;
  while (more) {
    Holdback__V1__ListProcessorsRequest request = HOLDBACK__V1__LIST_PROCESSORS_REQUEST__INIT;
    request.stream = text_of(stream);
    if (page) request.page_token = ((Holdback__V1__ListProcessorsResponse *)page)->next_page_token;
    ProtobufCMessage *next = NULL;
    status = hbc_unary_call(client, METHOD("ListProcessors"), &request.base,
                            &holdback__v1__list_processors_response__descriptor, &next, error);
    if (page) protobuf_c_message_free_unpacked(page, NULL);
    if (status) return status;
    page = next;
    more = tell_page((Holdback__V1__ListProcessorsResponse *)page, each, context);
  }
  protobuf_c_message_free_unpacked(page, NULL);
  return HOLDBACK_OK;
}
