/* One event as one line of JSON: what send reads is what tail prints.
 *
 *   {"sequence":1,"key":"a","event_time":"2001-01-01T00:00:00Z",
 *    "headers":[{"name":"n","value":"v"}],"payload":"..."}
 *
 * and, where they are true, "initial" and "last" (streams in mode PER_KEY).
 * key, payload and a header's value may be "..._base64" instead, for bytes that are not UTF-8.
 * Reading also takes a payload of any other JSON type (its compact dump is the payload), headers
 * as an object, and a "state" (which key prints for held events; it is ignored). */
#ifndef HB_CLIENT_CMD_EVENT_JSON_H
#define HB_CLIENT_CMD_EVENT_JSON_H

#include <jansson.h>

#include "base/slice.h"
#include "client/holdback.h"

/* What one line was read into; reused from line to line. Zeroed = empty. */
struct event_line {
  json_t *root;        /* owned; strings of the event lie in it */
  struct hb_buf bytes; /* decoded base64 and dumps; strings of the event lie in it, too */
  struct holdback_header *headers; /* owned */
  size_t headers_cap;
};
void event_line_done(struct event_line *line);

/* `out` lives until the next call with the same `line`. False: `wrong` says what is wrong. */
bool event_line_read(struct event_line *line, struct hb_slice text, struct holdback_event *out,
                     char *wrong, size_t wrong_size);

/* Append the line, with its line feed. `state` NULL, or the value of the member "state". */
void event_line_write(struct hb_buf *out, const struct holdback_event *event, const char *state);

/* {"position":0,"key":"a","payload":"1","cause":17,"kind":"event"} */
void result_line_write(struct hb_buf *out, const struct holdback_processor_result *result);

/* {"position":0,"key":"a","last_processed":17,"processed":3,...}; `told`: by a subscription. */
void key_status_line_write(struct hb_buf *out, const struct holdback_key_status *status, bool told);

/* Append `text` (UTF-8) as a JSON string. */
void json_write_string(struct hb_buf *out, struct hb_slice text);
/* Append "name":"..." or, where the bytes are not UTF-8, "name_base64":"...". */
void json_write_bytes(struct hb_buf *out, const char *name, struct hb_slice bytes);
/* Append the compact dump of any value: no spaces, members in their order, reals with as many
 * digits as they need. */
void json_write_compact(struct hb_buf *out, const json_t *value);

#endif
