/* A processor for the conformance cases: it concatenates what it gets per key, emits each F-th
 * state, fails at the payload BAD, and ends the process at the payload CRASH. */
#include <stdlib.h>
#include <string.h>

#include "processing/holdback/processor.h"

struct self {
  unsigned every; /* F */
};

static int create(const struct hbp_parameter *parameters, size_t count, void **out_self,
                  char *error, size_t error_size) {
  (void)error;
  (void)error_size;
  struct self *self = malloc(sizeof *self);
  if (!self) return HBP_FAILED;
  self->every = 1;
  for (size_t i = 0; i < count; i++) {
    self->every = *(const char *)parameters[i].value.data == '2' ? 2 : 1;
  }
  *out_self = self;
  return HBP_OK;
}

static int is(struct hbp_bytes bytes, const char *text) {
  return bytes.size == strlen(text) && memcmp(bytes.data, text, bytes.size) == 0;
}

static int on_event(void *context, const struct hbp_host *host, const struct hbp_event *event) {
  const struct self *self = context;
  if (is(event->payload, "BAD")) return host->give_up(host, "Validation failed");
  if (is(event->payload, "CRASH")) abort();
  struct hbp_bytes name = {"s", 1};
  struct hbp_bytes value = {NULL, 0};
  int found;
  if (host->state_get(host, name, &value, &found)) return HBP_FAILED;
  unsigned counter = 0;
  size_t size = found ? value.size - sizeof counter : 0;
  if (found) memcpy(&counter, value.data, sizeof counter);
  unsigned char *next = malloc(sizeof counter + size + event->payload.size);
  if (!next) return HBP_FAILED;
  unsigned more = counter + 1;
  memcpy(next, &more, sizeof more);
  if (size) memcpy(next + sizeof more, (const char *)value.data + sizeof more, size);
  if (event->payload.size) {
    memcpy(next + sizeof more + size, event->payload.data, event->payload.size);
  }
  size += event->payload.size;
  int failed = host->state_put(host, name, (struct hbp_bytes){next, sizeof more + size});
  if (!failed && counter % self->every == 0) {
    failed = host->emit(host, (struct hbp_bytes){next + sizeof more, size});
  }
  free(next);
  return failed ? HBP_FAILED : HBP_OK;
}

HBP_EXPORT const struct hbp_processor holdback_processor = {HBP_ABI,   sizeof(struct hbp_processor),
                                                            "ordered", "test: concat with failures",
                                                            create,    free,
                                                            on_event,  NULL,
                                                            NULL};
