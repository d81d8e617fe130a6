/* Decides what a setting may be. Names come from config_table.h and base/limits_table.h; where a
 * setting came from (flag, file) is not known here. */
#include "server/config.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "server/config_table.h"
#include "server/rpc/listener.h"

enum { LIMIT_NAME_SIZE = 64 };

static void add_listen(struct hb_config *config, const char *address) {
  config->listen = hb_realloc(config->listen, (config->listen_count + 1) * sizeof *config->listen);
  config->listen[config->listen_count++] = hb_strdup(address);
}

void hb_config_clear_listen(struct hb_config *config) {
  for (size_t i = 0; i < config->listen_count; i++) free(config->listen[i]);
  free(config->listen);
  config->listen = NULL;
  config->listen_count = 0;
}

struct hb_config hb_config_default(void) {
  struct hb_config config = {.log_level = HB_LOG_INFO,
                             .drain_timeout_ms = HB_DEFAULT_DRAIN_MS,
                             .limits = hb_limits_default()};
  add_listen(&config, HB_DEFAULT_LISTEN);
  return config;
}

void hb_config_done(struct hb_config *config) {
  free(config->data_dir);
  free(config->processor_dir);
  hb_config_clear_listen(config);
}

static const struct {
  const char *suffix;
  uint64_t ms;
} units[] = {{"", 1000}, {"ms", 1}, {"s", 1000}, {"m", 60000}};

enum hb_code hb_config_parse_duration(const char *name, const char *text, uint64_t *out_ms,
                                      struct hb_err *err) {
  char *end = NULL;
  uint64_t number = isdigit((unsigned char)text[0]) ? strtoull(text, &end, 10) : 0;
  /* A day is more than any drain needs, and keeps the arithmetic far from overflow. */
  for (size_t i = 0; end && number <= 86400000 && i < sizeof units / sizeof units[0]; i++) {
    if (strcmp(end, units[i].suffix) != 0 || number * units[i].ms > 86400000) continue;
    *out_ms = number * units[i].ms;
    return HB_OK;
  }
  return hb_err_set(err, HB_INVALID, "NOT_A_TIME",
                    "%s is '%s', must be a time such as 500ms, 10s or 2m, at most a day", name,
                    text);
}

static enum hb_code set_log_level(struct hb_config *config, const char *value, struct hb_err *err) {
  int level = hb_log_parse_level(value);
  if (level < 0) {
    return hb_err_set(err, HB_INVALID, "LOG_LEVEL_UNKNOWN",
                      "log-level is '%s', must be error, warn, info or debug", value);
  }
  config->log_level = (enum hb_log_level)level;
  return HB_OK;
}

/* A text that a file would give back as another one is refused from flags too: else the printed
 * configuration would name another folder. */
static bool fits_a_line(const char *text) {
  bool after_blank = true;
  for (const char *at = text; *at; at++) {
    if (iscntrl((unsigned char)*at) || (after_blank && *at == ';')) return false;
    after_blank = *at == ' ';
  }
  return text[0] != ' ' && !after_blank;
}

static enum hb_code check_text(const char *name, const char *text, struct hb_err *err) {
  if (fits_a_line(text)) return HB_OK;
  return hb_err_set(err, HB_INVALID, "TEXT_INVALID",
                    "%s is '%s': a configuration file can't hold control characters, blanks at "
                    "the ends or ';' after a blank",
                    name, text);
}

static enum hb_code set_folder(const char *name, char **folder, const char *value,
                               struct hb_err *err) {
  if (!value[0]) return hb_err_set(err, HB_INVALID, "FOLDER_MISSING", "%s is empty", name);
  enum hb_code code = check_text(name, value, err);
  if (code) return code;
  free(*folder);
  *folder = hb_strdup(value);
  return HB_OK;
}

static enum hb_code set_limit(struct hb_config *config, const char *name, const char *value,
                              struct hb_err *err) {
  char known[LIMIT_NAME_SIZE];
  (void)snprintf(known, sizeof known, "%s", name);
  for (char *at = known; *at; at++) *at = *at == '-' ? '_' : *at == '_' ? '-' : *at;
  const struct hb_limit_row *row = hb_limits_find(known);
  if (!row) return hb_err_set(err, HB_INVALID, "SETTING_UNKNOWN", "'%s' is not a setting", name);
  if (row->kind == HB_LIMIT_FIXED) {
    return hb_err_set(err, HB_INVALID, "SETTING_FIXED", "%s is fixed at %" PRIu64 " %s", name,
                      row->value, row->unit);
  }
  uint64_t number;
  enum hb_code code = hb_limits_parse(value, &number, err);
  if (code) {
    hb_err_wrap(err, "%s", name);
    return code;
  }
  return hb_limits_set(&config->limits, row, number, err);
}

/* Longer ones than any host has: printed, no file could hold them. */
static enum hb_code set_listen(struct hb_config *config, const char *value, struct hb_err *err) {
  size_t max = HB_CONFIG_LINE_MAX - strlen("listen=");
  enum hb_code code = hb_listener_check(value, err);
  if (!code) code = check_text("listen", value, err);
  if (!code && strlen(value) > max) {
    code = hb_err_set(err, HB_INVALID, "ADDRESS_INVALID",
                      "listen has %zu bytes, must have at most %zu", strlen(value), max);
  }
  if (!code) add_listen(config, value);
  return code;
}

enum hb_code hb_config_set(struct hb_config *config, const char *name, const char *value,
                           struct hb_err *err) {
  if (strcmp(name, "data-dir") == 0) return set_folder(name, &config->data_dir, value, err);
  if (strcmp(name, "processor-dir") == 0) {
    return set_folder(name, &config->processor_dir, value, err);
  }
  if (strcmp(name, "log-level") == 0) return set_log_level(config, value, err);
  if (strcmp(name, "drain-timeout") == 0) {
    return hb_config_parse_duration(name, value, &config->drain_timeout_ms, err);
  }
  if (strcmp(name, "listen") == 0) return set_listen(config, value, err);
  return set_limit(config, name, value, err);
}

static void print_limit(const struct hb_config *config, const struct hb_limit_row *row, FILE *out) {
  char name[LIMIT_NAME_SIZE];
  (void)snprintf(name, sizeof name, "%s", row->name);
  for (char *at = name; *at; at++) *at = *at == '_' ? '-' : *at;
  (void)fprintf(out, "%s = %" PRIu64 "\n", name, hb_limits_get(&config->limits, row));
}

/* Without blanks where they would make the line too long: what a file held fits again. */
static void print_text(const char *name, const char *value, FILE *out) {
  bool blanks = strlen(name) + 3 + strlen(value) <= HB_CONFIG_LINE_MAX;
  (void)fprintf(out, blanks ? "%s = %s\n" : "%s=%s\n", name, value);
}

void hb_config_print(const struct hb_config *config, FILE *out) {
  static const char *const levels[] = {"error", "warn", "info", "debug"};
  (void)fprintf(out, "[server]\n");
  if (config->data_dir) {
    print_text("data-dir", config->data_dir, out);
  } else {
    (void)fprintf(out, "; data-dir is not set\n");
  }
  if (config->processor_dir) {
    print_text("processor-dir", config->processor_dir, out);
  } else {
    (void)fprintf(out, "; processor-dir is not set\n");
  }
  for (size_t i = 0; i < config->listen_count; i++) print_text("listen", config->listen[i], out);
  (void)fprintf(out, "log-level = %s\n", levels[config->log_level]);
  (void)fprintf(out, "drain-timeout = %" PRIu64 "ms\n", config->drain_timeout_ms);
  (void)fprintf(out, "\n[limits]\n");
  size_t count;
  const struct hb_limit_row *rows = hb_limits_rows(&count);
  for (size_t i = 0; i < count; i++) {
    if (rows[i].kind != HB_LIMIT_FIXED) print_limit(config, &rows[i], out);
  }
}
