/* The configuration: values, files, flags, precedence. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/config.h"
#include "server/options.h"

static const struct {
  const char *name;
  const char *value;
  const char *reason; /* NULL: good */
} settings[] = {
    {"data-dir", "/tmp/x", NULL},
    {"data-dir", "", "FOLDER_MISSING"},
    {"data-dir", "/tmp/a b;c", NULL},
    {"data-dir", "/tmp/a ;b", "TEXT_INVALID"}, /* a file would cut it */
    {"data-dir", ";a", "TEXT_INVALID"},
    {"data-dir", " /tmp/a", "TEXT_INVALID"},
    {"data-dir", "/tmp/a ", "TEXT_INVALID"},
    {"data-dir", "/tmp/a\nb", "TEXT_INVALID"},
    {"listen", "unix:/tmp/a ;b", "TEXT_INVALID"},
    {"processor-dir", "/tmp/x", NULL},
    {"processor-dir", "", "FOLDER_MISSING"},
    {"listen", "127.0.0.1:0", NULL},
    {"listen", "127.0.0.1", "ADDRESS_INVALID"},
    {"log-level", "debug", NULL},
    {"log-level", "loud", "LOG_LEVEL_UNKNOWN"},
    {"drain-timeout", "500ms", NULL},
    {"drain-timeout", "2m", NULL},
    {"drain-timeout", "0", NULL},
    {"drain-timeout", "10 s", "NOT_A_TIME"},
    {"drain-timeout", "-1", "NOT_A_TIME"},
    {"drain-timeout", "99999999999999999999", "NOT_A_TIME"},
    {"drain-timeout", "2000m", "NOT_A_TIME"},
    {"held-bytes-max", "8GiB", NULL},
    {"held-bytes-max", "1", "LIMIT_OUT_OF_BOUNDS"},
    {"held-bytes-max", "much", "NOT_A_NUMBER"},
    {"held_bytes_max", "8GiB", "SETTING_UNKNOWN"},
    {"key-bytes-max", "65536", "SETTING_FIXED"},
    {"port", "1", "SETTING_UNKNOWN"},
    {"", "1", "SETTING_UNKNOWN"},
};

/* Each setting takes what fits and says why it takes nothing else. */
static void settings_are_checked(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
    struct hb_config config = hb_config_default();
    struct hb_err err = {.reason = ""};
    enum hb_code code = hb_config_set(&config, settings[i].name, settings[i].value, &err);
    if ((code == HB_OK) != !settings[i].reason ||
        (code && strcmp(err.reason, settings[i].reason) != 0)) {
      fail_msg("%s = '%s': %s", settings[i].name, settings[i].value, err.message);
    }
    hb_config_done(&config);
  }
}

/* The longest address that a printed configuration can hold, and one byte more. */
static void a_long_address_fits_a_line(void **state) {
  (void)state;
  char address[300];
  struct hb_err err = {.reason = ""};
  struct hb_config config = hb_config_default();
  memset(address, 'h', sizeof address);
  size_t max = HB_CONFIG_LINE_MAX - strlen("listen=");
  snprintf(address + max - 2, 4, ":80");
  assert_int_equal(hb_config_set(&config, "listen", address, &err), HB_INVALID);
  assert_string_equal(err.message, "listen has 184 bytes, must have at most 183");
  snprintf(address + max - 3, 4, ":80");
  assert_int_equal(hb_config_set(&config, "listen", address, &err), HB_OK);
  hb_config_done(&config);
}

/* A time is in milliseconds whatever its unit; a number alone means seconds. */
static void times_have_units(void **state) {
  (void)state;
  uint64_t ms = 0;
  assert_int_equal(hb_config_parse_duration("t", "3", &ms, NULL), HB_OK);
  assert_int_equal(ms, 3000);
  assert_int_equal(hb_config_parse_duration("t", "20ms", &ms, NULL), HB_OK);
  assert_int_equal(ms, 20);
  assert_int_equal(hb_config_parse_duration("t", "2m", &ms, NULL), HB_OK);
  assert_int_equal(ms, 120000);
}

static const struct {
  const char *text;
  const char *message; /* NULL: good */
} files[] = {
    {"", NULL},
    {"; a comment\n# another\n\n[server]\nlog-level = warn ; why\n[limits]\ngaps-max = 5\n", NULL},
    {"gaps-max = 5\n", NULL},
    {"[server]\nlisten = unix:/tmp/a\nlisten = [::1]:4653\n", NULL},
    {"[server]\nport = 1\n", "f.ini:2: 'port' is not a setting"},
    {"\n[storage]\nx = 1\n",
     "f.ini:3: section [storage] is not known, only [server] and [limits] are"},
    {"gaps-max = 0\n", "f.ini:1: gaps_max is 0, must be from 1 to 10000000 gaps"},
    {"\n\ngaps-max\n", "f.ini:3: not a section, a comment or key = value"},
    {"[server\n", "f.ini:1: not a section, a comment or key = value"},
    {"gaps-max = 5\nport = 1\ngaps-max = 0\n", "f.ini:2: 'port' is not a setting"},
};

/* A mistake in a file is told with file and line, the first one where there are several. */
static void files_are_checked(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
    struct hb_config config = hb_config_default();
    struct hb_err err = {.message = ""};
    enum hb_code code = hb_config_read(&config, "f.ini", files[i].text, &err);
    assert_int_equal(code, files[i].message ? HB_INVALID : HB_OK);
    if (code) assert_string_equal(err.message, files[i].message);
    hb_config_done(&config);
  }
}

/* A line that the library would cut is refused. */
static void long_lines_are_refused(void **state) {
  (void)state;
  char text[400] = "data-dir = /";
  size_t size = strlen(text);
  memset(text + size, 'x', 300);
  struct hb_config config = hb_config_default();
  struct hb_err err;
  assert_int_equal(hb_config_read(&config, "f.ini", text, &err), HB_INVALID);
  assert_string_equal(err.message, "f.ini:1: 312 bytes, at most 190");
  hb_config_done(&config);
}

static void parse(struct hb_config *config, int argc, const char **argv) {
  struct hb_err err = {.message = ""};
  struct hb_options_wish wish;
  if (hb_options_parse(argc, (char **)(uintptr_t)argv, config, &wish, &err)) {
    fail_msg("%s", err.message);
  }
}

/* Flags over file over defaults, wherever --config stands; addresses replace, never add up. */
static void flags_win_over_the_file(void **state) {
  (void)state;
  char path[] = "/tmp/config_test.XXXXXX";
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  static const char text[] =
      "listen = 127.0.0.1:1\nlisten = 127.0.0.1:2\ngaps-max = 7\nstreams-max = 8\n";
  assert_int_equal(write(fd, text, sizeof text - 1), sizeof text - 1);
  close(fd);
  const char *argv[] = {"holdbackd", "--gaps-max=9", "--config", path, NULL};
  struct hb_config config;
  parse(&config, 4, argv);
  assert_int_equal(config.limits.gaps_max, 9);
  assert_int_equal(config.limits.streams_max, 8);
  assert_int_equal(config.listen_count, 2);
  assert_string_equal(config.listen[1], "127.0.0.1:2");
  hb_config_done(&config);
  argv[1] = "--listen=unix:/tmp/a";
  parse(&config, 4, argv);
  assert_int_equal(config.listen_count, 1);
  assert_string_equal(config.listen[0], "unix:/tmp/a");
  assert_int_equal(config.limits.gaps_max, 7);
  hb_config_done(&config);
  (void)unlink(path);
}

static char *print(const struct hb_config *config) {
  char *text = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&text, &size);
  hb_config_print(config, out);
  (void)fclose(out);
  return text;
}

/* What --print-config prints is read back to the same. */
static void print_is_read_back(void **state) {
  (void)state;
  const char *argv[] = {"holdbackd",
                        "--data-dir=/var/lib/x",
                        "--listen=127.0.0.1:5",
                        "--listen=unix:/tmp/s",
                        "--log-level=error",
                        "--drain-timeout=1500ms",
                        "--held-bytes-max=5GiB",
                        "--ahead-max=2^40",
                        NULL};
  struct hb_config config;
  parse(&config, 8, argv);
  char *first = print(&config);
  struct hb_config again = hb_config_default();
  struct hb_err err = {.message = ""};
  if (hb_config_read(&again, "printed", first, &err)) fail_msg("%s", err.message);
  char *second = print(&again);
  assert_string_equal(first, second);
  assert_non_null(strstr(first, "held-bytes-max = 5368709120\n"));
  free(first);
  free(second);
  hb_config_done(&config);
  hb_config_done(&again);
}

/* A file that is not there is named. */
static void missing_file_is_named(void **state) {
  (void)state;
  struct hb_config config = hb_config_default();
  struct hb_err err;
  assert_int_equal(hb_config_read_file(&config, "/nowhere/f.ini", &err), HB_INVALID);
  assert_string_equal(err.message, "config file /nowhere/f.ini: No such file or directory");
  hb_config_done(&config);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(settings_are_checked),   cmocka_unit_test(a_long_address_fits_a_line),
      cmocka_unit_test(times_have_units),       cmocka_unit_test(files_are_checked),
      cmocka_unit_test(long_lines_are_refused), cmocka_unit_test(flags_win_over_the_file),
      cmocka_unit_test(print_is_read_back),     cmocka_unit_test(missing_file_is_named)};
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
