/* Decides which configuration files are accepted: every section and key known, every value
 * fitting, no line that the INI library would cut. A mistake in a file ends the start, it is
 * never skipped. Keys are the flags' names, in [server] or [limits] or before any section. */
#include <errno.h>
#include <ini.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/slice.h"
#include "server/config.h"

enum { FILE_MAX_BYTES = 1 << 20 };

struct reading {
  struct hb_config *config;
  bool listen_seen;
  struct hb_err err; /* of the first line that is wrong */
};

static bool is_known_section(const char *section) {
  return !section[0] || strcmp(section, "server") == 0 || strcmp(section, "limits") == 0;
}

static int take(void *context, const char *section, const char *name, const char *value) {
  struct reading *reading = context;
  if (reading->err.code) return 1; /* the library reads on; the first mistake is told */
  if (!is_known_section(section)) {
    hb_err_set(&reading->err, HB_INVALID, "SECTION_UNKNOWN",
               "section [%.64s] is not known, only [server] and [limits] are", section);
    return 0;
  }
  if (strcmp(name, "listen") == 0 && !reading->listen_seen) {
    hb_config_clear_listen(reading->config);
    reading->listen_seen = true;
  }
  return hb_config_set(reading->config, name, value, &reading->err) == HB_OK;
}

static enum hb_code check_lines(const char *file, const char *text, struct hb_err *err) {
  int line = 1;
  for (const char *at = text; *at; line++) {
    size_t size = strcspn(at, "\n");
    if (size > HB_CONFIG_LINE_MAX) {
      return hb_err_set(err, HB_INVALID, "CONFIG_LINE_TOO_LONG", "%s:%d: %zu bytes, at most %d",
                        file, line, size, HB_CONFIG_LINE_MAX);
    }
    at += size;
    if (*at) at++;
  }
  return HB_OK;
}

enum hb_code hb_config_read(struct hb_config *config, const char *file, const char *text,
                            struct hb_err *err) {
  enum hb_code code = check_lines(file, text, err);
  if (code) return code;
  struct reading reading = {.config = config};
  ini_allow_multiline = false; /* an indented line would silently continue the one before */
  int line = ini_parse_string(text, take, &reading);
  if (line == 0) return HB_OK;
  if (reading.err.code) {
    return hb_err_set(err, HB_INVALID, reading.err.reason, "%s:%d: %s", file, line,
                      reading.err.message);
  }
  return hb_err_set(err, HB_INVALID, "CONFIG_MALFORMED",
                    "%s:%d: not a section, a comment or key = value", file, line);
}

enum hb_code hb_config_read_file(struct hb_config *config, const char *file, struct hb_err *err) {
  FILE *in = fopen(file, "re");
  if (!in) {
    return hb_err_set(err, HB_INVALID, "CONFIG_UNREADABLE", "config file %s: %s", file,
                      strerror(errno));
  }
  char *text = hb_alloc(FILE_MAX_BYTES + 1);
  size_t size = fread(text, 1, FILE_MAX_BYTES + 1, in);
  bool failed = ferror(in) != 0;
  (void)fclose(in); /* was only read */
  enum hb_code code = HB_OK;
  if (failed || size > FILE_MAX_BYTES || memchr(text, '\0', size)) {
    code = hb_err_set(err, HB_INVALID, "CONFIG_UNREADABLE",
                      "config file %s: can't be read as a text of at most %d bytes", file,
                      FILE_MAX_BYTES);
  } else {
    text[size] = '\0';
    code = hb_config_read(config, file, text, err);
  }
  free(text);
  return code;
}
