/* Decides which lines are events, and says of the others what is wrong with them. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "client/cmd/base64.h"
#include "client/cmd/event_json.h"
#include "client/cmd/rfc3339.h"

void event_line_done(struct event_line *line) {
  json_decref(line->root);
  hb_buf_done(&line->bytes);
  free(line->headers);
  *line = (struct event_line){0};
}

/* Where the reason goes. */
struct reading {
  struct event_line *line;
  char *wrong;
  size_t wrong_size;
};

static bool fail(struct reading *reading, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static bool fail(struct reading *reading, const char *format, ...) {
  va_list args;
  va_start(args, format);
  (void)vsnprintf(reading->wrong, reading->wrong_size, format, args);
  va_end(args);
  return false;
}

static const char *type_of(const json_t *value) {
  static const char *const names[] = {
      "an object", "an array", "a string", "an integer", "a number with a fraction",
      "true",      "false",    "null"};
  return value ? names[json_typeof(value)] : "missing";
}

/* While strings are taken, line->bytes may move: places in it are kept as offsets until the end. */
struct part {
  const json_t *text; /* its bytes; NULL: in line->bytes */
  size_t offset;
  size_t size;
};

static struct holdback_bytes part_bytes(const struct event_line *line, const struct part *part) {
  if (part->text)
    return (struct holdback_bytes){json_string_value(part->text), json_string_length(part->text)};
  if (part->size == 0) return (struct holdback_bytes){0};
  return (struct holdback_bytes){line->bytes.data + part->offset, part->size};
}

static bool take_base64(struct reading *reading, const char *name, const json_t *value,
                        struct part *out) {
  if (!json_is_string(value))
    return fail(reading, "%s: is %s, expected a string", name, type_of(value));
  struct hb_buf *bytes = &reading->line->bytes;
  out->offset = bytes->size;
  size_t at = 0;
  struct hb_slice text = hb_slice_of(json_string_value(value), json_string_length(value));
  if (!base64_decode(bytes, text, &at))
    return fail(reading, "%s: not base64 at character %zu", name, at + 1);
  out->size = bytes->size - out->offset;
  return true;
}

/* `name` or `name_base64` of `object`; neither = empty. */
static bool take_bytes(struct reading *reading, const json_t *object, const char *name,
                       bool any_type, struct part *out) {
  char coded_name[32];
  (void)snprintf(coded_name, sizeof coded_name, "%s_base64", name);
  const json_t *plain = json_object_get(object, name);
  const json_t *coded = json_object_get(object, coded_name);
  *out = (struct part){0};
  if (plain && coded) return fail(reading, "%s and %s: only one can be given", name, coded_name);
  if (coded) return take_base64(reading, coded_name, coded, out);
  if (!plain) return true;
  if (json_is_string(plain)) {
    out->text = plain;
    return true;
  }
  if (!any_type) return fail(reading, "%s: is %s, expected a string", name, type_of(plain));
  struct hb_buf *bytes = &reading->line->bytes;
  out->offset = bytes->size;
  json_write_compact(bytes, plain);
  out->size = bytes->size - out->offset;
  return true;
}

static bool take_sequence(struct reading *reading, struct holdback_event *out) {
  const json_t *value = json_object_get(reading->line->root, "sequence");
  if (!value) return fail(reading, "sequence: is missing");
  if (!json_is_integer(value))
    return fail(reading, "sequence: is %s, expected an integer", type_of(value));
  out->sequence = json_integer_value(value);
  return true;
}

static bool take_time(struct reading *reading, struct holdback_event *out) {
  const json_t *value = json_object_get(reading->line->root, "event_time");
  if (!value || json_is_null(value)) return true;
  if (!json_is_string(value))
    return fail(reading, "event_time: is %s, expected a string", type_of(value));
  const char *wrong = rfc3339_parse(json_string_value(value), json_string_length(value),
                                    &out->event_time_seconds, &out->event_time_nanos);
  if (wrong) return fail(reading, "event_time: '%.40s': %s", json_string_value(value), wrong);
  out->has_event_time = true;
  return true;
}

static bool take_flag(struct reading *reading, const char *name, bool *out) {
  const json_t *value = json_object_get(reading->line->root, name);
  if (!value) return true;
  if (!json_is_boolean(value))
    return fail(reading, "%s: is %s, expected true or false", name, type_of(value));
  *out = json_is_true(value);
  return true;
}

/* ---- headers */

static bool check_members(struct reading *reading, const json_t *object, const char *where,
                          const char *const *known) {
  json_t *changeable = (json_t *)(uintptr_t)object; /* jansson's iterators want it so */
  for (void *at = json_object_iter(changeable); at; at = json_object_iter_next(changeable, at)) {
    const char *name = json_object_iter_key(at);
    const char *const *row = known;
    while (*row && strcmp(*row, name) != 0) row++;
    if (!*row) return fail(reading, "%s%.40s: no such member", where, name);
  }
  return true;
}

/* Values are kept as parts until all are read; `parts` has room for one per header. */
static bool take_header(struct reading *reading, const json_t *header, size_t index,
                        struct part *name, struct part *value) {
  static const char *const known[] = {"name", "value", "value_base64", NULL};
  char where[40];
  (void)snprintf(where, sizeof where, "headers[%zu].", index);
  if (!json_is_object(header))
    return fail(reading, "headers[%zu]: is %s, expected an object", index, type_of(header));
  if (!check_members(reading, header, where, known)) return false;
  if (!json_object_get(header, "name")) return fail(reading, "%sname: is missing", where);
  char inner[160];
  struct reading inside = {reading->line, inner, sizeof inner};
  if (take_bytes(&inside, header, "name", false, name) &&
      take_bytes(&inside, header, "value", false, value))
    return true;
  return fail(reading, "%s%s", where, inner);
}

static bool take_header_list(struct reading *reading, const json_t *list, struct part *parts) {
  for (size_t i = 0; i < json_array_size(list); i++)
    if (!take_header(reading, json_array_get(list, i), i, &parts[2 * i], &parts[2 * i + 1]))
      return false;
  return true;
}

/* {"name":"value"}: names are jansson's keys, copied to where bytes can be referred to. */
static bool take_header_object(struct reading *reading, const json_t *object, struct part *parts) {
  json_t *changeable = (json_t *)(uintptr_t)object;
  size_t i = 0;
  for (void *at = json_object_iter(changeable); at; at = json_object_iter_next(changeable, at)) {
    const char *name = json_object_iter_key(at);
    const json_t *value = json_object_iter_value(at);
    if (!json_is_string(value))
      return fail(reading, "headers.%.40s: is %s, expected a string", name, type_of(value));
    parts[2 * i] = (struct part){.offset = reading->line->bytes.size, .size = strlen(name)};
    hb_buf_append(&reading->line->bytes, name, strlen(name));
    parts[2 * i + 1] = (struct part){.text = value};
    i++;
  }
  return true;
}

static bool take_headers(struct reading *reading, struct part **out_parts, size_t *out_count) {
  const json_t *value = json_object_get(reading->line->root, "headers");
  *out_parts = NULL;
  *out_count = 0;
  if (!value || json_is_null(value)) return true;
  if (!json_is_array(value) && !json_is_object(value))
    return fail(reading, "headers: is %s, expected an array or an object", type_of(value));
  bool is_list = json_is_array(value);
  *out_count = is_list ? json_array_size(value) : json_object_size(value);
  *out_parts = hb_calloc(*out_count * 2, sizeof **out_parts);
  return is_list ? take_header_list(reading, value, *out_parts)
                 : take_header_object(reading, value, *out_parts);
}

static void set_headers(struct event_line *line, const struct part *parts, size_t count,
                        struct holdback_event *out) {
  if (count == 0) return;
  hb_reserve((void **)&line->headers, &line->headers_cap, count, sizeof *line->headers);
  for (size_t i = 0; i < count; i++)
    line->headers[i] = (struct holdback_header){.name = part_bytes(line, &parts[2 * i]),
                                                .value = part_bytes(line, &parts[2 * i + 1])};
  out->headers = line->headers;
  out->headers_count = count;
}

/* ---- the line */

static bool parse(struct reading *reading, struct hb_slice text) {
  json_error_t error;
  struct event_line *line = reading->line;
  line->root = json_loadb((const char *)text.data, text.size,
                          JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
  if (!line->root) return fail(reading, "not JSON: %s (column %d)", error.text, error.column);
  if (!json_is_object(line->root))
    return fail(reading, "is %s, expected an object", type_of(line->root));
  return true;
}

bool event_line_read(struct event_line *line, struct hb_slice text, struct holdback_event *out,
                     char *wrong, size_t wrong_size) {
  static const char *const known[] = {"sequence",       "key",        "key_base64", "payload",
                                      "payload_base64", "event_time", "headers",    "initial",
                                      "last",           "state",      NULL};
  struct reading reading = {line, wrong, wrong_size};
  json_decref(line->root);
  line->root = NULL;
  hb_buf_clear(&line->bytes);
  struct holdback_event event = {0};
  struct part key;
  struct part payload;
  struct part *headers = NULL;
  size_t headers_count = 0;
  bool good = parse(&reading, text) && check_members(&reading, line->root, "", known) &&
              take_sequence(&reading, &event) && take_time(&reading, &event) &&
              take_flag(&reading, "initial", &event.initial) &&
              take_flag(&reading, "last", &event.last) &&
              take_bytes(&reading, line->root, "key", false, &key) &&
              take_bytes(&reading, line->root, "payload", true, &payload) &&
              take_headers(&reading, &headers, &headers_count);
  if (good) {
    event.key = part_bytes(line, &key);
    event.payload = part_bytes(line, &payload);
    set_headers(line, headers, headers_count, &event);
    *out = event;
  }
  free(headers);
  return good;
}
