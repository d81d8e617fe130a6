/* The smallest processor that is of use: how much of each contract was traded so far. */
#include <stdio.h>

#include "examples/orderbook/wire.h"
#include "processing/holdback/processor.h"

static int create(const struct hbp_parameter *parameters, size_t count, void **out_self,
                  char *error, size_t error_size) {
  if (count > 0) {
    (void)snprintf(error, error_size, "%s: it takes no parameters", parameters[0].name);
    return HBP_FAILED;
  }
  *out_self = NULL; /* all that it knows is in the key's state */
  return HBP_OK;
}

static int on_event(void *self, const struct hbp_host *host, const struct hbp_event *event) {
  (void)self;
  struct ob_event order;
  const char *wrong = ob_event_decode(event->payload.data, event->payload.size, &order);
  if (wrong) return host->give_up(host, wrong); /* the event is kept aside, with this reason */
  if (order.type != OB_EXECUTED) return HBP_OK; /* no result */
  const struct hbp_bytes name = {"volume", 6};
  struct hbp_bytes value;
  int found;
  if (host->state_get(host, name, &value, &found)) return HBP_FAILED;
  uint8_t bytes[8];
  ob_put_i64(bytes, order.filled + (found ? ob_get_i64(value.data) : 0));
  if (host->state_put(host, name, (struct hbp_bytes){bytes, sizeof bytes})) return HBP_FAILED;
  return host->emit(host, (struct hbp_bytes){bytes, sizeof bytes});
}

HBP_EXPORT const struct hbp_processor holdback_processor = {
    .abi_version = HBP_ABI,
    .size = sizeof(struct hbp_processor),
    .name = "volume",
    .help = "traded quantity per contract so far, as 8 bytes",
    .create = create,
    .on_event = on_event,
};
