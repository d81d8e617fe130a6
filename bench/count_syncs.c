/* A library to preload into what is measured: counts the calls that make a program wait for the
 * disk, in 8 bytes of a file that the benchmark maps too. Decides what counts as one.
 *
 * The counter is on a page of its own shared mapping; counting is one atomic addition beside a call
 * that takes a fifth of a millisecond. Programs that make system calls themselves (Go's) are not
 * seen: for them no count is told. */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "bench/syncs.h"

#define PUBLIC __attribute__((visibility("default")))

static _Atomic uint64_t nowhere;
static _Atomic uint64_t *counter = &nowhere;

__attribute__((constructor)) static void find_counter(void) {
  const char *path = getenv(HB_SYNCS_VARIABLE);
  int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
  if (fd < 0) return;
  void *page = mmap(NULL, sizeof *counter, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  (void)close(fd);
  if (page != MAP_FAILED) counter = page;
}

/* The system call itself, so that nothing has to be looked up in the library behind this one. */
static int call(long number, int fd) {
  atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
  return (int)syscall(number, fd);
}

PUBLIC int fsync(int fd) { return call(SYS_fsync, fd); }
PUBLIC int fdatasync(int fildes) { return call(SYS_fdatasync, fildes); }
PUBLIC int syncfs(int fd) { return call(SYS_syncfs, fd); }
