/* A child process whose output is read all the time and whose end can be waited for.
 *
 * One thread per child reads stdout and stderr into memory and reaps the child, so a child never
 * blocks on a full pipe. Every wait has a deadline and ends at the event: nothing here sleeps.
 * A child that is not ours to keep (destroy) is killed by its process id. */
#ifndef TESTS_LIB_CHILD_H
#define TESTS_LIB_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct hbt_child;

enum hbt_output { HBT_OUT, HBT_ERR };

/* Start arguments[0] (a path; NULL ends the list) with the parent's environment. `input` is what
 * it reads on stdin (NULL: nothing, the file is empty). Never NULL: a child that can't be started
 * ends the process with a message. */
struct hbt_child *hbt_child_start(const char *const *arguments, const char *input,
                                  size_t input_size);
pid_t hbt_child_pid(const struct hbt_child *child);
/* Send `signal`, unless it has ended already. */
void hbt_child_signal(struct hbt_child *child, int signal);
/* Wait for a whole line that contains `text`; copy the first such line to `line`. False: the
 * output ended or the time was over first. */
bool hbt_child_wait_line(struct hbt_child *child, enum hbt_output output, const char *text,
                         uint32_t timeout_ms, char *line, size_t line_size);
/* Wait until `text` was written that often. False as above. */
bool hbt_child_wait_count(struct hbt_child *child, enum hbt_output output, const char *text,
                          size_t count, uint32_t timeout_ms);
/* Wait for the end. True: *out_code is the exit code, or 128 + the signal that ended it. */
bool hbt_child_wait(struct hbt_child *child, uint32_t timeout_ms, int *out_code);
/* All that it wrote so far, NUL-terminated; a copy, free() it. */
char *hbt_child_text(struct hbt_child *child, enum hbt_output output, size_t *out_size);
/* Kill it where it still runs, wait, free. NULL is allowed. */
void hbt_child_destroy(struct hbt_child *child);

/* Start, wait for the end, give all of it back. out and err are copies (hbt_run_done). */
struct hbt_run {
  int code; /* as hbt_child_wait; -1: killed, since it did not end within the time */
  char *out;
  size_t out_size;
  char *err;
};
struct hbt_run hbt_run(const char *const *arguments, const char *input, size_t input_size,
                       uint32_t timeout_ms);
void hbt_run_done(struct hbt_run *run);

#endif
