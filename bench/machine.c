/* Decides what is told about the machine, and how its disk is measured without anything of ours. */
#include "bench/machine.h"

#include <fcntl.h>
#include <grpc/grpc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/version.h"

/* ---- what it is */

/* The value of the first line of a file that starts with `name`, up to its end. */
static void put_line_of(json_t *object, const char *key, const char *path, const char *name) {
  char line[512];
  FILE *file = fopen(path, "re");
  while (file && fgets(line, sizeof line, file)) {
    if (strncmp(line, name, strlen(name)) != 0) continue;
    char *value = line + strlen(name);
    value += strspn(value, " \t:=\"");
    value[strcspn(value, "\"\n")] = 0;
    (void)json_object_set_new(object, key, json_string(value));
    break;
  }
  if (file) (void)fclose(file);
}

/* Of Debian's packages; absent where they are not installed. */
static void put_package(json_t *object, const char *package) {
  char command[128];
  char version[128] = "";
  (void)snprintf(command, sizeof command, "dpkg-query -W -f '${Version}' %s 2>/dev/null", package);
  FILE *out = popen(command, "re");
  if (!out) return;
  if (fgets(version, sizeof version, out)) version[strcspn(version, "\n")] = 0;
  if (pclose(out) == 0) (void)json_object_set_new(object, package, json_string(version));
}

static json_t *versions(void) {
  static const char *const packages[] = {"librocksdb-dev", "libgrpc-dev", "redis-server",
                                         "nats-server", "libnats-dev"};
  json_t *object = json_object();
  (void)json_object_set_new(object, "holdback", json_string(HB_VERSION_TEXT));
  (void)json_object_set_new(object, "grpc core", json_string(grpc_version_string()));
  for (size_t i = 0; i < sizeof packages / sizeof packages[0]; i++) {
    put_package(object, packages[i]);
  }
  return object;
}

static void put_filesystem(json_t *object) {
  struct statfs info;
  char text[32];
  if (statfs("/tmp", &info) != 0) return;
  (void)snprintf(text, sizeof text, "0x%lx", (unsigned long)info.f_type);
  bool is_ext = info.f_type == 0xEF53;
  (void)json_object_set_new(object, "filesystem", json_string(is_ext ? "ext4" : text));
}

json_t *hb_json_machine(void) {
  json_t *object = json_object();
  struct utsname kernel;
  char day[32] = "";
  time_t now = (time_t)(hb_clock_wall_ms() / 1000);
  struct tm utc;
  if (gmtime_r(&now, &utc)) (void)strftime(day, sizeof day, "%Y-%m-%d %H:%M UTC", &utc);
  (void)json_object_set_new(object, "date", json_string(day));
  put_line_of(object, "cpu", "/proc/cpuinfo", "model name");
  put_line_of(object, "memory", "/proc/meminfo", "MemTotal");
  put_line_of(object, "system", "/etc/os-release", "PRETTY_NAME");
  (void)json_object_set_new(object, "cores", json_integer(sysconf(_SC_NPROCESSORS_ONLN)));
  if (uname(&kernel) == 0) (void)json_object_set_new(object, "kernel", json_string(kernel.release));
  put_filesystem(object);
  double loads[3];
  if (getloadavg(loads, 3) == 3) {
    (void)json_object_set_new(object, "load_15_minutes", json_real(loads[2]));
  }
  (void)json_object_set_new(object, "versions", versions());
  return object;
}

/* ---- the disk */

static int open_file(const char *folder) {
  char path[256];
  (void)snprintf(path, sizeof path, "%s/device", folder);
  return open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
}

bool hb_device_syncs(const char *folder, uint64_t count, struct hb_histogram *out) {
  static const char block[512] = "a record as small as that of one event";
  int fd = open_file(folder);
  if (fd < 0) return false;
  bool good = true;
  for (uint64_t i = 0; good && i < count; i++) {
    uint64_t start_ns = hb_clock_mono_ns();
    good = write(fd, block, sizeof block) == (ssize_t)sizeof block && fdatasync(fd) == 0;
    if (good) hb_histogram_record(out, hb_clock_mono_ns() - start_ns);
  }
  (void)close(fd);
  return good;
}

double hb_device_write_rate(const char *folder, uint64_t bytes) {
  enum { CHUNK = 1 << 20 };
  int fd = open_file(folder);
  if (fd < 0) return 0;
  uint8_t *chunk = hb_alloc(CHUNK);
  for (size_t i = 0; i < CHUNK; i++) chunk[i] = (uint8_t)(i * 2654435761u >> 13);
  uint64_t start_ns = hb_clock_mono_ns();
  bool good = true;
  for (uint64_t written = 0; good && written < bytes; written += CHUNK) {
    good = write(fd, chunk, CHUNK) == CHUNK;
  }
  good = fdatasync(fd) == 0 && good;
  double seconds = (double)(hb_clock_mono_ns() - start_ns) / 1e9;
  (void)close(fd);
  free(chunk);
  return good ? (double)bytes / seconds : 0;
}
