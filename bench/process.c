/* Decides where CPU time and memory are read from: /proc/PID/stat, status and io. */
#include "bench/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static size_t read_file(pid_t pid, const char *name, char *out, size_t size) {
  char path[64];
  (void)snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
  FILE *file = fopen(path, "re");
  if (!file) return 0;
  size_t got = fread(out, 1, size - 1, file);
  (void)fclose(file);
  out[got] = 0;
  return got;
}

static uint64_t status_kib(const char *status, const char *name) {
  const char *at = strstr(status, name);
  return at ? strtoull(at + strlen(name), NULL, 10) * 1024 : 0;
}

/* Fields 14 and 15, counted behind the name, which may hold spaces and parentheses itself. */
static double stat_cpu_s(const char *stat) {
  const char *at = strrchr(stat, ')');
  if (!at) return 0;
  at += 2;
  for (int field = 3; field < 14 && at; field++) {
    at = strchr(at, ' ');
    if (at) at++;
  }
  if (!at) return 0;
  char *end = NULL;
  unsigned long long user = strtoull(at, &end, 10);
  unsigned long long system = strtoull(end, NULL, 10);
  return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

struct hb_usage hb_usage_of(pid_t pid) {
  struct hb_usage usage = {0};
  char text[4096];
  if (read_file(pid, "stat", text, sizeof text)) usage.cpu_s = stat_cpu_s(text);
  if (read_file(pid, "status", text, sizeof text)) {
    usage.rss = status_kib(text, "VmRSS:");
    usage.rss_peak = status_kib(text, "VmHWM:");
  }
  if (read_file(pid, "io", text, sizeof text)) {
    const char *at = strstr(text, "\nwrite_bytes:");
    if (at) usage.written = strtoull(at + strlen("\nwrite_bytes:"), NULL, 10);
  }
  return usage;
}

double hb_usage_self_cpu_s(void) {
  struct rusage usage;
  (void)getrusage(RUSAGE_SELF, &usage);
  return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}
