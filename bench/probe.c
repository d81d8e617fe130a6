/* Decides what a probe's stream is called and what of its times is told. */
#include "bench/probe.h"

#include <string.h>

#include "client/holdback.h"

static const char STREAM[] = "probe";

static bool make_stream(struct hb_probe *probe, const char *address) {
  struct holdback_error error = {0};
  struct holdback_client *client = NULL;
  struct holdback_options options = {.server = address};
  struct holdback_stream_config config = {.name = STREAM, .first_sequence = 1};
  int status = holdback_client_create(&options, &client, &error);
  if (status == HOLDBACK_OK) status = holdback_stream_create(client, &config, &error);
  holdback_client_destroy(client);
  if (status != HOLDBACK_OK) hb_gate_fail(&probe->gate, "probe: %s", error.message);
  return status == HOLDBACK_OK;
}

bool hb_probe_start(struct hb_probe *probe, const char *address, uint64_t rate) {
  memset(probe, 0, sizeof *probe);
  hb_gate_init(&probe->gate);
  probe->options = hb_bench_options_default();
  probe->options.subscribers = 0;
  probe->options.batch = 1;
  probe->options.in_flight = 10000; /* an open loop: nothing waits for an answer */
  probe->options.rate = rate;
  probe->setting = (struct hb_bench_setting){.options = &probe->options,
                                             .address = address,
                                             .stream = STREAM,
                                             .to = UINT64_MAX,
                                             .until_stopped = true,
                                             .gate = &probe->gate};
  if (!make_stream(probe, address)) {
    hb_gate_done(&probe->gate);
    return false;
  }
  hb_bench_start(&probe->thread, &probe->setting, hb_bench_produce);
  return true;
}

bool hb_probe_stop(struct hb_probe *probe, struct hb_metrics *metrics) {
  hb_gate_stop(&probe->gate);
  hb_bench_join(&probe->thread);
  static const double shares[] = {0.5, 0.99, 0.999, 1};
  const struct hb_histogram *latency = probe->thread.latency;
  bool good = !hb_gate_look(&probe->gate).failed && latency && latency->total;
  for (int i = 0; good && i < 4; i++) {
    hb_metrics_set(metrics, (enum hb_metric)(HB_METRIC_PROBE_P50 + i),
                   (double)hb_histogram_quantile(latency, shares[i]) / 1e3);
  }
  hb_bench_thread_done(&probe->thread);
  hb_gate_done(&probe->gate);
  return good;
}
