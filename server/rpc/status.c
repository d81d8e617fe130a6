/* Decides how an error looks on the wire: one place, so that every error has the same shape.
 *
 * The code comes from base/err_table.h, the message as it is (gRPC escapes it), and for machines
 * one google.rpc.ErrorInfo with our domain and the error's reason. */
#include "server/rpc/status.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "google/protobuf/any.pb-c.h"
#include "google/rpc/error_details.pb-c.h"
#include "google/rpc/status.pb-c.h"

grpc_status_code hb_status_code(const struct hb_err *err) {
  return (grpc_status_code)hb_code_grpc_status(err->code);
}

grpc_slice hb_status_details(const struct hb_err *err) {
  Google__Rpc__ErrorInfo info = GOOGLE__RPC__ERROR_INFO__INIT;
  info.domain = (char *)(uintptr_t)HB_ERROR_DOMAIN; /* packing reads only */
  info.reason = (char *)(uintptr_t)(err->reason ? err->reason : hb_code_reason(err->code));
  size_t info_size = google__rpc__error_info__get_packed_size(&info);
  uint8_t *info_bytes = hb_alloc(info_size);
  google__rpc__error_info__pack(&info, info_bytes);

  Google__Protobuf__Any any = GOOGLE__PROTOBUF__ANY__INIT;
  any.type_url = (char *)(uintptr_t) "type.googleapis.com/google.rpc.ErrorInfo";
  any.value = (ProtobufCBinaryData){.len = info_size, .data = info_bytes};
  Google__Protobuf__Any *details[] = {&any};
  Google__Rpc__Status status = GOOGLE__RPC__STATUS__INIT;
  status.code = hb_code_grpc_status(err->code);
  status.message = (char *)(uintptr_t)err->message;
  status.n_details = 1;
  status.details = details;
  grpc_slice slice = grpc_slice_malloc(google__rpc__status__get_packed_size(&status));
  google__rpc__status__pack(&status, GRPC_SLICE_START_PTR(slice));
  free(info_bytes);
  return slice;
}
