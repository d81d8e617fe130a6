/* Decides which requests about processors are well-formed, and how one is told. */
#include "server/rpc/processor_pb.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "processing/holdback/processor.h"
#include "server/rpc/text.h"

enum { PARAMETERS_MAX = 64, PARAMETER_NAME_MAX = 64, PARAMETER_VALUE_MAX = 65536 };

enum hb_code hb_processor_name_from_pb(const char *field, const char *from, char *out,
                                       struct hb_err *err) {
  size_t size = strnlen(from, HB_PROCESSOR_NAME_MAX + 1);
  if (size == 0 || size > HB_PROCESSOR_NAME_MAX) {
    return hb_err_set(err, HB_INVALID, "PROCESSOR_NAME_INVALID",
                      "%s '%.64s' must be 1 to %d characters a-z, 0-9, '.', '_', '-'", field, from,
                      HB_PROCESSOR_NAME_MAX);
  }
  memcpy(out, from, size + 1);
  return HB_OK;
}

/* ---- parameters */

static enum hb_code check_parameter(const Holdback__V1__ProcessorParameter *parameter,
                                    struct hb_err *err) {
  size_t size = strnlen(parameter->name, PARAMETER_NAME_MAX + 1);
  if (size == 0 || size > PARAMETER_NAME_MAX) {
    return hb_err_set(err, HB_INVALID, "PROCESSOR_PARAMETERS_INVALID",
                      "parameter name '%.64s' must have 1 to %d bytes", parameter->name,
                      PARAMETER_NAME_MAX);
  }
  if (parameter->value.len > PARAMETER_VALUE_MAX) {
    return hb_err_set(err, HB_INVALID, "PROCESSOR_PARAMETERS_INVALID",
                      "parameter '%s' has %zu bytes, at most %d", parameter->name,
                      parameter->value.len, PARAMETER_VALUE_MAX);
  }
  return HB_OK;
}

static int compare_names(const void *a, const void *b) {
  const Holdback__V1__ProcessorParameter *const *left = a;
  const Holdback__V1__ProcessorParameter *const *right = b;
  return strcmp((*left)->name, (*right)->name);
}

/* In the order of names, so that equal parameters are equal bytes. */
static enum hb_code take_parameters(const Holdback__V1__ProcessorConfig *from, struct hb_buf *out,
                                    struct hb_err *err) {
  if (from->n_parameters > PARAMETERS_MAX) {
    return hb_err_set(err, HB_INVALID, "PROCESSOR_PARAMETERS_INVALID",
                      "parameters are %zu, at most %d", from->n_parameters, PARAMETERS_MAX);
  }
  if (from->n_parameters > 0) {
    qsort(from->parameters, from->n_parameters, sizeof *from->parameters, compare_names);
  }
  for (size_t i = 0; i < from->n_parameters; i++) {
    const Holdback__V1__ProcessorParameter *parameter = from->parameters[i];
    enum hb_code code = check_parameter(parameter, err);
    if (code) return code;
    if (i > 0 && strcmp(from->parameters[i - 1]->name, parameter->name) == 0) {
      return hb_err_set(err, HB_INVALID, "PROCESSOR_PARAMETERS_INVALID",
                        "parameter '%s' is given twice", parameter->name);
    }
    hb_parameters_append(out, parameter->name,
                         hb_slice_of(parameter->value.data, parameter->value.len));
  }
  return HB_OK;
}

/* ---- what to attach */

static enum hb_code take_start(int start, struct hb_processor_request *out, struct hb_err *err) {
  if (start == HOLDBACK__V1__START_POINT__START_POINT_NOW) {
    out->start_now = true;
  } else if (start != HOLDBACK__V1__START_POINT__START_POINT_EARLIEST) {
    return hb_err_set(err, HB_INVALID, "START_MISSING",
                      "start is %d, must be %d (EARLIEST) or %d (NOW)", start,
                      HOLDBACK__V1__START_POINT__START_POINT_EARLIEST,
                      HOLDBACK__V1__START_POINT__START_POINT_NOW);
  }
  return HB_OK;
}

static enum hb_code take_on_error(int on_error, struct hb_processor_request *out,
                                  struct hb_err *err) {
  if (on_error < HB_ON_ERROR_DEFAULT || on_error > HB_ON_ERROR_WAIT) {
    return hb_err_set(err, HB_INVALID, "ON_ERROR_INVALID", "config.on_error %d is not known",
                      on_error);
  }
  out->on_error = (enum hb_on_error)on_error;
  return HB_OK;
}

static enum hb_code take_key_status(const Holdback__V1__ProcessorConfig *from,
                                    struct hb_processor_request *out, struct hb_err *err) {
  int mode = (int)from->key_status;
  if (mode < HB_KEY_STATUS_OFF || mode > HB_KEY_STATUS_PERIODIC) {
    return hb_err_set(err, HB_INVALID, "KEY_STATUS_INVALID", "config.key_status %d is not known",
                      mode);
  }
  if (from->key_status_interval_ms && mode != HB_KEY_STATUS_PERIODIC) {
    return hb_err_set(err, HB_INVALID, "KEY_STATUS_INVALID",
                      "config.key_status_interval_ms is set, but key_status is not PERIODIC");
  }
  out->key_status = (enum hb_key_status_mode)mode;
  out->key_status_ms = from->key_status_interval_ms;
  return HB_OK;
}

enum hb_code hb_processor_request_from_pb(const Holdback__V1__AttachProcessorRequest *from,
                                          struct hb_buf *parameters,
                                          struct hb_processor_request *out, struct hb_err *err) {
  struct hb_processor_request request = {.start_now = false};
  const Holdback__V1__ProcessorConfig *config = from->config;
  if (!config) return hb_err_set(err, HB_INVALID, "CONFIG_MISSING", "config is not set");
  enum hb_code code = hb_processor_name_from_pb("config.name", config->name, request.name, err);
  if (!code) {
    code = hb_processor_name_from_pb("config.processor", config->processor, request.processor, err);
  }
  if (!code) code = take_on_error((int)config->on_error, &request, err);
  if (!code) code = take_key_status(config, &request, err);
  if (!code) code = take_start((int)from->start, &request, err);
  if (!code) code = take_parameters(config, parameters, err);
  if (code) return code;
  request.parameters = hb_buf_view(parameters);
  *out = request;
  return HB_OK;
}

/* ---- telling */

static char *text(const char *from) { return (char *)(uintptr_t)from; }

static void put_parameters(const struct hb_processor_info *info, struct hb_processor_info_pb *pb) {
  struct hbp_parameter *parameters = NULL;
  size_t count = 0;
  /* What is stored was checked when it was attached. */
  if (hb_parameters_decode(hb_buf_view(&info->parameters), &parameters, &count, NULL)) return;
  pb->parameters = hb_calloc(count + 1, sizeof *pb->parameters);
  pb->list = hb_calloc(count + 1, sizeof(Holdback__V1__ProcessorParameter *));
  for (size_t i = 0; i < count; i++) {
    holdback__v1__processor_parameter__init(&pb->parameters[i]);
    pb->parameters[i].name = text(parameters[i].name);
    pb->parameters[i].value = (ProtobufCBinaryData){
        .len = parameters[i].value.size, .data = (uint8_t *)(uintptr_t)parameters[i].value.data};
    pb->list[i] = &pb->parameters[i];
  }
  free(parameters);
  pb->config.n_parameters = count;
  pb->config.parameters = pb->list;
}

static Holdback__V1__ProcessorState state_of(enum hb_processor_state state) {
  switch (state) {
    case HB_PROCESSOR_RUNNING:
      return HOLDBACK__V1__PROCESSOR_STATE__PROCESSOR_STATE_RUNNING;
    case HB_PROCESSOR_SUSPENDED:
      return HOLDBACK__V1__PROCESSOR_STATE__PROCESSOR_STATE_SUSPENDED;
    case HB_PROCESSOR_DETACHED:
      return HOLDBACK__V1__PROCESSOR_STATE__PROCESSOR_STATE_DETACHED;
    case HB_PROCESSOR_ENDED:
      return HOLDBACK__V1__PROCESSOR_STATE__PROCESSOR_STATE_ENDED;
    case HB_PROCESSOR_FAILED:
    default:
      return HOLDBACK__V1__PROCESSOR_STATE__PROCESSOR_STATE_FAILED;
  }
}

static void put_status(const struct hb_processor_info *info, struct hb_processor_info_pb *pb) {
  Holdback__V1__ProcessorStatus *status = &pb->status;
  status->state = state_of(info->state);
  if (info->begun) {
    status->position_presence_case = HOLDBACK__V1__PROCESSOR_STATUS__POSITION_PRESENCE_POSITION;
    status->position = info->position;
  }
  status->lag = info->lag;
  status->results = info->results;
  status->events = info->events;
  status->failed = info->failed;
  status->timers_fired = info->timers_fired;
  status->timers = info->timers;
  status->blocked_keys = info->blocked_keys;
  status->state_cache_bytes = info->cache_bytes;
  status->call_ms = info->call_ms;
  if (info->watermark.present) {
    google__protobuf__timestamp__init(&pb->watermark);
    pb->watermark.seconds = info->watermark.seconds;
    pb->watermark.nanos = info->watermark.nanos;
    status->watermark = &pb->watermark;
  }
  if (info->state == HB_PROCESSOR_SUSPENDED || info->state == HB_PROCESSOR_FAILED) {
    status->stopped_at = info->stopped_at;
    pb->why = hb_text_cleaned(hb_slice_text(info->why));
    status->reason = pb->why;
  }
  if (info->has_failure) {
    status->last_failure_position_presence_case =
        HOLDBACK__V1__PROCESSOR_STATUS__LAST_FAILURE_POSITION_PRESENCE_LAST_FAILURE_POSITION;
    status->last_failure_position = info->failure_at;
    pb->failure = hb_text_cleaned(hb_slice_text(info->failure));
    status->last_failure = pb->failure;
  }
}

void hb_processor_info_to_pb(const struct hb_processor_info *info,
                             struct hb_processor_info_pb *pb) {
  *pb = (struct hb_processor_info_pb){.parameters = NULL};
  holdback__v1__processor_info__init(&pb->info);
  holdback__v1__processor_config__init(&pb->config);
  holdback__v1__processor_status__init(&pb->status);
  pb->info.config = &pb->config;
  pb->info.status = &pb->status;
  pb->config.name = text(info->name);
  pb->config.processor = text(info->processor);
  pb->config.on_error = (Holdback__V1__OnError)info->on_error;
  pb->config.key_status = (Holdback__V1__KeyStatusMode)info->key_status;
  pb->config.key_status_interval_ms = info->key_status_ms;
  put_parameters(info, pb);
  put_status(info, pb);
}

void hb_processor_info_pb_done(struct hb_processor_info_pb *pb) {
  free(pb->parameters);
  free(pb->list);
  free(pb->why);
  free(pb->failure);
}
