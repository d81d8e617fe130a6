/* Decides how bytes look in JSON. By hand, for tail prints some hundred thousand events a second:
 * what jansson would build first is written at once. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "client/cmd/base64.h"
#include "client/cmd/event_json.h"
#include "client/cmd/rfc3339.h"

static void put_text(struct hb_buf *out, const char *text) {
  hb_buf_append(out, text, strlen(text));
}

/* The escape of a byte that a JSON string can't hold as it is; NULL: it can. */
static const char *escape_of(uint8_t byte, char scratch[8]) {
  switch (byte) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    case '\b':
      return "\\b";
    case '\f':
      return "\\f";
    default:
      if (byte >= 0x20) return NULL;
      (void)snprintf(scratch, 8, "\\u%04x", byte);
      return scratch;
  }
}

void json_write_string(struct hb_buf *out, struct hb_slice text) {
  hb_buf_append_u8(out, '"');
  size_t plain = 0; /* start of what is not written yet */
  for (size_t i = 0; i < text.size; i++) {
    char scratch[8];
    const char *escape = escape_of(text.data[i], scratch);
    if (!escape) continue;
    hb_buf_append(out, text.data + plain, i - plain);
    put_text(out, escape);
    plain = i + 1;
  }
  if (plain < text.size) hb_buf_append(out, text.data + plain, text.size - plain);
  hb_buf_append_u8(out, '"');
}

void json_write_bytes(struct hb_buf *out, const char *name, struct hb_slice bytes) {
  bool text = hb_utf8_valid(bytes);
  hb_buf_append_u8(out, '"');
  put_text(out, name);
  put_text(out, text ? "\":" : "_base64\":\"");
  if (text) {
    json_write_string(out, bytes);
  } else {
    base64_encode(out, bytes);
    hb_buf_append_u8(out, '"');
  }
}

static struct hb_slice slice_of(struct holdback_bytes bytes) {
  return hb_slice_of(bytes.data, bytes.size);
}

static void write_headers(struct hb_buf *out, const struct holdback_event *event) {
  put_text(out, ",\"headers\":[");
  for (size_t i = 0; i < event->headers_count; i++) {
    put_text(out, i ? ",{" : "{");
    json_write_bytes(out, "name", slice_of(event->headers[i].name));
    hb_buf_append_u8(out, ',');
    json_write_bytes(out, "value", slice_of(event->headers[i].value));
    hb_buf_append_u8(out, '}');
  }
  hb_buf_append_u8(out, ']');
}

void event_line_write(struct hb_buf *out, const struct holdback_event *event, const char *state) {
  char number[48];
  int size = snprintf(number, sizeof number, "{\"sequence\":%" PRId64 ",", event->sequence);
  hb_buf_append(out, number, (size_t)size);
  json_write_bytes(out, "key", slice_of(event->key));
  if (event->has_event_time) {
    char time[RFC3339_SIZE];
    rfc3339_format(event->event_time_seconds, event->event_time_nanos, time);
    put_text(out, ",\"event_time\":\"");
    put_text(out, time);
    hb_buf_append_u8(out, '"');
  }
  if (event->headers_count) write_headers(out, event);
  hb_buf_append_u8(out, ',');
  json_write_bytes(out, "payload", slice_of(event->payload));
  if (state) {
    put_text(out, ",\"state\":");
    json_write_string(out, hb_slice_text(state));
  }
  if (event->initial) put_text(out, ",\"initial\":true");
  if (event->last) put_text(out, ",\"last\":true");
  put_text(out, "}\n");
}

void result_line_write(struct hb_buf *out, const struct holdback_processor_result *result) {
  static const char *const kinds[] = {"unknown", "event", "timer", "end"};
  char number[80];
  int size = snprintf(number, sizeof number, "{\"position\":%" PRId64 ",", result->position);
  hb_buf_append(out, number, (size_t)size);
  json_write_bytes(out, "key", slice_of(result->key));
  if (result->has_event_time) {
    char time[RFC3339_SIZE];
    rfc3339_format(result->event_time_seconds, result->event_time_nanos, time);
    put_text(out, ",\"event_time\":\"");
    put_text(out, time);
    hb_buf_append_u8(out, '"');
  }
  hb_buf_append_u8(out, ',');
  json_write_bytes(out, "payload", slice_of(result->payload));
  bool known = result->kind > 0 && result->kind < (int)(sizeof kinds / sizeof *kinds);
  size = snprintf(number, sizeof number, ",\"cause\":%" PRId64 ",\"kind\":\"%s\"}\n",
                  result->cause_position, kinds[known ? result->kind : 0]);
  hb_buf_append(out, number, (size_t)size);
}

/* ---- any value */

/* The fewest digits that are read back as the same double; always with a point or an exponent, so
 * that it stays a real. */
static void write_real(struct hb_buf *out, double value) {
  char text[40];
  for (int digits = 15; digits <= 17; digits++) {
    (void)snprintf(text, sizeof text, "%.*g", digits, value);
    if (strtod(text, NULL) == value) break;
  }
  put_text(out, text);
  if (!strpbrk(text, ".e")) put_text(out, ".0");
}

static void write_object(struct hb_buf *out, const json_t *value) {
  hb_buf_append_u8(out, '{');
  bool first = true;
  json_t *object = (json_t *)(uintptr_t)value; /* jansson's iterators want it so */
  for (void *at = json_object_iter(object); at; at = json_object_iter_next(object, at)) {
    if (!first) hb_buf_append_u8(out, ',');
    first = false;
    json_write_string(out, hb_slice_text(json_object_iter_key(at)));
    hb_buf_append_u8(out, ':');
    json_write_compact(out, json_object_iter_value(at));
  }
  hb_buf_append_u8(out, '}');
}

static void write_array(struct hb_buf *out, const json_t *value) {
  hb_buf_append_u8(out, '[');
  for (size_t i = 0; i < json_array_size(value); i++) {
    if (i) hb_buf_append_u8(out, ',');
    json_write_compact(out, json_array_get(value, i));
  }
  hb_buf_append_u8(out, ']');
}

void json_write_compact(struct hb_buf *out, const json_t *value) {
  char number[24];
  switch (json_typeof(value)) {
    case JSON_OBJECT:
      write_object(out, value);
      return;
    case JSON_ARRAY:
      write_array(out, value);
      return;
    case JSON_STRING:
      json_write_string(out, hb_slice_of(json_string_value(value), json_string_length(value)));
      return;
    case JSON_INTEGER:
      (void)snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
      put_text(out, number);
      return;
    case JSON_REAL:
      write_real(out, json_real_value(value));
      return;
    case JSON_TRUE:
      put_text(out, "true");
      return;
    case JSON_FALSE:
      put_text(out, "false");
      return;
    case JSON_NULL:
      put_text(out, "null");
  }
}

static void put_member(struct hb_buf *out, const char *name, bool has, int64_t number) {
  char text[64];
  int size = has ? snprintf(text, sizeof text, ",\"%s\":%" PRId64, name, number)
                 : snprintf(text, sizeof text, ",\"%s\":null", name);
  hb_buf_append(out, text, (size_t)size);
}

void key_status_line_write(struct hb_buf *out, const struct holdback_key_status *status,
                           bool told) {
  hb_buf_append_u8(out, '{');
  json_write_bytes(out, "key", slice_of(status->key));
  if (told) put_member(out, "position", true, status->position);
  put_member(out, "last_processed", status->has_last_processed, status->last_processed);
  put_member(out, "processed", true, (int64_t)status->processed);
  put_member(out, "failed", true, (int64_t)status->failed);
  put_member(out, "results", true, (int64_t)status->results);
  put_member(out, "duplicates", true, (int64_t)status->duplicates);
  put_member(out, "rejected", true, (int64_t)status->rejected);
  if (status->has_waiting) {
    bool waits = status->waiting > 0;
    put_member(out, "waiting", true, (int64_t)status->waiting);
    put_member(out, "earliest_waiting", waits, status->earliest_waiting);
    put_member(out, "latest_waiting", waits, status->latest_waiting);
    put_member(out, "received", true, (int64_t)status->received);
  }
  if (status->has_blocked_at) put_member(out, "blocked_at", true, status->blocked_at);
  put_text(out,
           status->last_received ? ",\"last_received\":true}\n" : ",\"last_received\":false}\n");
}
