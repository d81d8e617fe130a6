/* The options that a stream's settings have in common: of add and set. */
#ifndef HB_CLIENT_CMD_STREAM_OPTIONS_H
#define HB_CLIENT_CMD_STREAM_OPTIONS_H

#include "client/cmd/command.h"

struct stream_settings {
  struct common common; /* first */
  struct holdback_stream_config config;
  int ack;    /* 0 not given, 1 durable, 2 async */
  bool given; /* any setting */
};

/* An argp child whose input is a struct stream_settings; takes the common options too. */
extern const struct argp_child stream_settings_children[];
/* An argp child-less parser's part: the one NAME; call for ARGP_KEY_ARG and ARGP_KEY_END. */
error_t stream_parse_name(int key, char *arg, struct argp_state *state, const char **name);
/* Print the settings of the stream as JSON, where --json was given. An exit code. */
int stream_print_info(struct holdback_client *client, const char *name, bool json);

#endif
