/* Errors on their way out: struct hb_err -> gRPC status with google.rpc.Status in the trailers. */
#ifndef HB_SERVER_RPC_STATUS_H
#define HB_SERVER_RPC_STATUS_H

#include <grpc/slice.h>
#include <grpc/status.h>

#include "base/err.h"

#define HB_ERROR_DOMAIN "holdback"

grpc_status_code hb_status_code(const struct hb_err *err);
/* Bytes for the trailer grpc-status-details-bin: google.rpc.Status with one ErrorInfo. */
grpc_slice hb_status_details(const struct hb_err *err);

#endif
