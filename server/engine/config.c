/* Decides which settings a stream may have, and when two configurations are the same. */
#include "server/engine/config.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/slice.h"
#include "base/stream_name.h"

struct limit_field {
  const char *name; /* a row of base/limits_table.h */
  size_t offset;    /* in struct hb_stream_limits */
};
static const struct limit_field LIMIT_FIELDS[] = {
    {"ahead_max", offsetof(struct hb_stream_limits, ahead_max)},
    {"held_bytes_max", offsetof(struct hb_stream_limits, held_bytes_max)},
    {"held_events_max", offsetof(struct hb_stream_limits, held_events_max)},
    {"gaps_max", offsetof(struct hb_stream_limits, gaps_max)},
    {"event_bytes_max", offsetof(struct hb_stream_limits, event_bytes_max)}};
enum { LIMIT_FIELDS_COUNT = sizeof LIMIT_FIELDS / sizeof LIMIT_FIELDS[0] };

static uint64_t limit_get(const struct hb_stream_limits *limits, size_t i) {
  uint64_t value;
  memcpy(&value, (const char *)limits + LIMIT_FIELDS[i].offset, sizeof value);
  return value;
}

static void limit_set(struct hb_stream_limits *limits, size_t i, uint64_t value) {
  memcpy((char *)limits + LIMIT_FIELDS[i].offset, &value, sizeof value);
}

/* ---- what is valid */

static enum hb_code check_limits(const struct hb_stream_limits *limits, struct hb_err *err) {
  for (size_t i = 0; i < LIMIT_FIELDS_COUNT; i++) {
    const struct hb_limit_row *row = hb_limits_find(LIMIT_FIELDS[i].name);
    uint64_t value = limit_get(limits, i);
    if (value == 0 || (value >= row->min && value <= row->max)) continue;
    return hb_err_set(err, HB_INVALID, "LIMIT_OUT_OF_RANGE",
                      "limits.%s is %" PRIu64 ", must be from %" PRIu64 " to %" PRIu64
                      " %s, or 0 for not given",
                      row->name, value, row->min, row->max, row->unit);
  }
  return HB_OK;
}

static enum hb_code check_mode(enum hb_mode mode, struct hb_err *err) {
  if (mode == HB_MODE_GLOBAL || mode == HB_MODE_PER_KEY) return HB_OK;
  return hb_err_set(err, HB_INVALID, (int)mode ? "MODE_UNKNOWN" : "MODE_MISSING",
                    "mode is %d, must be %d (GLOBAL) or %d (PER_KEY)", (int)mode, HB_MODE_GLOBAL,
                    HB_MODE_PER_KEY);
}

static enum hb_code check_first(const struct hb_stream_config *config, struct hb_err *err) {
  if (config->first_seen || config->first_sequence != INT64_MAX) return HB_OK;
  return hb_err_set(err, HB_INVALID, "FIRST_SEQUENCE_INVALID",
                    "first_sequence is %" PRId64 ", must be below it", INT64_MAX);
}

enum hb_code hb_config_check_changes(const struct hb_stream_config *changes, struct hb_err *err) {
  enum hb_code code = hb_stream_name_check("name", hb_slice_text(changes->name), err);
  if (code) return code;
  int ack = (int)changes->ack;
  if (ack != 0 && ack != HB_ACK_DURABLE && ack != HB_ACK_ASYNC) {
    return hb_err_set(err, HB_INVALID, "ACK_MODE_UNKNOWN", "ack_mode is %d, must be 0, %d or %d",
                      ack, HB_ACK_DURABLE, HB_ACK_ASYNC);
  }
  return check_limits(&changes->limits, err);
}

enum hb_code hb_config_check(const struct hb_stream_config *config, struct hb_err *err) {
  enum hb_code code = hb_config_check_changes(config, err);
  if (!code) code = check_mode(config->mode, err);
  if (!code) code = check_first(config, err);
  return code;
}

/* ---- what is the same */

enum { VALUE_SIZE = 32 };

static enum hb_code differs(const char *name, const char *field, const char *have, const char *want,
                            struct hb_err *err) {
  return hb_err_set(err, HB_EXISTS, "STREAM_EXISTS", "stream '%s' exists with %s %s, not %s", name,
                    field, have, want);
}

static const char *first_text(const struct hb_stream_config *config, char *out) {
  if (config->first_seen) return "from first seen";
  (void)snprintf(out, VALUE_SIZE, "%" PRId64, config->first_sequence);
  return out;
}

static const char *ack_text(enum hb_ack ack) { return ack == HB_ACK_ASYNC ? "ASYNC" : "DURABLE"; }

static const char *mode_text(enum hb_mode mode) {
  return mode == HB_MODE_PER_KEY ? "PER_KEY" : "GLOBAL";
}

static bool same_first(const struct hb_stream_config *a, const struct hb_stream_config *b) {
  if (a->first_seen != b->first_seen) return false;
  return a->first_seen || a->first_sequence == b->first_sequence;
}

enum hb_code hb_config_check_same(const struct hb_stream_config *have,
                                  const struct hb_stream_config *want, struct hb_err *err) {
  char old[VALUE_SIZE];
  char new[VALUE_SIZE];
  if (have->mode != want->mode) {
    return differs(have->name, "mode", mode_text(have->mode), mode_text(want->mode), err);
  }
  if (!same_first(have, want)) {
    return differs(have->name, "first_sequence", first_text(have, old), first_text(want, new), err);
  }
  if (have->ack != want->ack) {
    return differs(have->name, "ack_mode", ack_text(have->ack), ack_text(want->ack), err);
  }
  for (size_t i = 0; i < LIMIT_FIELDS_COUNT; i++) {
    uint64_t had = limit_get(&have->limits, i);
    uint64_t wanted = limit_get(&want->limits, i);
    if (had == wanted) continue;
    (void)snprintf(old, sizeof old, "%" PRIu64, had);
    (void)snprintf(new, sizeof new, "%" PRIu64, wanted);
    return differs(have->name, LIMIT_FIELDS[i].name, old, new, err);
  }
  return HB_OK;
}

/* ---- what 0 stands for */

struct hb_stream_config hb_config_resolve(const struct hb_limits *limits,
                                          const struct hb_stream_config *stored) {
  struct hb_stream_config config = *stored;
  if ((int)config.ack == 0) config.ack = HB_ACK_DURABLE;
  for (size_t i = 0; i < LIMIT_FIELDS_COUNT; i++) {
    if (limit_get(&config.limits, i) > 0) continue;
    limit_set(&config.limits, i, hb_limits_get(limits, hb_limits_find(LIMIT_FIELDS[i].name)));
  }
  return config;
}

void hb_config_change(struct hb_stream_config *stored, const struct hb_stream_config *changes) {
  if ((int)changes->ack != 0) stored->ack = changes->ack;
  for (size_t i = 0; i < LIMIT_FIELDS_COUNT; i++) {
    uint64_t value = limit_get(&changes->limits, i);
    if (value > 0) limit_set(&stored->limits, i, value);
  }
}
