/* What survives a process that is killed, and what a failing disk does. Workers are forked from a
 * parent that has never opened RocksDB; so are those that look at what is left. */
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "storage/read.h"
#include "storage/record_internal.h"
#include "storage/store_internal.h"
#include "storage/test_store_internal.h"

typedef void work(struct fixture *fixture, int out);

/* In a child; what it writes to `out` is read here. Its exit code, or -signal. */
static int in_child(struct fixture *fixture, work *run, uint64_t *said, size_t count,
                    size_t *out_count) {
  int pipes[2];
  assert_int_equal(pipe(pipes), 0);
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    close(pipes[0]);
    run(fixture, pipes[1]);
    _exit(0);
  }
  close(pipes[1]);
  size_t got = 0;
  while (got < count && read(pipes[0], &said[got], sizeof *said) == (ssize_t)sizeof *said) got++;
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  close(pipes[0]);
  if (out_count) *out_count = got;
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static void say(int out, uint64_t value) {
  if (write(out, &value, sizeof value) != (ssize_t)sizeof value) _exit(9);
}

/* A child can't use cmocka's checks: it says what went wrong by its exit code. */
static void child_must(enum hb_code code) {
  if (code) _exit(10 + (int)code);
}

static void child_open(struct fixture *fixture) {
  child_must(try_open(fixture, NULL));
  fixture->write = hb_write_create(fixture->store);
  fixture->commit = hb_store_info(fixture->store)->last_commit;
}

static void commit_block(struct fixture *fixture, int64_t from, bool sync) {
  struct hb_frontier record = some_record(++fixture->commit);
  record.complete_to = record.frontier = from + 10;
  put_block(fixture, 1, from, from + 10);
  hb_write_put_frontier(fixture->write, 1, &record);
  child_must(hb_store_write(fixture->store, fixture->write, fixture->commit, sync, NULL));
  hb_write_clear(fixture->write);
}

static void make_first_stream(struct fixture *fixture) {
  struct hb_stream_config config = some_config("one");
  hb_write_put_config(fixture->write, 1, &config);
}

/* Every third commit is synced; ends by SIGKILL. */
static void write_and_die(struct fixture *fixture, int out) {
  child_open(fixture);
  make_first_stream(fixture);
  for (int i = 0; i < 200; i++) {
    commit_block(fixture, 1 + i * 10, i % 3 == 0);
    say(out, fixture->commit);
  }
  kill(getpid(), SIGKILL);
}

static bool take_record(void *context, const struct hb_stored_stream *stream) {
  *(struct hb_frontier *)context = stream->record;
  return true;
}

/* Says: run, last commit, frontier, and the end of what a reader gets without a hole. */
static void look(struct fixture *fixture, int out) {
  child_open(fixture);
  struct hb_frontier record = {0};
  child_must(hb_stream_each(fixture->store, take_record, &record, NULL));
  struct hb_log_reader *reader = NULL;
  child_must(hb_log_reader_open(fixture->store, 1, 1, &reader, NULL));
  int64_t end = 1;
  for (;;) {
    struct hb_bytes *bytes = NULL;
    struct hb_block block;
    child_must(hb_log_reader_next(reader, &bytes, NULL));
    if (!bytes) break;
    child_must(hb_block_decode(hb_bytes_view(bytes), &block, NULL));
    if (block.from != end) _exit(8);
    end = block.to;
    hb_bytes_unref(bytes);
  }
  hb_log_reader_close(reader);
  say(out, hb_store_info(fixture->store)->run);
  say(out, hb_store_info(fixture->store)->last_commit);
  say(out, (uint64_t)record.frontier);
  say(out, (uint64_t)end);
  close_store(fixture);
}

/* SIGKILL loses nothing that was written, synced or not; the run goes up, numbers go on. */
static void a_kill_loses_nothing(void **state) {
  struct fixture *fixture = *state;
  uint64_t said[256];
  size_t count;
  assert_int_equal(in_child(fixture, write_and_die, said, 256, &count), -SIGKILL);
  assert_int_equal(count, 200);
  uint64_t found[4];
  assert_int_equal(in_child(fixture, look, found, 4, &count), 0);
  assert_int_equal(count, 4);
  assert_int_equal(found[0], 2);
  assert_int_equal(found[1], said[199]);
  assert_int_equal(found[2], 2001);
  assert_int_equal(found[3], 2001);
}

static void write_until_killed(struct fixture *fixture, int out) {
  child_open(fixture);
  make_first_stream(fixture);
  struct hb_frontier record = {0};
  child_must(hb_stream_each(fixture->store, take_record, &record, NULL));
  int64_t from = record.frozen ? record.frontier : 1;
  for (;; from += 10) {
    commit_block(fixture, from, from % 20 == 1);
    say(out, (uint64_t)from + 10);
  }
}

/* Killed again and again at whatever moment the pipe's reader chooses: what was told is there, in
 * whole commits, without a hole. */
static void kills_at_any_moment(void **state) {
  struct fixture *fixture = *state;
  uint64_t expected = 1;
  for (int round = 1; round <= 5; round++) {
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) write_until_killed(fixture, pipes[1]);
    close(pipes[1]);
    for (int i = 0; i < round * 13; i++) {
      assert_int_equal(read(pipes[0], &expected, sizeof expected), sizeof expected);
    }
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    close(pipes[0]);
    uint64_t found[4];
    assert_int_equal(in_child(fixture, look, found, 4, NULL), 0);
    assert_int_equal(found[0], round * 2);
    assert_true(found[2] >= expected);
    assert_int_equal(found[2], found[3]);
  }
}

/* Cuts the end off the newest log of RocksDB, as a power failure may. */
static void tear_log(struct fixture *fixture, int out) {
  char command[800];
  snprintf(command, sizeof command, "f=$(ls -S %s/db/*.log | head -1) && truncate -s -7 \"$f\"",
           fixture->path);
  say(out, (uint64_t)system(command));
}

/* A torn tail is dropped as a whole commit: the ones before it are there, without a hole. */
static void a_torn_tail_is_one_commit(void **state) {
  struct fixture *fixture = *state;
  uint64_t said[256];
  assert_int_equal(in_child(fixture, write_and_die, said, 256, NULL), -SIGKILL);
  assert_int_equal(in_child(fixture, tear_log, said, 1, NULL), 0);
  assert_int_equal(said[0], 0);
  uint64_t found[4];
  assert_int_equal(in_child(fixture, look, found, 4, NULL), 0);
  assert_int_equal(found[1], 199);
  assert_int_equal(found[2], 1991);
  assert_int_equal(found[3], 1991);
}

/* No file may grow any more: how the write failed, and what later ones and reads answer. */
static void fill_disk(struct fixture *fixture, int out) {
  child_open(fixture);
  make_first_stream(fixture);
  commit_block(fixture, 1, true);
  signal(SIGXFSZ, SIG_IGN);
  struct rlimit limit = {.rlim_cur = 0, .rlim_max = RLIM_INFINITY};
  if (setrlimit(RLIMIT_FSIZE, &limit)) _exit(7);
  enum hb_code code = HB_OK;
  for (int64_t from = 11; from < 100000 && !code; from += 10) {
    put_block(fixture, 1, from, from + 10);
    code = hb_store_write(fixture->store, fixture->write, ++fixture->commit, true, NULL);
    hb_write_clear(fixture->write);
  }
  say(out, code);
  limit.rlim_cur = RLIM_INFINITY; /* the disk is well again */
  if (setrlimit(RLIMIT_FSIZE, &limit)) _exit(7);
  struct hb_err err = {0};
  put_block(fixture, 1, 11, 21);
  say(out, hb_store_write(fixture->store, fixture->write, ++fixture->commit, true, &err));
  say(out, strstr(err.message, "failed before") != NULL);
  say(out, hb_store_sync(fixture->store, NULL));
  struct hb_log_reader *reader = NULL;
  struct hb_bytes *bytes = NULL;
  say(out, hb_log_reader_open(fixture->store, 1, 1, &reader, NULL));
  child_must(hb_log_reader_next(reader, &bytes, NULL));
  say(out, bytes != NULL);
  hb_bytes_unref(bytes);
  hb_log_reader_close(reader);
  /* In the same process: close, open, go on. */
  close_store(fixture);
  child_open(fixture);
  commit_block(fixture, 11, true);
  close_store(fixture);
}

/* After a failed write nothing is written any more, though the disk is well again (I6); reads go
 * on; the store can be opened again in the same process and has what was acknowledged. */
static void a_failed_write_is_the_last(void **state) {
  struct fixture *fixture = *state;
  uint64_t said[6];
  size_t count;
  assert_int_equal(in_child(fixture, fill_disk, said, 6, &count), 0);
  assert_int_equal(count, 6);
  assert_true(said[0] == HB_IO || said[0] == HB_NO_SPACE);
  assert_int_equal(said[1], said[0]);
  assert_true(said[2]);
  assert_int_equal(said[3], said[0]);
  assert_int_equal(said[4], HB_OK);
  assert_true(said[5]);
  uint64_t found[4];
  assert_int_equal(in_child(fixture, look, found, 4, NULL), 0);
  assert_int_equal(found[0], 3);
  assert_int_equal(found[2], 21);
  assert_int_equal(found[3], 21);
}

int main(void) {
#define ONE(name) cmocka_unit_test_setup_teardown(name, setup_folder, teardown)
  const struct CMUnitTest tests[] = {
      ONE(a_kill_loses_nothing),
      ONE(kills_at_any_moment),
      ONE(a_torn_tail_is_one_commit),
      ONE(a_failed_write_is_the_last),
  };
#undef ONE
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
