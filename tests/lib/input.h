/* A file of JSON lines as events: the facts of examples/ in the order in which they happened. */
#ifndef TESTS_LIB_INPUT_H
#define TESTS_LIB_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hbt_event {
  int64_t sequence;
  char *key;        /* owned */
  char *payload;    /* owned: a JSON string's text, or the compact dump of another value */
  char *event_time; /* owned; NULL where the line has none */
};

struct hbt_input {
  struct hbt_event *events; /* owned, in the file's order */
  size_t count;
  size_t cap;
};

/* False, with a message on stderr that names file and line, where the file can't be read. */
bool hbt_input_load(struct hbt_input *input, const char *path);
void hbt_input_done(struct hbt_input *input);
/* How many events come before one with a lower sequence: those that have to wait. */
size_t hbt_input_waiting(const struct hbt_input *input);

#endif
