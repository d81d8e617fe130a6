/* What a process has used, by /proc. */
#ifndef HB_BENCH_PROCESS_H
#define HB_BENCH_PROCESS_H

#include <stdint.h>
#include <sys/types.h>

struct hb_usage {
  double cpu_s;      /* user and system, all threads, since its start */
  uint64_t rss;      /* bytes now */
  uint64_t rss_peak; /* bytes at the most */
  uint64_t written;  /* bytes that it caused to be sent to storage */
};

/* All zero where there is no such process. */
struct hb_usage hb_usage_of(pid_t pid);
/* CPU of the calling process, in seconds. */
double hb_usage_self_cpu_s(void);

#endif
