/* The configuration of holdbackd: from flags, a file and defaults, in this order of precedence. */
#ifndef HB_SERVER_CONFIG_H
#define HB_SERVER_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "base/limits.h"
#include "base/log.h"

/* inih's own limit is 200 with its line end; a longer line would be read as two. */
enum { HB_CONFIG_LINE_MAX = 190 };

/* Immutable once loaded. */
struct hb_config {
  char *data_dir;      /* owned; NULL: not set */
  char *processor_dir; /* owned; NULL: none */
  char **listen;       /* owned, and each of them; at least one once loaded */
  size_t listen_count;
  enum hb_log_level log_level;
  uint64_t drain_timeout_ms;
  struct hb_limits limits;
};

struct hb_config hb_config_default(void);
void hb_config_done(struct hb_config *config);

/* One setting by its flag's name ("gaps-max"). HB_INVALID: name unknown, value not fitting. */
HB_MUST_CHECK enum hb_code hb_config_set(struct hb_config *config, const char *name,
                                         const char *value, struct hb_err *err);
/* Every setting of an INI text; `file` stands in messages. A `listen` in it replaces those that
 * `config` has. HB_INVALID with file, line and what is wrong. */
HB_MUST_CHECK enum hb_code hb_config_read(struct hb_config *config, const char *file,
                                          const char *text, struct hb_err *err);
HB_MUST_CHECK enum hb_code hb_config_read_file(struct hb_config *config, const char *file,
                                               struct hb_err *err);
/* As a file that hb_config_read_file reads back to the same; it refuses one with a path that is
 * longer than a line may be. */
void hb_config_print(const struct hb_config *config, FILE *out);

/* "10s", "500ms", "2m", "10" (seconds) -> ms. */
HB_MUST_CHECK enum hb_code hb_config_parse_duration(const char *name, const char *text,
                                                    uint64_t *out_ms, struct hb_err *err);
/* Forget the addresses: flags replace those of the file. */
void hb_config_clear_listen(struct hb_config *config);

#endif
