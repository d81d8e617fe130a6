/* Decides how flags are written. They are made from the tables of settings and limits, so a new
 * row there is a flag, a configuration key and a line of --help here. */
#include "server/options.h"

#include <argp.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/version.h"
#include "server/config_table.h"

#define CONFIG_ROW(id, name, argument, help) {name, argument, help},
static const struct {
  const char *name;
  const char *argument;
  const char *help;
} settings[] = {HB_CONFIG_TABLE(CONFIG_ROW)};
#undef CONFIG_ROW

enum { SETTINGS = sizeof settings / sizeof settings[0] };
enum { KEY_CONFIG = 'c', KEY_PRINT = 0x100, KEY_VERIFY, KEY_JSON, KEY_FIRST = 0x200 };

static const char doc[] =
    "The Holdback server: takes events in any order, keeps them durable, gives them out in order."
    "\v"
    "Examples:\n"
    "  holdbackd --data-dir=/var/lib/holdback\n"
    "  holdbackd --data-dir=/tmp/store --listen=127.0.0.1:0 --listen=unix:/tmp/store.sock\n"
    "  holdbackd --data-dir=/tmp/store --held-bytes-max=16GiB --print-config > holdback.ini\n"
    "  holdbackd --config=holdback.ini\n"
    "  holdbackd --data-dir=/var/lib/holdback --verify\n"
    "\n"
    "Numbers may be written as 65536, 64KiB, 4GiB or 2^62. A flag overrides the configuration "
    "file, the file overrides the defaults; its keys are the flags' names. SIGTERM and SIGINT "
    "drain and stop; a second one ends at once.\n"
    "\n"
    "--verify reads everything that a closed store holds and changes nothing in it. Each finding "
    "is a "
    "line on standard output: stream, family of rows, positions, what is wrong; the last line says "
    "what was looked at. With --json they are objects. (holdback verify asks a running server.)\n"
    "\n"
    "Exit status:\n"
    "  0   stopped in good order; --verify: the store is sound\n"
    "  1   stopped by a second signal or after --drain-timeout\n"
    "  64  a flag or the configuration is wrong\n"
    "  65  the store is damaged; --verify: there are findings\n"
    "  69  an address is taken\n"
    "  73  the folder can't be written\n"
    "  74  a write or sync failed: nothing after it was acknowledged\n"
    "  75  another process has the store\n"
    "  76  the store's format is newer, or the folder is no store\n";

/* libc's argp looks for this name in the program; the build hides names unless told. */
__attribute__((visibility("default"))) const char *argp_program_version =
    "holdbackd " HB_VERSION_TEXT;

/* What was given, in order; applied when all is known, for the file comes first. */
struct given {
  const char *name;
  const char *value;
};

struct parsing {
  struct argp_option *options;
  const char *config_file;
  struct hb_options_wish wish;
  struct given *given;
  size_t count;
};

static char *limit_flag(const struct hb_limit_row *row) {
  char *name = hb_strdup(row->name);
  for (char *at = name; *at; at++) *at = *at == '_' ? '-' : *at;
  return name;
}

static void print_help(FILE *out, const struct hb_limit_row *row) {
  (void)fprintf(out, "%s (%s; default %" PRIu64 ", from %" PRIu64 " to %" PRIu64 "%s)", row->help,
                row->unit, row->value, row->min, row->max,
                row->kind == HB_LIMIT_STREAM ? "; for streams that do not set it" : "");
}

static char *limit_help(const struct hb_limit_row *row) {
  char *help = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&help, &size);
  HB_ASSERT(out);
  print_help(out, row);
  HB_ASSERT(fclose(out) == 0);
  return help;
}

/* Settings, then limits; ends with an empty option. Lives until the process ends: argp keeps it. */
static struct argp_option *make_options(void) {
  size_t rows_count;
  const struct hb_limit_row *rows = hb_limits_rows(&rows_count);
  struct argp_option *options = hb_calloc(SETTINGS + rows_count + 8, sizeof *options);
  struct argp_option *at = options;
  int key = KEY_FIRST;
  for (size_t i = 0; i < SETTINGS; i++) {
    *at++ = (struct argp_option){.name = settings[i].name,
                                 .key = key++,
                                 .arg = settings[i].argument,
                                 .doc = settings[i].help,
                                 .group = 1};
  }
  *at++ = (struct argp_option){.name = "config",
                               .key = KEY_CONFIG,
                               .arg = "FILE",
                               .doc = "read settings from an INI file",
                               .group = 1};
  *at++ = (struct argp_option){.name = "print-config",
                               .key = KEY_PRINT,
                               .doc = "print the settings in effect as such a file, and exit",
                               .group = 1};
  *at++ = (struct argp_option){.name = "verify",
                               .key = KEY_VERIFY,
                               .doc =
                                   "look at the whole store, which no server may have open, say "
                                   "what is wrong, and exit",
                               .group = 1};
  *at++ = (struct argp_option){.name = "json",
                               .key = KEY_JSON,
                               .doc = "with --verify: findings as JSON, one object a line",
                               .group = 1};
  *at++ = (struct argp_option){.doc = "Limits:", .group = 2};
  for (size_t i = 0; i < rows_count; i++) {
    if (rows[i].kind == HB_LIMIT_FIXED) continue;
    *at++ = (struct argp_option){.name = limit_flag(&rows[i]),
                                 .key = key++,
                                 .arg = "N",
                                 .doc = limit_help(&rows[i]),
                                 .group = 2};
  }
  return options;
}

static void free_options(struct argp_option *options) {
  for (struct argp_option *at = options; at->name || at->doc; at++) {
    if (at->group != 2 || !at->name) continue;
    free((void *)(uintptr_t)at->name);
    free((void *)(uintptr_t)at->doc);
  }
  free(options);
}

static error_t take(int key, char *argument, struct argp_state *state) {
  struct parsing *parsing = state->input;
  if (key == KEY_CONFIG) {
    parsing->config_file = argument;
  } else if (key == KEY_PRINT) {
    parsing->wish.print = true;
  } else if (key == KEY_VERIFY) {
    parsing->wish.verify = true;
  } else if (key == KEY_JSON) {
    parsing->wish.json = true;
  } else if (key >= KEY_FIRST && key < 0x1000) {
    for (const struct argp_option *at = parsing->options; at->name || at->doc; at++) {
      if (at->key != key) continue;
      parsing->given[parsing->count++] = (struct given){.name = at->name, .value = argument};
    }
  } else if (key == ARGP_KEY_ARG) {
    argp_error(state, "'%s' is not a flag; holdbackd takes nothing else", argument);
  } else {
    return ARGP_ERR_UNKNOWN;
  }
  return 0;
}

static enum hb_code apply(const struct parsing *parsing, struct hb_config *config,
                          struct hb_err *err) {
  enum hb_code code = HB_OK;
  if (parsing->config_file) code = hb_config_read_file(config, parsing->config_file, err);
  bool listen_seen = false;
  for (size_t i = 0; !code && i < parsing->count; i++) {
    const struct given *given = &parsing->given[i];
    if (strcmp(given->name, "listen") == 0 && !listen_seen) {
      hb_config_clear_listen(config);
      listen_seen = true;
    }
    code = hb_config_set(config, given->name, given->value, err);
  }
  return code;
}

enum hb_code hb_options_parse(int argc, char **argv, struct hb_config *out_config,
                              struct hb_options_wish *out_wish, struct hb_err *err) {
  struct parsing parsing = {.options = make_options(),
                            .given = hb_calloc((size_t)argc + 1, sizeof(struct given))};
  struct argp argp = {.options = parsing.options, .parser = take, .doc = doc};
  error_t failed = argp_parse(&argp, argc, argv, 0, NULL, &parsing);
  struct hb_config config = hb_config_default();
  enum hb_code code = failed
                          ? hb_err_set(err, HB_INVALID, "FLAGS_INVALID", "the flags can't be read")
                          : apply(&parsing, &config, err);
  *out_wish = parsing.wish;
  free(parsing.given);
  free_options(parsing.options);
  if (code) {
    hb_config_done(&config);
  } else {
    *out_config = config;
  }
  return code;
}
