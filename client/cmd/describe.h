/* Streams as JSON and as text: what status and the stream commands print. */
#ifndef HB_CLIENT_CMD_DESCRIBE_H
#define HB_CLIENT_CMD_DESCRIBE_H

#include <jansson.h>
#include <stdio.h>

#include "client/holdback.h"

const char *describe_mode(int mode);                                   /* "GLOBAL", "PER_KEY" */
const char *describe_ack(const struct holdback_stream_config *config); /* "durable", "async" */

/* The caller's. Numbers that a stream does not have yet are null. */
json_t *describe_config_json(const struct holdback_stream_config *config);
json_t *describe_status_json(const struct holdback_stream_config *config,
                             const struct holdback_stream_status *status);

void describe_config(FILE *out, const struct holdback_stream_config *config);
/* What is delivered, what waits, what it waits for. `colour`: with terminal colours. */
void describe_status(FILE *out, const struct holdback_stream_config *config,
                     const struct holdback_stream_status *status, bool colour);

/* "340 ms", "12 s", "3 min", "5 h", "9 d"; "1.5 MiB". */
void describe_age(uint64_t age_ms, char *out, size_t out_size);
void describe_bytes(uint64_t bytes, char *out, size_t out_size);

#endif
