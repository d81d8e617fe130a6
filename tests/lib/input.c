/* Decides how a line of an example file becomes an event. */
#include "tests/lib/input.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

static char *payload_text(const json_t *payload) {
  if (json_is_string(payload)) return hb_strdup(json_string_value(payload));
  return json_dumps(payload, JSON_COMPACT | JSON_ENCODE_ANY);
}

static bool add_line(struct hbt_input *input, const char *line) {
  json_t *root = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
  const json_t *sequence = json_object_get(root, "sequence");
  const json_t *key = json_object_get(root, "key");
  const json_t *payload = json_object_get(root, "payload");
  const char *event_time = json_string_value(json_object_get(root, "event_time"));
  bool good = json_is_integer(sequence) && json_is_string(key) && payload;
  if (good) {
    hb_reserve((void **)&input->events, &input->cap, input->count + 1, sizeof *input->events);
    input->events[input->count++] = (struct hbt_event){
        .sequence = json_integer_value(sequence),
        .key = hb_strdup(json_string_value(key)),
        .payload = payload_text(payload),
        .event_time = event_time ? hb_strdup(event_time) : NULL,
    };
  }
  json_decref(root);
  return good;
}

bool hbt_input_load(struct hbt_input *input, const char *path) {
  *input = (struct hbt_input){0};
  FILE *file = fopen(path, "re");
  if (!file) {
    (void)fprintf(stderr, "%s: %s\n", path, strerror(errno));
    return false;
  }
  char *line = NULL;
  size_t cap = 0;
  size_t number = 0;
  bool good = true;
  while (good && getline(&line, &cap, file) > 0) {
    number++;
    good = add_line(input, line);
  }
  if (!good) (void)fprintf(stderr, "%s:%zu: not an event\n", path, number);
  free(line);
  (void)fclose(file); /* only read */
  if (!good) hbt_input_done(input);
  return good;
}

void hbt_input_done(struct hbt_input *input) {
  for (size_t i = 0; i < input->count; i++) {
    free(input->events[i].key);
    free(input->events[i].payload);
    free(input->events[i].event_time);
  }
  free(input->events);
  *input = (struct hbt_input){0};
}

size_t hbt_input_waiting(const struct hbt_input *input) {
  size_t waiting = 0;
  int64_t lowest_later = INT64_MAX;
  for (size_t i = input->count; i-- > 0;) {
    int64_t sequence = input->events[i].sequence;
    if (sequence > lowest_later) waiting++;
    if (sequence < lowest_later) lowest_later = sequence;
  }
  return waiting;
}
