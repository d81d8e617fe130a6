/* What a measurement brings: a table of numbers with names and units, some of them absent.
 *
 * One enum for all rows, so that medians, the terminal and the JSON file need no code per figure.
 */
#ifndef HB_BENCH_METRICS_H
#define HB_BENCH_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HB_METRIC_TABLE(X)                                                                        \
  X(EVENTS, "events", "")                          /* sent, stored and checked */                 \
  X(SECONDS, "seconds", "s")                       /* first send to last ordered receive */       \
  X(RATE, "events_per_second", "1/s")              /* over `seconds` */                           \
  X(ACK_SECONDS, "ack_seconds", "s")               /* first send to last answer */                \
  X(ACK_RATE, "acks_per_second", "1/s")            /* over `ack_seconds` */                       \
  X(OUT_BYTES_RATE, "out_bytes_per_second", "B/s") /* payloads to all subscribers */              \
  X(HELD_SHARE, "held_share", "")                  /* of the events, written to bundles */        \
  X(INDEX_SECONDS, "index_seconds", "s")           /* last receive to indexed_to = frontier */    \
  X(PROCESSED_PER_SECOND, "processed_per_second", "1/s") /* first send to processed and stored */ \
  X(SERVER_CPU_US, "server_cpu_us", "us")                /* per event, put-off work included */   \
  X(CLIENT_CPU_US, "client_cpu_us", "us") /* per event, all producers and subscribers */          \
  X(WRITTEN_BYTES, "written_bytes", "B")  /* per event, to the block layer, by the server */      \
  X(SYNCS, "syncs_per_event", "")         /* fsync, fdatasync and the like, by the server */      \
  X(SYNCS_TOTAL, "syncs", "")                                                                     \
  X(RSS_PEAK, "rss_peak", "B")           /* server, VmHWM */                                      \
  X(RSS_END, "rss_end", "B")             /* server, everything done, subscribers there */         \
  X(READY_SECONDS, "ready_seconds", "s") /* process start to event=ready */                       \
  X(ACK_P50, "ack_p50_us", "us")         /* intended send to answer */                            \
  X(ACK_P99, "ack_p99_us", "us")                                                                  \
  X(ACK_P999, "ack_p999_us", "us")                                                                \
  X(ACK_MAX, "ack_max_us", "us")                                                                  \
  X(RECEIVE_P50, "receive_p50_us", "us") /* intended send to ordered receive */                   \
  X(RECEIVE_P99, "receive_p99_us", "us")                                                          \
  X(RECEIVE_P999, "receive_p999_us", "us")                                                        \
  X(RECEIVE_MAX, "receive_max_us", "us")                                                          \
  X(PROBE_P50, "probe_p50_us", "us") /* single appends on another stream meanwhile */             \
  X(PROBE_P99, "probe_p99_us", "us")                                                              \
  X(PROBE_P999, "probe_p999_us", "us")                                                            \
  X(PROBE_MAX, "probe_max_us", "us")                                                              \
  X(RELEASE_RATE, "released_per_second", "1/s") /* the gap's last answer to the last receive */   \
  X(FILES_RATE, "files_events_per_second",                                                        \
    "1/s")                           /* reading the store's files from start to end */            \
  X(FILES_BYTES, "files_bytes", "B") /* without the write-ahead log */                            \
  X(DISK_RATIO, "disk_ratio", "")    /* files / (payload + key + 16 bytes) per event */           \
  X(COMPACT_SECONDS, "compact_seconds", "s")                                                      \
  X(FIRST_MS, "first_ms", "ms")               /* a cold key's list: its first entry */            \
  X(ALL_MS, "all_ms", "ms")                   /* its last entry */                                \
  X(SPREAD_FIRST_MS, "spread_first_ms", "ms") /* likewise, a key all over the store */            \
  X(SPREAD_ALL_MS, "spread_all_ms", "ms")                                                         \
  X(SYNC_P50, "device_sync_p50_us", "us") /* append 512 bytes, fdatasync */                       \
  X(SYNC_P99, "device_sync_p99_us", "us")                                                         \
  X(DEVICE_RATE, "device_bytes_per_second", "B/s") /* one file written from start to end */

enum hb_metric {
#define HB_METRIC_ENUM(id, name, unit) HB_METRIC_##id,
  HB_METRIC_TABLE(HB_METRIC_ENUM)
#undef HB_METRIC_ENUM
      HB_METRICS
};

struct hb_metrics {
  double value[HB_METRICS]; /* NAN = absent */
};

void hb_metrics_clear(struct hb_metrics *metrics);
void hb_metrics_set(struct hb_metrics *metrics, enum hb_metric metric, double value);
double hb_metrics_get(const struct hb_metrics *metrics, enum hb_metric metric);
const char *hb_metric_name(enum hb_metric metric);
const char *hb_metric_unit(enum hb_metric metric);

/* Over runs of one workload, each metric by itself; absent where no run has it. */
struct hb_spread {
  struct hb_metrics median, min, max;
};
void hb_metrics_spread(const struct hb_metrics *runs, size_t count, struct hb_spread *out);

#endif
