/* Damaged files under a real server: refused at start with one line, or told to the reader that
 * meets them, with stream and position, while everybody else is served; and `holdback verify` and
 * `holdbackd --verify` say so. (storage/damage_test.c has the table of all kinds.) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "tests/lib/command.h"
#include "tests/lib/server.h"

enum { RUN_MS = 30000, EVENTS = 2000, FORMAT_SIZE = 36, FORMAT_CHECKSUM_AT = 28 };
enum { DAMAGED = 65, LOCKED = 75, NOT_OURS = 76, FINDINGS = 3, DATA_LOSS = 64 + 15 };

static const char *holdbackd;
static const char *holdback;

struct world {
  struct hbt_tempdir dir;
  struct hbt_server server;
  struct hbt_command command;
};

static char *lines_of(int from, int to) {
  char *text = malloc((size_t)(to - from) * 400 + 1);
  size_t size = 0;
  for (int i = from; i < to; i++) {
    size +=
        (size_t)sprintf(text + size, "{\"sequence\":%d,\"key\":\"k%d\",\"payload\":\"", i, i % 7);
    size += (size_t)sprintf(text + size, "event %d %0200d", i, 7);
    size += (size_t)sprintf(text + size, "\"}\n");
  }
  return text;
}

static void send(struct world *world, const char *stream, int from, int to) {
  char *lines = lines_of(from, to);
  free(hbt_command_expect(&world->command, 0, lines, "send", "-S", stream, "-", NULL));
  free(lines);
}

/* Two streams, 1 .. 2000 in each, and what waits behind a gap in "bad"; twice started, so that all
 * of it lies in tables and blob files. The server is down. */
static int setup(void **state) {
  struct world *world = calloc(1, sizeof *world);
  hbt_tempdir_init(&world->dir, "damage");
  hbt_server_init(&world->server, holdbackd, &world->dir);
  world->command = (struct hbt_command){holdback, world->server.listen};
  *state = world;
  if (!hbt_server_start(&world->server)) return -1;
  free(hbt_command_expect(&world->command, 0, NULL, "stream", "add", "bad", "--first", "1", NULL));
  free(hbt_command_expect(&world->command, 0, NULL, "stream", "add", "good", "--first", "1", NULL));
  for (int from = 1; from <= EVENTS; from += 200) {
    send(world, "bad", from, from + 200);
    send(world, "good", from, from + 200);
  }
  send(world, "bad", EVENTS + 100, EVENTS + 200);
  for (int i = 0; i < 2; i++) {
    if (hbt_server_stop(&world->server) != 0) return -1;
    if (!hbt_server_start(&world->server)) return -1;
  }
  return hbt_server_stop(&world->server);
}

static int teardown(void **state) {
  struct world *world = *state;
  hbt_server_done(&world->server);
  hbt_tempdir_done(&world->dir);
  free(world);
  return 0;
}

/* ---- files */

static void path_of(const struct world *world, const char *name, char *out, size_t size) {
  (void)snprintf(out, size, "%s/%s", world->server.data_dir, name);
}

/* The first file in db/ whose name begins or ends so; "" = none. */
static void find_file(const struct world *world, const char *part, char *out, size_t size) {
  char folder[256];
  path_of(world, "db", folder, sizeof folder);
  DIR *open_folder = opendir(folder);
  assert_non_null(open_folder);
  out[0] = '\0';
  for (struct dirent *entry; !out[0] && (entry = readdir(open_folder));) {
    if (strstr(entry->d_name, part)) (void)snprintf(out, size, "db/%.60s", entry->d_name);
  }
  closedir(open_folder);
}

static char *read_all(const char *path, size_t *out_size) {
  FILE *file = fopen(path, "re");
  assert_non_null(file);
  fseek(file, 0, SEEK_END);
  *out_size = (size_t)ftell(file);
  rewind(file);
  char *bytes = malloc(*out_size + 1);
  assert_int_equal(fread(bytes, 1, *out_size, file), *out_size);
  fclose(file);
  return bytes;
}

static void put_byte(const char *path, size_t at, int value) {
  FILE *file = fopen(path, "r+e");
  assert_non_null(file);
  fseek(file, (long)at, SEEK_SET);
  fputc(value, file);
  assert_int_equal(fclose(file), 0);
}

/* A bit of the byte after `text`, wherever in the tables that is. */
static void flip_after(const struct world *world, const char *text) {
  char folder[256];
  path_of(world, "db", folder, sizeof folder);
  DIR *open_folder = opendir(folder);
  assert_non_null(open_folder);
  bool done = false;
  for (struct dirent *entry; !done && (entry = readdir(open_folder));) {
    char path[600];
    if (!strstr(entry->d_name, ".sst")) continue;
    (void)snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    size_t size = 0;
    char *bytes = read_all(path, &size);
    char *found = memmem(bytes, size, text, strlen(text));
    if (found) {
      size_t at = (size_t)(found - bytes) + strlen(text);
      put_byte(path, at, bytes[at] ^ 1);
      done = true;
    }
    free(bytes);
  }
  closedir(open_folder);
  assert_true(done);
}

static int count_files(const struct world *world) {
  char folder[256];
  int count = 0;
  path_of(world, "db", folder, sizeof folder);
  DIR *open_folder = opendir(folder);
  assert_non_null(open_folder);
  for (struct dirent *entry; (entry = readdir(open_folder));) {
    count += strstr(entry->d_name, ".sst") || strstr(entry->d_name, ".blob");
  }
  closedir(open_folder);
  return count;
}

/* ---- what is said */

static struct hbt_run verify_folder(const struct world *world, bool json) {
  const char *arguments[] = {holdbackd,  "--data-dir",           world->server.data_dir,
                             "--verify", json ? "--json" : NULL, NULL};
  return hbt_run(arguments, NULL, 0, RUN_MS);
}

static void expect_verified(const struct world *world, int code, const char *text) {
  struct hbt_run run = verify_folder(world, false);
  if (run.code != code || !strstr(code == DAMAGED && !run.out[0] ? run.err : run.out, text)) {
    fail_msg("--verify: code %d, said: %s%s", run.code, run.out, run.err);
  }
  hbt_run_done(&run);
}

/* The server ends with `code` and one line that has `text`; tables and blob files are all there. */
static void expect_refused(const struct world *world, int code, const char *text) {
  int files = count_files(world);
  const char *arguments[] = {holdbackd,  "--data-dir",         world->server.data_dir,
                             "--listen", world->server.listen, NULL};
  struct hbt_run run = hbt_run(arguments, NULL, 0, RUN_MS);
  const char *refused = strstr(run.err, "event=refused");
  if (run.code != code || !refused || !strstr(refused, text) ||
      strstr(refused + 1, "event=refused")) {
    fail_msg("code %d, expected %d with '%s': %s", run.code, code, text, run.err);
  }
  hbt_run_done(&run);
  assert_true(count_files(world) >= files);
  run = verify_folder(world, false);
  assert_int_equal(run.code, code);
  hbt_run_done(&run);
}

/* ---- sound */

static json_t *last_object(const char *text) {
  const char *line = text;
  for (const char *at = text; (at = strchr(at, '\n')) && at[1]; at++) line = at + 1;
  json_t *object = json_loads(line, JSON_DISABLE_EOF_CHECK, NULL);
  assert_non_null(object);
  return object;
}

static json_int_t number(const json_t *object, const char *name) {
  return json_integer_value(json_object_get(object, name));
}

/* Sound, and both say the same of what they looked at; a folder that a server has is locked. */
static void a_sound_store(void **state) {
  struct world *world = *state;
  assert_true(hbt_server_start(&world->server));
  char *text = hbt_command_expect(&world->command, 0, NULL, "verify", "--json", NULL);
  json_t *asked = last_object(text);
  free(text);
  struct hbt_run run = verify_folder(world, false);
  assert_int_equal(run.code, LOCKED);
  hbt_run_done(&run);
  free(hbt_command_expect(&world->command, 64 + 5, NULL, "verify", "-S", "nowhere", NULL));
  assert_int_equal(hbt_server_stop(&world->server), 0);
  run = verify_folder(world, true);
  assert_int_equal(run.code, 0);
  json_t *looked = last_object(run.out);
  hbt_run_done(&run);
  static const char *const names[] = {"findings", "streams",     "blocks",       "events",
                                      "bundles",  "held_events", "index_entries"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    assert_int_equal(number(asked, names[i]), number(looked, names[i]));
  }
  assert_int_equal(number(looked, "events"), 2 * EVENTS);
  assert_int_equal(number(looked, "held_events"), 100);
  assert_true(json_is_true(json_object_get(looked, "sound")));
  json_decref(asked);
  json_decref(looked);
}

/* ---- refused */

static void remove_one(const struct world *world, const char *part) {
  char name[80];
  char path[400];
  find_file(world, part, name, sizeof name);
  assert_true(name[0]);
  path_of(world, name, path, sizeof path);
  assert_int_equal(unlink(path), 0);
}

static void a_missing_table(void **state) {
  remove_one(*state, ".sst");
  expect_refused(*state, DAMAGED, "No such file");
}

/* It held what waits: nothing else would have noticed before the gap is filled. A start reads all
 * that waits. */
static void a_missing_blob_file(void **state) {
  struct world *world = *state;
  remove_one(world, ".blob");
  int files = count_files(world);
  const char *arguments[] = {holdbackd,  "--data-dir",         world->server.data_dir,
                             "--listen", world->server.listen, NULL};
  struct hbt_run run = hbt_run(arguments, NULL, 0, RUN_MS);
  assert_int_equal(run.code, DAMAGED);
  assert_non_null(strstr(run.err, ".blob"));
  hbt_run_done(&run);
  assert_true(count_files(world) >= files);
  expect_verified(world, DAMAGED, "stream 'bad' (id 2), held: bundles that can't be read");
}

static void a_missing_manifest(void **state) {
  remove_one(*state, "MANIFEST");
  expect_refused(*state, DAMAGED, "MANIFEST");
}

static void a_current_of_garbage(void **state) {
  struct world *world = *state;
  char path[400];
  path_of(world, "db/CURRENT", path, sizeof path);
  put_byte(path, 3, 'X');
  expect_refused(world, DAMAGED, "restore a backup");
}

static void a_damaged_format(void **state) {
  struct world *world = *state;
  char path[400];
  path_of(world, "FORMAT", path, sizeof path);
  put_byte(path, 20, 0x55);
  expect_refused(world, DAMAGED, "wrong checksum");
}

static void a_lost_format(void **state) {
  struct world *world = *state;
  char path[400];
  path_of(world, "FORMAT", path, sizeof path);
  assert_int_equal(unlink(path), 0);
  expect_refused(world, NOT_OURS, "no FORMAT");
}

static void a_format_of_the_future(void **state) {
  struct world *world = *state;
  char path[400];
  path_of(world, "FORMAT", path, sizeof path);
  size_t size = 0;
  char *bytes = read_all(path, &size);
  assert_int_equal(size, FORMAT_SIZE);
  bytes[8] = 2;
  uint64_t hash = XXH3_64bits(bytes, FORMAT_CHECKSUM_AT);
  for (int i = 0; i < 8; i++) bytes[FORMAT_CHECKSUM_AT + i] = (char)(hash >> (8 * i));
  FILE *file = fopen(path, "we");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, size, file), size);
  assert_int_equal(fclose(file), 0);
  free(bytes);
  expect_refused(world, NOT_OURS, "format 2");
}

/* ---- told */

/* Lines of `out` are the events from, from + 1, ...; returns the one after the last. */
static int check_order(const char *out, int from) {
  for (const char *line = out; *line; line = strchr(line, '\n') + 1) {
    int sequence = 0;
    assert_int_equal(sscanf(line, "{\"sequence\":%d,", &sequence), 1);
    assert_int_equal(sequence, from);
    from++;
  }
  return from;
}

static void expect_whole(struct world *world, const char *stream, const char *from, int first,
                         int end) {
  char *out = hbt_command_expect(&world->command, 0, NULL, "tail", "-S", stream, "--from", from,
                                 "--until-caught-up", NULL);
  assert_int_equal(check_order(out, first), end);
  free(out);
}

/* One flipped bit in the middle of "bad": the reader gets everything before it, in order, then
 * DATA_LOSS with stream and position, and nothing after it; one that starts behind it gets all of
 * that. Appends and the other stream go on. */
static void a_flipped_bit_in_the_log(void **state) {
  struct world *world = *state;
  flip_after(world, "event 1001 ");
  assert_true(hbt_server_start(&world->server));
  struct hbt_run run =
      hbt_command(&world->command, NULL, "tail", "-S", "bad", "--until-caught-up", NULL);
  if (run.code != DATA_LOSS) fail_msg("tail: code %d, %s", run.code, run.err);
  int next = check_order(run.out, 1);
  assert_true(next > 500 && next <= 1001);
  char position[32];
  (void)snprintf(position, sizeof position, "position %d", next);
  if (!strstr(run.err, "stream 'bad'") || !strstr(run.err, position)) fail_msg("%s", run.err);
  hbt_run_done(&run);
  expect_whole(world, "bad", "1600", 1600, EVENTS + 1);
  expect_whole(world, "good", "start", 1, EVENTS + 1);
  send(world, "good", EVENTS + 1, EVENTS + 11);
  send(world, "bad", EVENTS + 1, EVENTS + 11);
  expect_whole(world, "good", "start", 1, EVENTS + 11);
  expect_whole(world, "bad", "1600", 1600, EVENTS + 11);
  char begins[64];
  (void)snprintf(begins, sizeof begins, "stream 'bad' (id 2), log [%d, ", next);
  char *said = hbt_command_expect(&world->command, FINDINGS, NULL, "verify", NULL);
  if (strncmp(said, begins, strlen(begins)) != 0) fail_msg("%s", said);
  assert_non_null(strstr(said, "1 finding: "));
  free(said);
  said = hbt_command_expect(&world->command, FINDINGS, NULL, "verify", "--json", NULL);
  json_t *finding = json_loads(said, JSON_DISABLE_EOF_CHECK, NULL);
  assert_string_equal(json_string_value(json_object_get(finding, "stream")), "bad");
  assert_int_equal(number(finding, "start"), next);
  assert_true(number(finding, "end") > 1001);
  json_decref(finding);
  free(said);
  free(hbt_command_expect(&world->command, 0, NULL, "verify", "-S", "good", NULL));
  assert_int_equal(hbt_server_stop(&world->server), 0);
  expect_verified(world, DAMAGED, begins);
}

int main(int argc, char **argv) {
  if (argc < 3) {
    (void)fprintf(stderr, "usage: %s HOLDBACKD HOLDBACK\n", argv[0]);
    return 2;
  }
  holdbackd = argv[1];
  holdback = argv[2];
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(a_sound_store),      TEST(a_missing_table),        TEST(a_missing_blob_file),
      TEST(a_missing_manifest), TEST(a_current_of_garbage),   TEST(a_damaged_format),
      TEST(a_lost_format),      TEST(a_format_of_the_future), TEST(a_flipped_bit_in_the_log),
  };
#undef TEST
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
