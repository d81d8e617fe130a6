/* The built-in processors. All but `distinct` keep one state per key: how many events the key had
 * (8 bytes, little-endian), and what their kind keeps behind it. */
#include "processing/builtin.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/endian.h"
#include "base/slice.h"
#include "processing/number.h"

enum { ERROR_SIZE = 160, NUMBER_SIZE = 16, SEEN_SIZE = 8, CONCAT_MAX = 1 << 20 };

enum kind { PASSTHROUGH, COUNT, SUM, MIN, MAX, MEAN, LAST, DISTINCT, CONCAT };

struct self {
  enum kind kind;
  uint64_t every; /* a result for the first of so many events */
  bool at_end;    /* one result per key, at the stream's end */
  struct hb_buf separator;
  struct hb_buf value; /* scratch */
};

static const struct hbp_bytes NO_NAME = {NULL, 0};

/* ---- parameters */

static bool is_text(struct hbp_bytes value, const char *text) {
  return value.size == strlen(text) && memcmp(value.data, text, value.size) == 0;
}

static bool take_every(struct self *self, struct hbp_bytes value) {
  uint64_t every = 0;
  if (!value.size || value.size > 9) return false;
  for (size_t i = 0; i < value.size; i++) {
    uint8_t byte = ((const uint8_t *)value.data)[i];
    if (byte < '0' || byte > '9') return false;
    every = every * 10 + (uint64_t)(byte - '0');
  }
  self->every = every;
  return every > 0;
}

/* What is wrong with the parameter; NULL: nothing. */
static const char *take(struct self *self, const struct hbp_parameter *parameter) {
  bool counts = self->kind != DISTINCT;
  if (counts && strcmp(parameter->name, "every") == 0) {
    return take_every(self, parameter->value) ? NULL : "must be a number from 1 to 999999999";
  }
  if (counts && self->kind != PASSTHROUGH && strcmp(parameter->name, "emit") == 0) {
    self->at_end = is_text(parameter->value, "end");
    return self->at_end || is_text(parameter->value, "each") ? NULL : "must be 'each' or 'end'";
  }
  if (self->kind == CONCAT && strcmp(parameter->name, "separator") == 0) {
    hb_buf_clear(&self->separator);
    hb_buf_append(&self->separator, parameter->value.data, parameter->value.size);
    return NULL;
  }
  return "is not known to this processor";
}

static void destroy(void *context) {
  struct self *self = context;
  hb_buf_done(&self->separator);
  hb_buf_done(&self->value);
  free(self);
}

static int create(enum kind kind, const struct hbp_parameter *parameters, size_t count,
                  void **out_self, char *error, size_t error_size) {
  struct self *self = hb_calloc(1, sizeof *self);
  self->kind = kind;
  self->every = 1;
  for (size_t i = 0; i < count; i++) {
    const char *why = take(self, &parameters[i]);
    if (!why) continue;
    (void)snprintf(error, error_size, "parameter '%.64s' %s", parameters[i].name, why);
    destroy(self);
    return HBP_FAILED;
  }
  *out_self = self;
  return HBP_OK;
}

/* ---- what the kinds keep */

static void put_number(struct hb_buf *out, hb_number number) {
  uint8_t bytes[NUMBER_SIZE];
  unsigned __int128 bits = (unsigned __int128)number;
  hb_put_u64_le(bytes, (uint64_t)bits);
  hb_put_u64_le(bytes + 8, (uint64_t)(bits >> 64));
  hb_buf_append(out, bytes, sizeof bytes);
}

static hb_number get_number(const uint8_t *at) {
  unsigned __int128 high = hb_get_u64_le(at + 8);
  return (hb_number)(high << 64 | hb_get_u64_le(at));
}

/* The new number of a key that had `old` (with `any`). False: it can't be. */
static bool fold(enum kind kind, bool any, hb_number old, hb_number number, hb_number *out) {
  *out = number;
  if (!any) return true;
  if (kind == MIN) *out = number < old ? number : old;
  if (kind == MAX) *out = number > old ? number : old;
  if (kind == SUM || kind == MEAN) return hb_number_add(old, number, out);
  return true;
}

/* Append to `value` what the kind keeps after this event; `had` is what it kept (with `any`). */
static int keep(struct self *self, const struct hbp_host *host, const struct hbp_event *event,
                bool any, struct hbp_bytes had) {
  struct hb_buf *value = &self->value;
  if (self->kind == PASSTHROUGH || self->kind == COUNT) return HBP_OK;
  if (self->kind == LAST) {
    hb_buf_append(value, event->payload.data, event->payload.size);
    return HBP_OK;
  }
  if (self->kind == CONCAT) {
    hb_buf_append(value, had.data, had.size);
    if (any) hb_buf_append(value, self->separator.data, self->separator.size);
    hb_buf_append(value, event->payload.data, event->payload.size);
    if (value->size <= SEEN_SIZE + (size_t)CONCAT_MAX) return HBP_OK;
    return host->give_up(host, "the key's payloads together are above 1048576 bytes");
  }
  char error[ERROR_SIZE];
  hb_number number;
  if (!hb_number_parse(event->payload, &number, error, sizeof error)) {
    return host->give_up(host, error);
  }
  hb_number old = had.size == NUMBER_SIZE ? get_number(had.data) : 0;
  if (!fold(self->kind, any, old, number, &number)) {
    return host->give_up(host, "the sum is out of range");
  }
  put_number(value, number);
  return HBP_OK;
}

/* The result that a state (without `seen`) stands for. */
static int tell(const struct self *self, const struct hbp_host *host, uint64_t seen,
                struct hbp_bytes kept) {
  char text[HB_NUMBER_TEXT_SIZE];
  size_t size;
  switch (self->kind) {
    case COUNT:
      size = hb_number_print_count(seen, text);
      break;
    case SUM:
    case MIN:
    case MAX:
      size = hb_number_print(get_number(kept.data), text);
      break;
    case MEAN:
      size = hb_number_print(hb_number_mean(get_number(kept.data), seen), text);
      break;
    case PASSTHROUGH:
    case LAST:
    case DISTINCT:
    case CONCAT:
    default:
      return host->emit(host, kept);
  }
  return host->emit(host, (struct hbp_bytes){text, size});
}

/* ---- events */

static struct hbp_bytes rest_of(struct hbp_bytes value) {
  if (value.size < SEEN_SIZE) return NO_NAME;
  return (struct hbp_bytes){(const uint8_t *)value.data + SEEN_SIZE, value.size - SEEN_SIZE};
}

static int on_event(void *context, const struct hbp_host *host, const struct hbp_event *event) {
  struct self *self = context;
  if (self->kind == PASSTHROUGH && self->every == 1) return host->emit(host, event->payload);
  struct hbp_bytes value = {NULL, 0};
  int found = 0;
  if (host->state_get(host, NO_NAME, &value, &found)) return HBP_FAILED;
  uint64_t seen = value.size >= SEEN_SIZE ? hb_get_u64_le(value.data) : 0;
  hb_buf_clear(&self->value);
  hb_put_u64_le(hb_buf_reserve(&self->value, SEEN_SIZE), seen + 1);
  self->value.size = SEEN_SIZE;
  if (keep(self, host, event, seen > 0, rest_of(value))) return HBP_FAILED;
  struct hbp_bytes now = {self->value.data, self->value.size};
  if (host->state_put(host, NO_NAME, now)) return HBP_FAILED;
  if (self->at_end || seen % self->every) return HBP_OK;
  struct hbp_bytes kept = self->kind == PASSTHROUGH ? event->payload : rest_of(now);
  return tell(self, host, seen + 1, kept);
}

static int on_end(void *context, const struct hbp_host *host, const struct hbp_end *end) {
  const struct self *self = context;
  (void)end;
  if (!self->at_end) return HBP_OK;
  struct hbp_bytes value = {NULL, 0};
  int found = 0;
  if (host->state_get(host, NO_NAME, &value, &found)) return HBP_FAILED;
  if (!found) return HBP_OK;
  return tell(self, host, hb_get_u64_le(value.data), rest_of(value));
}

/* A payload is a state's name; a long one is remembered by its 128-bit hash. */
static int on_distinct(void *context, const struct hbp_host *host, const struct hbp_event *event) {
  enum { PLAIN_MAX = 1024 };
  struct self *self = context;
  hb_buf_clear(&self->value);
  if (event->payload.size <= PLAIN_MAX) {
    hb_buf_append_u8(&self->value, 'p');
    hb_buf_append(&self->value, event->payload.data, event->payload.size);
  } else {
    XXH128_canonical_t hash;
    XXH128_canonicalFromHash(&hash, XXH3_128bits(event->payload.data, event->payload.size));
    hb_buf_append_u8(&self->value, 'h');
    hb_buf_append(&self->value, hash.digest, sizeof hash.digest);
  }
  struct hbp_bytes name = {self->value.data, self->value.size};
  struct hbp_bytes value;
  int found = 0;
  if (host->state_get(host, name, &value, &found)) return HBP_FAILED;
  if (found) return HBP_OK;
  if (host->state_put(host, name, NO_NAME)) return HBP_FAILED;
  return host->emit(host, event->payload);
}

/* ---- the table */

#define KINDS(X)                                                                                   \
  X(PASSTHROUGH, passthrough, "the payload; every=N: of each N-th event of a key", on_event, NULL) \
  X(COUNT, count, "events of the key so far; every=N, emit=each|end", on_event, on_end)            \
  X(SUM, sum, "sum of the key's payload numbers; every=N, emit=each|end", on_event, on_end)        \
  X(MIN, min, "least of the key's payload numbers; every=N, emit=each|end", on_event, on_end)      \
  X(MAX, max, "largest of the key's payload numbers; every=N, emit=each|end", on_event, on_end)    \
  X(MEAN, mean, "mean of the key's payload numbers; every=N, emit=each|end", on_event, on_end)     \
  X(LAST, last, "the key's latest payload; every=N, emit=each|end", on_event, on_end)              \
  X(DISTINCT, distinct, "each payload when the key has it for the first time", on_distinct, NULL)  \
  X(CONCAT, concat, "the key's payloads joined; separator=TEXT, every=N, emit=each|end", on_event, \
    on_end)

#define KIND_CREATE(KIND, name, help, event, end)                                                 \
  static int create_##name(const struct hbp_parameter *parameters, size_t count, void **out_self, \
                           char *error, size_t error_size) {                                      \
    return create(KIND, parameters, count, out_self, error, error_size);                          \
  }                                                                                               \
  static const struct hbp_processor name##_processor =                                            \
      {HBP_ABI, sizeof(struct hbp_processor), #name, help, create_##name, destroy, event, NULL,   \
       end};
KINDS(KIND_CREATE)

#define KIND_ENTRY(KIND, name, help, event, end) &name##_processor,
static const struct hbp_processor *const ALL[] = {KINDS(KIND_ENTRY)};

const struct hbp_processor *const *hb_builtin_all(size_t *out_count) {
  *out_count = sizeof ALL / sizeof ALL[0];
  return ALL;
}

const struct hbp_processor *hb_builtin_find(const char *name) {
  for (size_t i = 0; i < sizeof ALL / sizeof ALL[0]; i++) {
    if (strcmp(ALL[i]->name, name) == 0) return ALL[i];
  }
  return NULL;
}
