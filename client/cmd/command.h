/* The sub-commands, and what they have in common: options, connecting, failing. */
#ifndef HB_CLIENT_CMD_COMMAND_H
#define HB_CLIENT_CMD_COMMAND_H

#include <argp.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "client/holdback.h"

/* Options that every sub-command takes. argv strings are borrowed. */
struct common {
  const char *server; /* NULL = HOLDBACK_SERVER, else the library's default */
  const char *stream;
  bool json;
};

struct command {
  const char *name;
  const char *summary;
  /* `before`: what stood before the sub-command's name. argv[0] is "holdback NAME". Returns the
   * exit code. */
  int (*run)(const struct common *before, int argc, char **argv);
};

extern const struct command command_compact;
extern const struct command command_key;
extern const struct command command_keys;
extern const struct command command_ping;
extern const struct command command_processor;
extern const struct command command_unprocessed;
extern const struct command command_send;
extern const struct command command_status;
extern const struct command command_stream;
extern const struct command command_tail;
extern const struct command command_verify;

extern const struct command processor_add;
extern const struct command processor_info;
extern const struct command processor_ls;
extern const struct command processor_rm;
extern const struct command unprocessed_ls;
extern const struct command unprocessed_retry;
extern const struct command unprocessed_skip;

extern const struct command stream_add;
extern const struct command stream_gaps;
extern const struct command stream_info;
extern const struct command stream_ls;
extern const struct command stream_rm;
extern const struct command stream_seal;
extern const struct command stream_set;

/* argp children; their input is a struct common. The second one adds -S/--stream. */
extern const struct argp_child common_children[];
extern const struct argp_child common_stream_children[];

/* Run one of a table of commands, as main and `holdback stream` do. `argv[0]` is the name so far.
 */
int command_dispatch(const struct command *const *table, const char *doc,
                     const struct common *before, int argc, char **argv);

/* The client, or NULL with the reason on stderr. */
struct holdback_client *command_connect(const struct common *common);
/* The same with a number of batches in flight; 0 = the library's default. */
struct holdback_client *command_connect_with(const struct common *common, size_t in_flight);
/* Say on stderr what went wrong; the exit code for it. */
int command_fail(const struct holdback_error *error);
/* One line on stdout; takes the reference. False: stdout is gone. */
bool command_print_json(json_t *owned);
/* Flush stdout; `code`, or EXIT_OWN with a message where that failed. */
int command_finish(int code);

/* KEY as bytes; `is_base64`: decoded into `decoded`, which the caller frees, else borrowed. False:
 * it is no base64, which was said. `command` is the name in messages. */
bool command_take_key(const char *command, const char *text, bool is_base64, struct hb_buf *decoded,
                      struct holdback_bytes *out);

/* For parsers of options: the value or a usage error. */
int64_t command_parse_sequence(const char *text, const char *what, struct argp_state *state);
uint64_t command_parse_limit(const char *text, const char *what, struct argp_state *state);
/* "30" and "30s" are seconds; "500ms", "5m". */
uint32_t command_parse_duration_ms(const char *text, const char *what, struct argp_state *state);

#endif
