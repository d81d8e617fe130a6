/* Decides which rows there are, in which order, and what they are called. */
#include "bench/suite.h"

/* Rows with one function stand together: their place among them is their bit. */
const struct hb_row hb_rows[] = {
    {"device", "fdatasync and writing on this disk, without anything of ours", hb_measure_device},
    {"disordered", "displaced by up to 1,000, against Redis, JetStream and the floor",
     hb_measure_throughput},
    {"in-order", "the same in order, against the floor", hb_measure_throughput},
    {"far", "displaced by up to 1,000,000, against the floor", hb_measure_throughput},
    {"payload", "100 B, 1 KB, 10 KB", hb_measure_sweeps},
    {"keys", "1, 1,000, 1,000,000 keys; Zipf", hb_measure_sweeps},
    {"disorder", "displaced by up to 1 .. 1,000,000", hb_measure_sweeps},
    {"producers", "1, 8, 64 producers", hb_measure_sweeps},
    {"subscribers", "0, 1, 16, 100, and one that stops reading", hb_measure_sweeps},
    {"batch", "batches of 1, 10, 100, 1,000", hb_measure_sweeps},
    {"ack", "durable and ASYNC", hb_measure_sweeps},
    {"single", "appends of one event, 2,000 a second, open loop", hb_measure_latency},
    {"latency", "send to ordered receive at fixed rates, open loop", hb_measure_latency},
    {"reversed", "everything waits for the last event sent", hb_measure_held},
    {"gap", "one gap with everything held behind it, then filled", hb_measure_held},
    {"alternating", "every second event missing, then filled", hb_measure_held},
    {"fan-out", "100 subscribers at the tail, against the floor", hb_measure_fan_out},
    {"many", "64 producers, one event per message, each waiting for its answer", hb_measure_many},
    {"catch-up", "reading everything from disk, against reading the files", hb_measure_history},
    {"cold-keys", "one key's list, nothing cached", hb_measure_history},
    {"restart", "SIGKILL, then ready again, with a long history", hb_measure_history},
    {"disk-size", "bytes on disk after compaction", hb_measure_disk},
    {"index", "the index behind, and appends to another stream meanwhile", hb_measure_index},
};
const size_t hb_rows_count = sizeof hb_rows / sizeof hb_rows[0];
