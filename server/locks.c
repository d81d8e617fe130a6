/* Decides that Abseil's locks do not look for deadlocks.
 *
 * Debian builds Abseil, which gRPC locks with, with assertions, and then every lock is put into one
 * graph behind one lock of its own and searched for cycles. That finds mistakes of gRPC's authors,
 * and takes a twentieth of the CPU of a call with a small message. The function that turns it off
 * is part of Abseil's interface, in C++ and with the version in its name, so it is looked up; where
 * it is not found, nothing changes but the time. */
#include "server/locks.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

/* void absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle) */
static const char *const names[] = {
    "_ZN4absl7debian329SetMutexDeadlockDetectionModeENS0_15OnDeadlockCycleE",
    "_ZN4absl29SetMutexDeadlockDetectionModeENS_15OnDeadlockCycleE",
};

void hb_locks_tune(void) {
  enum { IGNORE = 0 };
  void (*set_mode)(int) = NULL;
  for (size_t i = 0; i < sizeof names / sizeof names[0] && !set_mode; i++) {
    void *found = dlsym(RTLD_DEFAULT, names[i]);
    memcpy(&set_mode, &found, sizeof set_mode); /* ISO C has no cast from one to the other */
  }
  if (set_mode) set_mode(IGNORE);
}
