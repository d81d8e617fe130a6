/* holdbackd as a process: what it answers to its flags, folders, addresses and signals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "tests/lib/command.h"
#include "tests/lib/server.h"

enum { RUN_MS = 20000, ARGUMENTS = 12, FORMAT_SIZE = 36, FORMAT_CHECKSUM_AT = 28 };

static const char *holdbackd;
static const char *holdback;

struct world {
  struct hbt_tempdir dir;
  struct hbt_server server;  /* not started */
  char other[HBT_PATH_SIZE]; /* a second data folder */
};

static int setup(void **state) {
  struct world *world = calloc(1, sizeof *world);
  hbt_tempdir_init(&world->dir, "server");
  hbt_server_init(&world->server, holdbackd, &world->dir);
  hbt_tempdir_join(&world->dir, "other", world->other);
  *state = world;
  return 0;
}

static int teardown(void **state) {
  struct world *world = *state;
  hbt_server_done(&world->server);
  hbt_tempdir_done(&world->dir);
  free(world);
  return 0;
}

static void write_file(const char *path, const void *data, size_t size) {
  FILE *file = fopen(path, "we");
  assert_non_null(file);
  assert_int_equal(fwrite(data, 1, size, file), size);
  assert_int_equal(fclose(file), 0);
}

static size_t read_file(const char *path, void *data, size_t size) {
  FILE *file = fopen(path, "re");
  assert_non_null(file);
  size_t got = fread(data, 1, size, file);
  assert_int_equal(fclose(file), 0);
  return got;
}

/* The last line that it said; the text is cut there. */
static const char *last_line(char *text) {
  size_t size = strlen(text);
  if (size && text[size - 1] == '\n') text[size - 1] = 0;
  const char *newline = strrchr(text, '\n');
  return newline ? newline + 1 : text;
}

/* holdbackd ARGUMENTS... must end with `code`, and one line of what it says must have all of
 * `words`; a second one may point to --help. */
static void expect_refusal(int code, const char *const *words, const char *const *arguments) {
  const char *all[ARGUMENTS] = {holdbackd};
  for (size_t i = 0; arguments[i]; i++) all[i + 1] = arguments[i];
  struct hbt_run run = hbt_run(all, NULL, 0, RUN_MS);
  if (run.code != code) {
    print_error("%s: exit code %d, expected %d:\n%s\n", arguments[0], run.code, code, run.err);
  }
  assert_int_equal(run.code, code);
  char *line = run.err;
  char *hint = strstr(run.err, "\nTry `");
  if (hint) *hint = 0;
  line = (char *)(uintptr_t)last_line(line);
  for (size_t i = 0; words[i]; i++) {
    if (!strstr(line, words[i])) fail_msg("'%s' is not in: %s", words[i], line);
  }
  hbt_run_done(&run);
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* ---- flags and configuration */

/* A wrong flag or value: 64, and the line names flag, value and bound. */
static void test_usage(void **state) {
  const struct world *world = *state;
  const char *dir = world->server.data_dir;
  expect_refusal(64, WORDS("no-such-flag"), ARGS("--data-dir", dir, "--no-such-flag"));
  expect_refusal(64, WORDS("log-level", "loud"), ARGS("--data-dir", dir, "--log-level", "loud"));
  expect_refusal(64, WORDS("1024", "1048576"), ARGS("--data-dir", dir, "--held-bytes-max", "1KiB"));
  expect_refusal(64, WORDS("many"), ARGS("--data-dir", dir, "--gaps-max", "many"));
  expect_refusal(64, WORDS("stray"), ARGS("--data-dir", dir, "stray"));
  expect_refusal(64, WORDS("drain-timeout"), ARGS("--data-dir", dir, "--drain-timeout", "soon"));
  expect_refusal(64, WORDS("nowhere"), ARGS("--data-dir", dir, "--listen", "nowhere"));
  assert_int_equal(access(dir, F_OK), -1); /* nothing was made */
}

/* A configuration file's mistake is named by file and line. */
static void test_configuration_mistake(void **state) {
  const struct world *world = *state;
  char path[HBT_PATH_SIZE];
  static const char text[] = "gaps-max = 7\nno-such-key = 1\n";
  hbt_tempdir_join(&world->dir, "bad.conf", path);
  write_file(path, text, strlen(text));
  expect_refusal(64, WORDS("bad.conf:2", "no-such-key"), ARGS("--config", path));
}

static char *run_ok(const char *const *arguments) {
  struct hbt_run run = hbt_run(arguments, NULL, 0, RUN_MS);
  if (run.code != 0) print_error("%s\n", run.err);
  assert_int_equal(run.code, 0);
  free(run.err);
  return run.out;
}

/* Help and version go to stdout and end with 0; help knows every flag and exit code. */
static void test_help_and_version(void **state) {
  (void)state;
  static const char *const wanted[] = {"--data-dir",  "--listen",  "--config",   "--print-config",
                                       "--log-level", "--version", "--gaps-max", "--drain-timeout",
                                       "64",          "65",        "69",         "--held-bytes-max",
                                       "73",          "74",        "75",         "76"};
  char *help = run_ok(ARGS(holdbackd, "--help"));
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
    if (!strstr(help, wanted[i])) fail_msg("%s is not in --help", wanted[i]);
  }
  char *version = run_ok(ARGS(holdbackd, "--version"));
  assert_non_null(strstr(version, "holdbackd"));
  free(help);
  free(version);
}

/* What --print-config prints is a configuration file that says the same. */
static void test_print_config_is_a_config(void **state) {
  const struct world *world = *state;
  char path[HBT_PATH_SIZE];
  hbt_tempdir_join(&world->dir, "all.conf", path);
  char *first = run_ok(ARGS(holdbackd, "--data-dir", world->other, "--listen", "127.0.0.1:0",
                            "--gaps-max", "77", "--held-bytes-max", "2MiB", "--print-config"));
  assert_non_null(strstr(first, "77"));
  assert_non_null(strstr(first, world->other));
  write_file(path, first, strlen(first));
  char *second = run_ok(ARGS(holdbackd, "--config", path, "--print-config"));
  assert_string_equal(first, second);
  /* A flag is stronger than the file. */
  char *third = run_ok(ARGS(holdbackd, "--config", path, "--gaps-max", "78", "--print-config"));
  assert_non_null(strstr(third, "78"));
  assert_int_equal(access(world->other, F_OK), -1);
  free(first);
  free(second);
  free(third);
}

/* ---- folders */

/* A folder that can't be made: 73. */
static void test_folder_not_writable(void **state) {
  const struct world *world = *state;
  char file[HBT_PATH_SIZE];
  char below[HBT_PATH_SIZE];
  hbt_tempdir_join(&world->dir, "file", file);
  hbt_tempdir_join(&world->dir, "file/data", below);
  write_file(file, "x", 1);
  expect_refusal(73, WORDS(file), ARGS("--data-dir", below, "--listen", world->server.listen));
  expect_refusal(73, WORDS(file), ARGS("--data-dir", file, "--listen", world->server.listen));
}

/* Two servers on one folder: the second says 75, the first goes on. */
static void test_folder_locked(void **state) {
  struct world *world = *state;
  assert_true(hbt_server_start(&world->server));
  expect_refusal(75, WORDS(world->server.data_dir),
                 ARGS("--data-dir", world->server.data_dir, "--listen", "127.0.0.1:0"));
  struct hbt_command command = {holdback, world->server.listen};
  free(hbt_command_expect(&command, 0, NULL, "ping", NULL));
  assert_int_equal(hbt_server_stop(&world->server), 0);
}

/* A folder of somebody else: 76, and it is left as it was. */
static void test_folder_not_ours(void **state) {
  const struct world *world = *state;
  char photo[HBT_PATH_SIZE];
  assert_int_equal(mkdir(world->other, 0700), 0);
  hbt_tempdir_join(&world->dir, "other/photo.jpg", photo);
  write_file(photo, "x", 1);
  expect_refusal(76, WORDS(world->other),
                 ARGS("--data-dir", world->other, "--listen", world->server.listen));
  assert_int_equal(access(photo, F_OK), 0);
}

/* FORMAT of a made store, to be spoilt. */
static void make_store(struct world *world, char *format_path, unsigned char *format) {
  assert_true(hbt_server_start(&world->server));
  assert_int_equal(hbt_server_stop(&world->server), 0);
  hbt_tempdir_join(&world->dir, "data/FORMAT", format_path);
  assert_int_equal(read_file(format_path, format, FORMAT_SIZE), FORMAT_SIZE);
}

/* A newer format: 76, and the way out is a newer program. A spoilt FORMAT: 65. */
static void test_format(void **state) {
  struct world *world = *state;
  char path[HBT_PATH_SIZE];
  unsigned char format[FORMAT_SIZE];
  unsigned char changed[FORMAT_SIZE];
  const char *const *arguments =
      ARGS("--data-dir", world->server.data_dir, "--listen", world->server.listen);
  make_store(world, path, format);
  memcpy(changed, format, sizeof changed);
  changed[8] = 99;
  XXH64_hash_t hash = XXH3_64bits(changed, FORMAT_CHECKSUM_AT);
  for (int i = 0; i < 8; i++) changed[FORMAT_CHECKSUM_AT + i] = (unsigned char)(hash >> 8 * i);
  write_file(path, changed, sizeof changed);
  expect_refusal(76, WORDS("99", "newer"), arguments);
  changed[20] ^= 1;
  write_file(path, changed, sizeof changed);
  expect_refusal(65, WORDS("FORMAT", "checksum"), arguments);
  write_file(path, format, sizeof format);
  assert_true(hbt_server_start(&world->server));
}

/* A damaged store is refused, not repaired by guessing. */
static void test_damaged(void **state) {
  struct world *world = *state;
  char path[HBT_PATH_SIZE];
  unsigned char format[FORMAT_SIZE];
  make_store(world, path, format);
  struct hbt_run found = hbt_run(
      ARGS("/usr/bin/find", world->server.data_dir, "-name", "MANIFEST-*"), NULL, 0, RUN_MS);
  found.out[strcspn(found.out, "\n")] = 0;
  int fd = open(found.out, O_WRONLY | O_CLOEXEC);
  assert_true(fd >= 0);
  assert_int_equal(pwrite(fd, "spoilt", 6, 20), 6);
  assert_int_equal(close(fd), 0);
  hbt_run_done(&found);
  expect_refusal(65, WORDS(world->server.data_dir),
                 ARGS("--data-dir", world->server.data_dir, "--listen", world->server.listen));
}

/* ---- addresses */

/* Port 0 is any free one, said in the ready line; a taken one is 69 and names the address. */
static void test_port(void **state) {
  struct world *world = *state;
  char address[64] = "";
  (void)snprintf(world->server.listen, sizeof world->server.listen, "127.0.0.1:0");
  assert_true(hbt_server_start(&world->server));
  assert_true(hbt_log_value(world->server.ready, "listen", address, sizeof address));
  assert_null(strstr(address, ":0"));
  struct hbt_command command = {holdback, address};
  free(hbt_command_expect(&command, 0, NULL, "ping", NULL));
  expect_refusal(69, WORDS(address), ARGS("--data-dir", world->other, "--listen", address));
  free(hbt_command_expect(&command, 0, NULL, "ping", NULL));
}

/* The socket of a server that runs is not taken over; that of a killed one is. */
static void test_unix_socket(void **state) {
  struct world *world = *state;
  assert_true(hbt_server_start(&world->server));
  expect_refusal(69, WORDS(world->server.listen + strlen("unix:")),
                 ARGS("--data-dir", world->other, "--listen", world->server.listen));
  struct hbt_command command = {holdback, world->server.listen};
  free(hbt_command_expect(&command, 0, NULL, "ping", NULL));
  hbt_server_kill(&world->server);
  assert_true(hbt_server_start(&world->server));
  free(hbt_command_expect(&command, 0, NULL, "ping", NULL));
}

/* --listen may be given more than once; each address serves. */
static void test_two_addresses(void **state) {
  struct world *world = *state;
  char second[HBT_PATH_SIZE];
  char address[HBT_PATH_SIZE + 8];
  hbt_tempdir_join(&world->dir, "second", second);
  (void)snprintf(address, sizeof address, "unix:%s", second);
  world->server.flags[0] = "--listen";
  world->server.flags[1] = address;
  assert_true(hbt_server_start(&world->server));
  struct hbt_command one = {holdback, world->server.listen};
  struct hbt_command two = {holdback, address};
  free(hbt_command_expect(&one, 0, NULL, "ping", NULL));
  free(hbt_command_expect(&two, 0, NULL, "ping", NULL));
}

/* An address that others can reach is served, with a warning. */
static void test_warning_beyond_loopback(void **state) {
  struct world *world = *state;
  (void)snprintf(world->server.listen, sizeof world->server.listen, "0.0.0.0:0");
  assert_true(hbt_server_start(&world->server));
  char line[512];
  assert_true(
      hbt_child_wait_line(world->server.child, HBT_ERR, "level=warn", RUN_MS, line, sizeof line));
  assert_non_null(strstr(line, "0.0.0.0"));
}

/* ---- life */

/* Start, ready with the time that recovery took, drain, stopped: a line each, `stopped` the last.
 */
static void test_sigterm(void **state) {
  struct world *world = *state;
  char value[64];
  assert_true(hbt_server_start(&world->server));
  assert_true(hbt_log_value(world->server.ready, "recovery_ms", value, sizeof value));
  int code = -1;
  hbt_child_signal(world->server.child, SIGTERM);
  assert_true(hbt_child_wait(world->server.child, RUN_MS, &code));
  assert_int_equal(code, 0);
  char *log = hbt_child_text(world->server.child, HBT_ERR, NULL);
  assert_non_null(strstr(log, "event=start"));
  assert_non_null(strstr(log, "event=drain"));
  assert_non_null(strstr(last_line(log), "event=stopped"));
  free(log);
}

/* ---- a drain that can't end: a subscriber that does not read, with much on its way to it */

enum { MUCH_LINES = 20000, MUCH_PAYLOAD = 1000, MUCH_LINE_SIZE = MUCH_PAYLOAD + 64 };

static char *much_input(void) {
  char payload[MUCH_PAYLOAD + 1];
  char *input = malloc((size_t)MUCH_LINES * MUCH_LINE_SIZE);
  size_t used = 0;
  memset(payload, 'p', MUCH_PAYLOAD);
  payload[MUCH_PAYLOAD] = 0;
  for (int i = 2; i < MUCH_LINES; i++) {
    used += (size_t)snprintf(input + used, MUCH_LINE_SIZE, "{\"sequence\":%d,\"payload\":\"%s\"}\n",
                             i, payload);
  }
  return input;
}

/* A `holdback tail` that is stopped once it has its first event; then 20 MB are sent. */
static struct hbt_child *start_stuck_reader(const struct hbt_command *command) {
  char line[128];
  const char *const arguments[] = {holdback, "--server", command->server, "tail", "--from",
                                   "start",  NULL};
  struct hbt_child *reader = hbt_child_start(arguments, NULL, 0);
  free(hbt_command_expect(command, 0, "{\"sequence\":1}\n", "send", "-", NULL));
  assert_true(hbt_child_wait_line(reader, HBT_OUT, "\"sequence\":1", RUN_MS, line, sizeof line));
  hbt_child_signal(reader, SIGSTOP);
  char *input = much_input();
  free(hbt_command_expect(command, 0, input, "send", "-", NULL));
  free(input);
  return reader;
}

static void expect_abort(struct world *world, const char *cause) {
  int code = -1;
  assert_true(hbt_child_wait(world->server.child, RUN_MS, &code));
  assert_int_equal(code, 1);
  char *log = hbt_child_text(world->server.child, HBT_ERR, NULL);
  const char *line = last_line(log);
  assert_non_null(strstr(line, "event=aborted"));
  assert_non_null(strstr(line, cause));
  free(log);
}

/* After --drain-timeout what is left is cut off, and the exit code says so; nothing is lost. */
static void test_drain_deadline(void **state) {
  struct world *world = *state;
  struct hbt_command command = {holdback, world->server.listen};
  world->server.flags[0] = "--drain-timeout=300ms";
  assert_true(hbt_server_start(&world->server));
  struct hbt_child *reader = start_stuck_reader(&command);
  hbt_child_signal(world->server.child, SIGTERM);
  expect_abort(world, "drain_timeout");
  hbt_child_destroy(reader);
  hbt_server_kill(&world->server);
  assert_true(hbt_server_start(&world->server));
  char *out =
      hbt_command_expect(&command, 0, NULL, "tail", "--from", "19999", "--count", "1", NULL);
  assert_non_null(strstr(out, "\"sequence\":19999"));
  free(out);
}

/* A second SIGTERM does not wait for the deadline. */
static void test_second_sigterm(void **state) {
  struct world *world = *state;
  char line[256];
  struct hbt_command command = {holdback, world->server.listen};
  world->server.flags[0] = "--drain-timeout=10m";
  assert_true(hbt_server_start(&world->server));
  struct hbt_child *reader = start_stuck_reader(&command);
  hbt_child_signal(world->server.child, SIGTERM);
  assert_true(
      hbt_child_wait_line(world->server.child, HBT_ERR, "event=drain", RUN_MS, line, sizeof line));
  hbt_child_signal(world->server.child, SIGTERM);
  expect_abort(world, "second_signal");
  hbt_child_destroy(reader);
}

/* A kept store: what was stored before a clean stop is there after it. */
static void test_restart_keeps(void **state) {
  struct world *world = *state;
  struct hbt_command command = {holdback, world->server.listen};
  assert_true(hbt_server_start(&world->server));
  free(hbt_command_expect(&command, 0, "{\"sequence\":1,\"key\":\"k\",\"payload\":\"p\"}\n", "send",
                          "-", NULL));
  assert_int_equal(hbt_server_stop(&world->server), 0);
  assert_true(hbt_server_start(&world->server));
  char *out =
      hbt_command_expect(&command, 0, NULL, "tail", "--from", "start", "--until-caught-up", NULL);
  assert_non_null(strstr(out, "\"sequence\":1"));
  free(out);
}

/* Never a line per stored event. */
static void test_log_is_quiet(void **state) {
  struct world *world = *state;
  struct hbt_command command = {holdback, world->server.listen};
  char input[64 * 200] = "";
  size_t used = 0;
  for (int i = 1; i <= 200; i++) {
    used += (size_t)snprintf(input + used, sizeof input - used,
                             "{\"sequence\":%d,\"key\":\"k\",\"payload\":\"secret\"}\n", i);
  }
  world->server.flags[0] = "--log-level";
  world->server.flags[1] = "debug";
  assert_true(hbt_server_start(&world->server));
  free(hbt_command_expect(&command, 0, input, "send", "-", NULL));
  assert_int_equal(kill(hbt_child_pid(world->server.child), 0), 0);
  char *log = hbt_child_text(world->server.child, HBT_ERR, NULL);
  size_t lines = 0;
  for (const char *at = log; (at = strchr(at, '\n')) != NULL; at++) lines++;
  assert_true(lines < 100);
  assert_null(strstr(log, "secret"));
  free(log);
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  holdbackd = argv[1];
  holdback = argv[2];
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      T(test_usage),
      T(test_configuration_mistake),
      T(test_help_and_version),
      T(test_print_config_is_a_config),
      T(test_folder_not_writable),
      T(test_folder_locked),
      T(test_folder_not_ours),
      T(test_format),
      T(test_damaged),
      T(test_port),
      T(test_unix_socket),
      T(test_two_addresses),
      T(test_warning_beyond_loopback),
      T(test_sigterm),
      T(test_drain_deadline),
      T(test_second_sigterm),
      T(test_restart_keeps),
      T(test_log_is_quiet),
  };
#undef T
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
