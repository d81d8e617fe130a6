/* Decides which steps to leave out next: halves of what is left, then quarters, and so on. */
#include "tests/lib/shrink.h"

#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SECONDS_MAX = 60, QUIET_SECONDS_MAX = 10, TEXT_SIZE = 1 << 14 };

static void be_quiet(void) {
  int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere < 0 || dup2(nowhere, STDOUT_FILENO) < 0 || dup2(nowhere, STDERR_FILENO) < 0) abort();
}

bool hbt_trial_fails(hbt_trial *trial, void *context, const bool *keep, size_t count, bool quiet) {
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    if (quiet) be_quiet();
    alarm(quiet ? QUIET_SECONDS_MAX : SECONDS_MAX);
    exit(trial(context, keep, count)); /* not _exit: ASan looks for leaks then */
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) abort();
  if (!quiet && WIFSIGNALED(status)) printf("ended by signal %d\n", WTERMSIG(status));
  return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

struct search {
  hbt_trial *trial;
  void *context;
  bool *keep;
  bool *tried;
  size_t count;
  unsigned left;
};

/* Leaves out the `size` kept ones from `*at` on, for good if it fails without them; *at moves on.
 * True: they are out. */
static bool leave_out(struct search *search, size_t *at, size_t size) {
  memcpy(search->tried, search->keep, search->count * sizeof *search->tried);
  size_t out = 0;
  for (; *at < search->count && out < size; (*at)++) {
    out += search->tried[*at];
    search->tried[*at] = false;
  }
  if (!out || !search->left) return false;
  search->left--;
  if (!hbt_trial_fails(search->trial, search->context, search->tried, search->count, true)) {
    return false;
  }
  memcpy(search->keep, search->tried, search->count * sizeof *search->keep);
  return true;
}

static size_t kept(const bool *keep, size_t count) {
  size_t sum = 0;
  for (size_t i = 0; i < count; i++) sum += keep[i];
  return sum;
}

size_t hbt_shrink(hbt_trial *trial, void *context, bool *keep, size_t count, unsigned trials_max) {
  struct search search = {.trial = trial,
                          .context = context,
                          .keep = keep,
                          .tried = calloc(count + 1, sizeof(bool)),
                          .count = count,
                          .left = trials_max};
  if (!search.tried) abort();
  size_t size = (kept(keep, count) + 1) / 2;
  while (size && search.left) {
    bool any = false;
    for (size_t at = 0; at < count;) any |= leave_out(&search, &at, size);
    if (size == 1 && !any) break;
    if (size > 1) size = (size + 1) / 2;
  }
  free(search.tried);
  return kept(keep, count);
}

const char *hbt_steps_text(const bool *keep, size_t count) {
  static char text[TEXT_SIZE];
  size_t size = 0;
  text[0] = 0;
  for (size_t i = 0; i < count; i++) {
    if (!keep[i] || size + 24 > sizeof text) continue;
    size += (size_t)snprintf(text + size, sizeof text - size, "%s%zu", size ? "," : "", i);
  }
  return text;
}

bool hbt_steps_parse(const char *text, bool *keep, size_t count) {
  memset(keep, 0, count * sizeof *keep);
  while (*text) {
    char *end = NULL;
    unsigned long step = strtoul(text, &end, 10);
    if (end == text || step >= count) return false;
    keep[step] = true;
    if (*end && *end != ',') return false;
    text = *end ? end + 1 : end;
  }
  return true;
}
