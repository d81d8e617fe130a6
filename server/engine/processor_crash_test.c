/* Exactly once: a process that is killed at random moments, again and again, ends with the same
 * result frames as one that was never disturbed. Workers are forked from a parent that has not
 * opened RocksDB yet. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
/* cmocka needs the ones above */
#include <cmocka.h>
#include <poll.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "server/engine/processors.h"
#include "server/engine/testing.h"
#include "server/engine/testing_burst.h"

enum { EVENTS = 3000, BATCH = 50, KEYS = 17, RUNS_MAX = 40 };

/* ---- one run: attach, send everything (again), wait until all of it is processed */

static struct hb_stream *begin(struct rig *rig, uint32_t results) {
  rig->tuning.find_processor = burst_find;
  rig->tuning.processing.results = results;
  rig->tuning.processing.cache_bytes = 1000;
  rig_open(rig);
  struct hb_stream *stream = rig_stream(rig, "s");
  struct hb_processor_request request = {.name = "p", .processor = "burst"};
  struct hb_job job = {
      .kind = HB_JOB_ATTACH_PROCESSOR, .processor = &request, .config = {.name = "s"}};
  if (rig_job(rig, &job) != HB_OK) fail_msg("%s", job.error.message);
  return stream;
}

static void send_all(struct rig *rig, struct hb_stream *stream, unsigned seed) {
  for (int64_t from = 1; from <= EVENTS; from += BATCH) {
    struct ev events[BATCH];
    char keys[BATCH][8];
    for (int64_t i = 0; i < BATCH; i++) {
      /* within a batch in another order each time: what is released is the same */
      int64_t sequence = from + (i * 7 + seed) % BATCH;
      (void)snprintf(keys[i], sizeof keys[i], "k%d", (int)(sequence % KEYS));
      events[i] = (struct ev){
          .sequence = sequence, .key = keys[i], .seconds = 100 + sequence / 4 - sequence % 3};
    }
    struct sent *sent = rig_send(rig, stream, 1, events, BATCH);
    rig_wait(sent);
    rig_free(sent);
  }
}

static bool is_done(struct rig *rig, struct hb_stream *stream) {
  struct hb_processor_info info;
  assert_true(hb_engine_get_processor(rig->engine, stream, "p", &info));
  hb_processor_info_done(&info);
  return info.begun && info.position > EVENTS;
}

static void wait_done(struct rig *rig, struct hb_stream *stream) {
  while (!is_done(rig, stream)) (void)poll(NULL, 0, 2);
}

static void work(struct rig *rig, unsigned seed, int out) {
  struct hb_stream *stream = begin(rig, 1 + seed % 9);
  if (write(out, "r", 1) != 1) _exit(9);
  send_all(rig, stream, seed);
  wait_done(rig, stream);
  if (write(out, "d", 1) != 1) _exit(9);
  _exit(0); /* no clean end either */
}

/* True: it was killed before it was done. */
static bool run_and_kill(struct rig *rig, unsigned seed, int after_ms) {
  int pipes[2];
  assert_int_equal(pipe(pipes), 0);
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    close(pipes[0]);
    work(rig, seed, pipes[1]);
  }
  close(pipes[1]);
  char byte;
  assert_int_equal(read(pipes[0], &byte, 1), 1);
  struct pollfd wait = {.fd = pipes[0], .events = POLLIN};
  bool done = poll(&wait, 1, after_ms) == 1 && read(pipes[0], &byte, 1) == 1 && byte == 'd';
  kill(child, SIGKILL);
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  close(pipes[0]);
  return !done;
}

/* ---- what came of it */

/* Reopened after the crashes: every frame, with its position and cause, and every state's effect
 * on later results is the same, though bundles were cut at other places in each run. */
static void test_killed(void **state) {
  (void)state;
  unsigned seed = (unsigned)hb_clock_mono_ns();
  if (getenv("HB_SEED")) seed = (unsigned)strtoul(getenv("HB_SEED"), NULL, 10);
  print_message("HB_SEED=%u\n", seed);
  struct rig rough;
  rig_init(&rough);
  int killed = 0;
  unsigned random = seed;
  bool done = false;
  for (int i = 0; i < RUNS_MAX && !done; i++) {
    random = random * 1103515245u + 12345u;
    done = !run_and_kill(&rough, random >> 8, 1 + (int)(random >> 16) % 30);
    if (!done) killed++;
  }
  assert_true(killed > 0);
  struct rig calm;
  rig_init(&calm);
  struct hb_stream *stream = begin(&calm, 0);
  send_all(&calm, stream, 0);
  wait_done(&calm, stream);
  struct hb_buf expected = {0};
  hb_stream_unref(stream);
  rig_close(&calm);
  stream = begin(&calm, 0);
  burst_read_all(&calm, stream, "p", &expected);
  hb_stream_unref(stream);
  stream = begin(&rough, 3);
  send_all(&rough, stream, 0);
  wait_done(&rough, stream);
  hb_stream_unref(stream);
  rig_close(&rough);
  stream = begin(&rough, 3);
  struct hb_buf frames = {0};
  burst_read_all(&rough, stream, "p", &frames);
  hb_stream_unref(stream);
  assert_true(expected.size > 10 * EVENTS);
  if (!hb_slice_equal(hb_buf_view(&expected), hb_buf_view(&frames))) {
    fail_msg("%zu bytes of results, should be %zu and the same; HB_SEED=%u", frames.size,
             expected.size, seed);
  }
  print_message("%d runs killed, %zu bytes of results\n", killed, frames.size);
  hb_buf_done(&expected);
  hb_buf_done(&frames);
  rig_done(&calm);
  rig_done(&rough);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_killed)};
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
