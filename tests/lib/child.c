/* Decides how a child process is started, read and reaped.
 *
 * - the input goes to a memfd, so that writing it can't deadlock with reading the output;
 * - the reader thread polls both pipes and the child's pidfd; the child counts as ended when the
 *   pidfd says so and both pipes are dry, so a waiter that sees the end sees all output too;
 * - waiters sleep on a condition variable that each read and the end signal. */
#include "tests/lib/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"

extern char **environ;

struct text {
  char *data; /* owned, NUL-terminated */
  size_t size;
  size_t cap;
};

struct hbt_child {
  pid_t pid;
  int pidfd;
  int pipes[2];
  pthread_t reader;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  /* under lock */
  struct text text[2];
  bool ended;
  int code;
};

_Noreturn static void give_up(const char *what, const char *name) {
  (void)fprintf(stderr, "%s: %s: %s\n", what, name, strerror(errno));
  abort();
}

static void text_append(struct text *text, const char *data, size_t size) {
  hb_reserve((void **)&text->data, &text->cap, text->size + size + 1, 1);
  memcpy(text->data + text->size, data, size);
  text->size += size;
  text->data[text->size] = 0;
}

/* ---- the reader thread */

/* False at the pipe's end. */
static bool read_some(struct hbt_child *child, int which) {
  char buffer[16384];
  ssize_t got = read(child->pipes[which], buffer, sizeof buffer);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return true;
  if (got <= 0) return false;
  pthread_mutex_lock(&child->lock);
  text_append(&child->text[which], buffer, (size_t)got);
  pthread_cond_broadcast(&child->changed);
  pthread_mutex_unlock(&child->lock);
  return true;
}

static void reap(struct hbt_child *child) {
  int status = 0;
  while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR) {
  }
  pthread_mutex_lock(&child->lock);
  child->code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  child->ended = true;
  pthread_cond_broadcast(&child->changed);
  pthread_mutex_unlock(&child->lock);
}

static void *reader_main(void *argument) {
  struct hbt_child *child = argument;
  struct pollfd fds[3] = {
      {child->pipes[0], POLLIN, 0}, {child->pipes[1], POLLIN, 0}, {child->pidfd, POLLIN, 0}};
  while (fds[0].fd >= 0 || fds[1].fd >= 0) {
    /* A grandchild may hold the pipes: once the child has ended, only what is there is read. */
    int ready = poll(fds, 3, fds[2].fd < 0 ? 0 : -1);
    if (ready < 0 && errno != EINTR) give_up("poll", "child");
    if (ready == 0) break;
    for (int i = 0; i < 2; i++) {
      if (fds[i].fd >= 0 && fds[i].revents && !read_some(child, i)) fds[i].fd = -1;
    }
    if (fds[2].fd >= 0 && fds[2].revents) fds[2].fd = -1;
  }
  reap(child);
  return NULL;
}

/* ---- starting */

static int input_open(const char *input, size_t size) {
  int fd = memfd_create("stdin", MFD_CLOEXEC);
  if (fd < 0) give_up("memfd_create", "stdin");
  for (size_t at = 0; at < size;) {
    ssize_t put = write(fd, input + at, size - at);
    if (put < 0) give_up("write", "stdin");
    at += (size_t)put;
  }
  if (lseek(fd, 0, SEEK_SET) < 0) give_up("lseek", "stdin");
  return fd;
}

static void spawn(struct hbt_child *child, const char *const *arguments, const int fds[3]) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  sigset_t none;
  sigset_t defaults;
  sigemptyset(&none);
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGPIPE);
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  for (int i = 0; i < 3; i++) posix_spawn_file_actions_adddup2(&actions, fds[i], i);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  errno = posix_spawn(&child->pid, arguments[0], &actions, &attributes,
                      (char *const *)(uintptr_t)arguments, environ);
  if (errno != 0) give_up("can't start", arguments[0]);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
}

static void condition_init(pthread_cond_t *condition) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(condition, &attributes);
  pthread_condattr_destroy(&attributes);
}

struct hbt_child *hbt_child_start(const char *const *arguments, const char *input,
                                  size_t input_size) {
  struct hbt_child *child = hb_calloc(1, sizeof *child);
  int fds[3] = {input_open(input, input ? input_size : 0), -1, -1};
  for (int i = 0; i < 2; i++) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) give_up("pipe2", arguments[0]);
    child->pipes[i] = ends[0];
    fds[i + 1] = ends[1];
    text_append(&child->text[i], "", 0);
  }
  spawn(child, arguments, fds);
  for (int i = 0; i < 3; i++) close(fds[i]);
  child->pidfd = pidfd_open(child->pid, 0);
  if (child->pidfd < 0) give_up("pidfd_open", arguments[0]);
  pthread_mutex_init(&child->lock, NULL);
  condition_init(&child->changed);
  errno = pthread_create(&child->reader, NULL, reader_main, child);
  if (errno != 0) give_up("pthread_create", arguments[0]);
  return child;
}

pid_t hbt_child_pid(const struct hbt_child *child) { return child->pid; }

void hbt_child_signal(struct hbt_child *child, int signal) {
  pthread_mutex_lock(&child->lock);
  if (!child->ended) (void)pidfd_send_signal(child->pidfd, signal, NULL, 0);
  pthread_mutex_unlock(&child->lock);
}

/* ---- waiting */

static struct timespec deadline_in(uint32_t timeout_ms) {
  uint64_t at_ms = hb_clock_mono_ms() + timeout_ms;
  return (struct timespec){.tv_sec = (time_t)(at_ms / 1000),
                           .tv_nsec = (long)(at_ms % 1000) * 1000000};
}

static bool find_line(const struct text *text, const char *part, char *line, size_t line_size) {
  const char *end = NULL;
  for (const char *at = text->data; (end = strchr(at, '\n')) != NULL; at = end + 1) {
    size_t size = (size_t)(end - at);
    if (!memmem(at, size, part, strlen(part))) continue;
    if (size >= line_size) size = line_size - 1;
    memcpy(line, at, size);
    line[size] = 0;
    return true;
  }
  return false;
}

bool hbt_child_wait_line(struct hbt_child *child, enum hbt_output output, const char *text,
                         uint32_t timeout_ms, char *line, size_t line_size) {
  struct timespec deadline = deadline_in(timeout_ms);
  bool found = false;
  int rc = 0;
  pthread_mutex_lock(&child->lock);
  while (!(found = find_line(&child->text[output], text, line, line_size)) && !child->ended &&
         rc == 0) {
    rc = pthread_cond_timedwait(&child->changed, &child->lock, &deadline);
  }
  pthread_mutex_unlock(&child->lock);
  return found;
}

static size_t count_places(const char *text, const char *part) {
  size_t count = 0;
  for (const char *at = text; (at = strstr(at, part)) != NULL; at++) count++;
  return count;
}

bool hbt_child_wait_count(struct hbt_child *child, enum hbt_output output, const char *text,
                          size_t count, uint32_t timeout_ms) {
  struct timespec deadline = deadline_in(timeout_ms);
  bool enough = false;
  int rc = 0;
  pthread_mutex_lock(&child->lock);
  while (!(enough = count_places(child->text[output].data, text) >= count) && !child->ended &&
         rc == 0) {
    rc = pthread_cond_timedwait(&child->changed, &child->lock, &deadline);
  }
  pthread_mutex_unlock(&child->lock);
  return enough;
}

bool hbt_child_wait(struct hbt_child *child, uint32_t timeout_ms, int *out_code) {
  struct timespec deadline = deadline_in(timeout_ms);
  int rc = 0;
  pthread_mutex_lock(&child->lock);
  while (!child->ended && rc == 0) {
    rc = pthread_cond_timedwait(&child->changed, &child->lock, &deadline);
  }
  bool ended = child->ended;
  if (ended) *out_code = child->code;
  pthread_mutex_unlock(&child->lock);
  return ended;
}

char *hbt_child_text(struct hbt_child *child, enum hbt_output output, size_t *out_size) {
  pthread_mutex_lock(&child->lock);
  const struct text *text = &child->text[output];
  char *copy = hb_memdup(text->data, text->size + 1);
  if (out_size) *out_size = text->size;
  pthread_mutex_unlock(&child->lock);
  return copy;
}

void hbt_child_destroy(struct hbt_child *child) {
  if (!child) return;
  hbt_child_signal(child, SIGKILL);
  pthread_join(child->reader, NULL);
  close(child->pidfd);
  for (int i = 0; i < 2; i++) {
    close(child->pipes[i]);
    free(child->text[i].data);
  }
  pthread_cond_destroy(&child->changed);
  pthread_mutex_destroy(&child->lock);
  free(child);
}

struct hbt_run hbt_run(const char *const *arguments, const char *input, size_t input_size,
                       uint32_t timeout_ms) {
  struct hbt_run run = {.code = -1};
  struct hbt_child *child = hbt_child_start(arguments, input, input_size);
  if (!hbt_child_wait(child, timeout_ms, &run.code)) run.code = -1;
  run.out = hbt_child_text(child, HBT_OUT, &run.out_size);
  run.err = hbt_child_text(child, HBT_ERR, NULL);
  hbt_child_destroy(child);
  return run;
}

void hbt_run_done(struct hbt_run *run) {
  free(run->out);
  free(run->err);
  *run = (struct hbt_run){0};
}
