/* Decides what a status means: what the server said, and whether sending again can help. */
#include "client/status.h"

#include <stdio.h>
#include <string.h>

#include "client/error.h"
#include "google/rpc/error_details.pb-c.h"
#include "google/rpc/status.pb-c.h"

static const char error_info_type[] = "/google.rpc.ErrorInfo"; /* what follows any host */

static bool is_error_info(const Google__Protobuf__Any *any) {
  size_t size = strlen(any->type_url);
  size_t suffix = sizeof error_info_type - 1;
  return size >= suffix && strcmp(any->type_url + size - suffix, error_info_type) == 0;
}

static void take_reason(const Google__Rpc__Status *status, struct holdback_error *error) {
  for (size_t i = 0; i < status->n_details; i++) {
    const Google__Protobuf__Any *any = status->details[i];
    if (!is_error_info(any)) continue;
    Google__Rpc__ErrorInfo *info =
        google__rpc__error_info__unpack(NULL, any->value.len, any->value.data);
    if (!info) continue;
    (void)snprintf(error->reason, sizeof error->reason, "%s", info->reason);
    google__rpc__error_info__free_unpacked(info, NULL);
    return;
  }
}

void hbc_status_details_decode(struct hb_slice details, struct holdback_error *error) {
  Google__Rpc__Status *status = google__rpc__status__unpack(NULL, details.size, details.data);
  if (!status) return;
  if (status->message[0])
    (void)snprintf(error->message, sizeof error->message, "%s", status->message);
  take_reason(status, error);
  google__rpc__status__free_unpacked(status, NULL);
}

static void take_details(const grpc_metadata_array *trailing, struct holdback_error *error) {
  for (size_t i = 0; i < trailing->count; i++) {
    const grpc_metadata *row = &trailing->metadata[i];
    if (grpc_slice_str_cmp(row->key, "grpc-status-details-bin") != 0) continue;
    hbc_status_details_decode(
        hb_slice_of(GRPC_SLICE_START_PTR(row->value), GRPC_SLICE_LENGTH(row->value)), error);
  }
}

void hbc_status_read(grpc_status_code code, const grpc_slice *text,
                     const grpc_metadata_array *trailing, const char *server,
                     struct holdback_error *error) {
  *error = (struct holdback_error){0};
  if (code == GRPC_STATUS_OK) return;
  (void)hbc_error_set(error, (int)code, NULL, "%.*s", (int)GRPC_SLICE_LENGTH(*text),
                      (const char *)GRPC_SLICE_START_PTR(*text));
  take_details(trailing, error);
  if (error->reason[0]) return;
  char said[sizeof error->message];
  memcpy(said, error->message, sizeof said);
  (void)snprintf(error->message, sizeof error->message, "%s: %.900s", server, said);
}

bool hbc_status_is_transient(const struct holdback_error *error) {
  if (error->status == HOLDBACK_UNAVAILABLE) return true;
  if (error->reason[0]) return false;
  /* How gRPC 1.51 shows a reset connection, depending on what it was doing. RESOURCE_EXHAUSTED is
   * a server whose memory for receiving was used up, by others perhaps; but a message larger than
   * the receive limit, which would only come again, is told by the same status. */
  if (error->status == HOLDBACK_RESOURCE_EXHAUSTED)
    return strstr(error->message, "larger than max") == NULL;
  return error->status == HOLDBACK_UNKNOWN || error->status == HOLDBACK_INTERNAL ||
         error->status == HOLDBACK_CANCELLED;
}
