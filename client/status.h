/* What a call ended with, as a struct holdback_error. */
#ifndef HB_CLIENT_STATUS_H
#define HB_CLIENT_STATUS_H

#include <grpc/grpc.h>
#include <stdint.h>

#include "base/slice.h"
#include "client/holdback.h"

/* `details` is the value of grpc-status-details-bin: a google.rpc.Status, of which the message and
 * the first ErrorInfo's reason are taken. Malformed or empty: `error` keeps what it has. */
void hbc_status_details_decode(struct hb_slice details, struct holdback_error *error);
/* `server` is named in the message where the status came from the connection, not the server.
 * code GRPC_STATUS_OK gives a zeroed error. */
void hbc_status_read(grpc_status_code code, const grpc_slice *text,
                     const grpc_metadata_array *trailing, const char *server,
                     struct holdback_error *error);
/* Whether the same request may be sent again without a change: the server said UNAVAILABLE, or the
 * connection was lost. What carries a reason was said by the server and is taken at its word. */
bool hbc_status_is_transient(const struct holdback_error *error);

#endif
