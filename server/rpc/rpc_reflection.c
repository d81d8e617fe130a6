/* grpc.reflection.v1 and v1alpha: the same messages on the wire, so one handler with two paths.
 * Each request of the stream is answered before the next is read. */
#include <grpc/status.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "grpc/reflection/v1/reflection.pb-c.h"
#include "server/rpc/descriptor_index.h"
#include "server/rpc/lane.h"
#include "server/rpc/methods.h"
#include "server/rpc/pb.h"
#include "server/rpc/unary.h"

typedef Grpc__Reflection__V1__ServerReflectionRequest request_pb;
typedef Grpc__Reflection__V1__ServerReflectionResponse response_pb;

static grpc_byte_buffer *answer_error(response_pb *response, const char *what, const char *name) {
  char text[256];
  (void)snprintf(text, sizeof text, "%s '%.128s' is not known", what, name);
  Grpc__Reflection__V1__ErrorResponse error = GRPC__REFLECTION__V1__ERROR_RESPONSE__INIT;
  error.error_code = GRPC_STATUS_NOT_FOUND;
  error.error_message = text;
  response->message_response_case =
      GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_ERROR_RESPONSE;
  response->error_response = &error;
  return hb_pb_pack(&response->base);
}

static grpc_byte_buffer *answer_file(response_pb *response, int file, const char *what,
                                     const char *name) {
  if (file < 0) return answer_error(response, what, name);
  struct hb_slice files[HB_DESCRIPTOR_FILES_MAX];
  ProtobufCBinaryData list[HB_DESCRIPTOR_FILES_MAX];
  size_t count = hb_descriptor_closure(hb_descriptor_index(), file, files);
  for (size_t i = 0; i < count; i++) {
    list[i] =
        (ProtobufCBinaryData){.len = files[i].size, .data = (uint8_t *)(uintptr_t)files[i].data};
  }
  Grpc__Reflection__V1__FileDescriptorResponse part =
      GRPC__REFLECTION__V1__FILE_DESCRIPTOR_RESPONSE__INIT;
  part.n_file_descriptor_proto = count;
  part.file_descriptor_proto = list;
  response->message_response_case =
      GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_FILE_DESCRIPTOR_RESPONSE;
  response->file_descriptor_response = &part;
  return hb_pb_pack(&response->base);
}

/* proto3 has no extensions: a message that is known has none. */
static grpc_byte_buffer *answer_extensions(response_pb *response, const char *type) {
  if (!hb_descriptor_is_message(hb_descriptor_index(), type)) {
    return answer_error(response, "message", type);
  }
  Grpc__Reflection__V1__ExtensionNumberResponse part =
      GRPC__REFLECTION__V1__EXTENSION_NUMBER_RESPONSE__INIT;
  part.base_type_name = (char *)(uintptr_t)type;
  response->message_response_case =
      GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_ALL_EXTENSION_NUMBERS_RESPONSE;
  response->all_extension_numbers_response = &part;
  return hb_pb_pack(&response->base);
}

static grpc_byte_buffer *answer_services(response_pb *response) {
  size_t count;
  const char *const *names = hb_descriptor_services(hb_descriptor_index(), &count);
  Grpc__Reflection__V1__ServiceResponse *parts = hb_calloc(count, sizeof *parts);
  Grpc__Reflection__V1__ServiceResponse **list = hb_calloc(count, sizeof *list);
  for (size_t i = 0; i < count; i++) {
    grpc__reflection__v1__service_response__init(&parts[i]);
    parts[i].name = (char *)(uintptr_t)names[i];
    list[i] = &parts[i];
  }
  Grpc__Reflection__V1__ListServiceResponse part =
      GRPC__REFLECTION__V1__LIST_SERVICE_RESPONSE__INIT;
  part.n_service = count;
  part.service = list;
  response->message_response_case =
      GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_LIST_SERVICES_RESPONSE;
  response->list_services_response = &part;
  grpc_byte_buffer *buffer = hb_pb_pack(&response->base);
  free(list);
  free(parts);
  return buffer;
}

static grpc_byte_buffer *answer(request_pb *request) {
  const struct hb_descriptor_index *index = hb_descriptor_index();
  response_pb response = GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__INIT;
  response.valid_host = request->host;
  response.original_request = request;
  switch ((int)request->message_request_case) {
    case GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_FILE_BY_FILENAME:
      return answer_file(&response, hb_descriptor_find_file(index, request->file_by_filename),
                         "file", request->file_by_filename);
    case GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_FILE_CONTAINING_SYMBOL:
      return answer_file(&response,
                         hb_descriptor_find_symbol(index, request->file_containing_symbol),
                         "symbol", request->file_containing_symbol);
    case GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_FILE_CONTAINING_EXTENSION:
      return answer_error(&response, "extension of",
                          request->file_containing_extension->containing_type);
    case GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_ALL_EXTENSION_NUMBERS_OF_TYPE:
      return answer_extensions(&response, request->all_extension_numbers_of_type);
    case GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_LIST_SERVICES:
      return answer_services(&response);
    default:
      return NULL;
  }
}

static void received(struct hb_call *call, const grpc_slice *message) {
  if (!message) { /* the peer asks no more */
    hb_call_end(call, NULL);
    return;
  }
  request_pb *request =
      hb_unary_unpack(call, &grpc__reflection__v1__server_reflection_request__descriptor, message);
  if (!request) return;
  grpc_byte_buffer *buffer = answer(request);
  grpc__reflection__v1__server_reflection_request__free_unpacked(request, NULL);
  if (buffer) {
    (void)hb_call_send(call, buffer, false);
    return;
  }
  struct hb_err err;
  hb_err_set(&err, HB_INVALID, "REQUEST_EMPTY", "message_request is not set");
  hb_call_end(call, &err);
}

static void sent(struct hb_call *call) { hb_call_read(call); }

static void drain(struct hb_call *call) {
  struct hb_err err;
  hb_err_set(&err, HB_UNAVAILABLE, "SERVER_STOPS", "server stops");
  hb_call_end(call, &err);
}

#define REFLECTION(name)                                                           \
  {                                                                                \
    .path = "/grpc.reflection." name ".ServerReflection/ServerReflectionInfo",     \
    .size = sizeof(struct hb_call), .request_bytes_max = HB_REQUEST_BYTES_MAX,     \
    .opened = hb_unary_opened, .received = received, .sent = sent, .drain = drain, \
  }

const struct hb_method hb_method_reflection_v1 = REFLECTION("v1");
const struct hb_method hb_method_reflection_v1alpha = REFLECTION("v1alpha");
