/* A processor that does a bit of everything: see testing_burst.h. */
#include "server/engine/testing_burst.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
/* cmocka needs the ones above */
#include <cmocka.h>

#include "base/frame/block.h"
#include "server/engine/processors.h"

static int burst_create(const struct hbp_parameter *parameters, size_t count, void **out_self,
                        char *error, size_t error_size) {
  (void)parameters;
  (void)count;
  (void)error;
  (void)error_size;
  *out_self = NULL;
  return HBP_OK;
}

static int step(const struct hbp_host *host, const char *what, long long at) {
  static const struct hbp_bytes NAME = {"n", 1};
  struct hbp_bytes value;
  int found;
  uint32_t count = 0;
  if (host->state_get(host, NAME, &value, &found)) return HBP_FAILED;
  if (found) memcpy(&count, value.data, sizeof count);
  count++;
  value = (struct hbp_bytes){&count, sizeof count};
  if (host->state_put(host, NAME, value)) return HBP_FAILED;
  char line[64];
  int size = snprintf(line, sizeof line, "%s%u@%lld", what, count, at);
  return host->emit(host, (struct hbp_bytes){line, (size_t)size});
}

static int burst_event(void *self, const struct hbp_host *host, const struct hbp_event *event) {
  (void)self;
  int64_t results = event->sequence % 500 ? event->sequence % 5 : 50;
  for (int64_t i = 0; i < results; i++) {
    if (step(host, "e", event->position)) return HBP_FAILED;
  }
  if (event->sequence % 7 == 0) {
    struct hbp_time time = event->time;
    time.seconds += event->sequence % 13;
    if (host->timer_set(host, (struct hbp_bytes){"t", 1}, time)) return HBP_FAILED;
  }
  return event->sequence % 11 ? HBP_OK : host->give_up(host, "each eleventh");
}

static int burst_timer(void *self, const struct hbp_host *host, const struct hbp_timer *timer) {
  (void)self;
  if (step(host, "t", timer->time.seconds)) return HBP_FAILED;
  if (timer->time.seconds % 3) return HBP_OK;
  struct hbp_time time = timer->time;
  time.seconds++;
  return host->timer_set(host, (struct hbp_bytes){"u", 1}, time);
}

static const struct hbp_processor BURST = {.abi_version = HBP_ABI,
                                           .size = sizeof BURST,
                                           .name = "burst",
                                           .create = burst_create,
                                           .on_event = burst_event,
                                           .on_timer = burst_timer};

const struct hbp_processor *burst_find(const char *name) {
  return strcmp(name, "burst") == 0 ? &BURST : NULL;
}

/* ---- what came of it */

void burst_read_all(struct rig *rig, struct hb_stream *stream, const char *name,
                    struct hb_buf *out) {
  struct hb_stream *results = hb_engine_find_results(rig->engine, stream, name);
  struct hb_stream_status status;
  hb_stream_get_status(results, &status);
  for (int64_t at = 0; at < status.record.frontier;) {
    struct hb_read read = {
        .kind = HB_READ_LOG, .stream = results, .position = at, .bytes_max = 1 << 20};
    if (rig_read(rig, &read) != HB_OK) fail_msg("read: %s", read.error.message);
    assert_true(read.blocks_count > 0);
    for (uint32_t i = 0; i < read.blocks_count; i++) {
      struct hb_block block;
      assert_int_equal(hb_block_decode(hb_bytes_view(read.blocks[i]), &block, NULL), HB_OK);
      assert_int_equal(block.from, at);
      hb_buf_append(out, block.frames.data, block.frames.size);
      at = block.to;
    }
    hb_read_done(&read);
  }
  hb_stream_unref(results);
}
