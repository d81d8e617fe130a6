/* Decides how a child is made to count: by two variables of the environment that it inherits. */
#include "bench/syncs.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static const char PRELOAD[] = "LD_PRELOAD";

/* A sanitizer's runtime must be the first library of a process. */
#ifndef __has_feature
#define __has_feature(name) 0 /* gcc */
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
static const bool can_preload = false;
#else
static const bool can_preload = true;
#endif

void hb_syncs_begin(struct hb_syncs *syncs, const char *library, const struct hbt_tempdir *dir) {
  *syncs = (struct hb_syncs){.counter = NULL};
  char whole[4096];
  if (!can_preload || !library || !realpath(library, whole)) return;
  hbt_tempdir_join(dir, "syncs", syncs->path);
  int fd = open(syncs->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return;
  if (ftruncate(fd, sizeof *syncs->counter) == 0) {
    void *page = mmap(NULL, sizeof *syncs->counter, PROT_READ, MAP_SHARED, fd, 0);
    if (page != MAP_FAILED) syncs->counter = page;
  }
  (void)close(fd);
  if (!syncs->counter) return;
  (void)setenv(HB_SYNCS_VARIABLE, syncs->path, 1);
  (void)setenv(PRELOAD, whole, 1);
}

bool hb_syncs_get(const struct hb_syncs *syncs, uint64_t *out) {
  if (!syncs->counter) return false;
  *out = __atomic_load_n(syncs->counter, __ATOMIC_RELAXED);
  return true;
}

void hb_syncs_end(struct hb_syncs *syncs) {
  if (!syncs->counter) return;
  (void)munmap((void *)(uintptr_t)syncs->counter, sizeof *syncs->counter);
  (void)unsetenv(PRELOAD);
  (void)unsetenv(HB_SYNCS_VARIABLE);
  syncs->counter = NULL;
}
