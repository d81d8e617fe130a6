/* Decides how a stream is told, to a script and to a person. */
#include "client/cmd/describe.h"

#include <inttypes.h>

#include "client/cmd/picture.h"
#include "client/cmd/rfc3339.h"

enum { PICTURE_WIDTH = 60 };

const char *describe_mode(int mode) { return mode == HOLDBACK_MODE_PER_KEY ? "PER_KEY" : "GLOBAL"; }

const char *describe_ack(const struct holdback_stream_config *config) {
  return config->async_ack ? "async" : "durable";
}

/* ---- JSON */

static json_t *number_or_null(bool present, int64_t value) {
  return present ? json_integer(value) : json_null();
}

static json_t *limit(uint64_t value) { return json_integer((json_int_t)value); }

json_t *describe_config_json(const struct holdback_stream_config *config) {
  return json_pack("{s:s, s:s, s:b, s:o, s:s, s:o, s:o, s:o, s:o, s:o}", "stream", config->name,
                   "mode", describe_mode(config->mode), "first_seen", (int)config->first_seen,
                   "first_sequence", number_or_null(!config->first_seen, config->first_sequence),
                   "ack", describe_ack(config), "ahead_max", limit(config->ahead_max),
                   "held_bytes_max", limit(config->held_bytes_max), "held_events_max",
                   limit(config->held_events_max), "gaps_max", limit(config->gaps_max),
                   "event_bytes_max", limit(config->event_bytes_max));
}

static json_t *gaps_json(const struct holdback_stream_status *status) {
  json_t *gaps = json_array();
  for (size_t i = 0; i < status->gaps_count; i++) {
    const struct holdback_gap *gap = &status->gaps[i];
    (void)json_array_append_new(gaps,
                                json_pack("{s:I, s:I, s:I}", "start", (json_int_t)gap->start, "end",
                                          (json_int_t)gap->end, "age_ms", (json_int_t)gap->age_ms));
  }
  return gaps;
}

static json_t *time_json(const struct holdback_stream_status *status) {
  if (!status->has_max_event_time) return json_null();
  char text[RFC3339_SIZE];
  rfc3339_format(status->max_event_time_seconds, status->max_event_time_nanos, text);
  return json_string(text);
}

json_t *describe_status_json(const struct holdback_stream_config *config,
                             const struct holdback_stream_status *status) {
  bool first = status->has_first;
  return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:I, s:I, s:o, s:I, s:o, s:o, s:o}", "stream",
                   config->name, "mode", describe_mode(config->mode), "first_sequence",
                   number_or_null(first, status->first_sequence), "frontier",
                   number_or_null(first, status->frontier), "complete_to",
                   number_or_null(first, status->complete_to), "highest",
                   number_or_null(status->has_highest, status->highest), "held_events",
                   (json_int_t)status->held_events, "held_bytes", (json_int_t)status->held_bytes,
                   "gaps", gaps_json(status), "gaps_total", (json_int_t)status->gaps_total,
                   "max_event_time", time_json(status), "earliest",
                   number_or_null(first, status->earliest), "indexed_to",
                   number_or_null(first, status->indexed_to));
}

/* ---- text */

void describe_age(uint64_t age_ms, char *out, size_t out_size) {
  static const struct {
    uint64_t until_ms;
    uint64_t unit_ms;
    const char *name;
  } units[] = {{1000, 1, "ms"},
               {120000, 1000, "s"},
               {7200000, 60000, "min"},
               {172800000, 3600000, "h"},
               {UINT64_MAX, 86400000, "d"}};
  size_t i = 0;
  while (age_ms >= units[i].until_ms && units[i].until_ms != UINT64_MAX) i++;
  (void)snprintf(out, out_size, "%" PRIu64 " %s", age_ms / units[i].unit_ms, units[i].name);
}

void describe_bytes(uint64_t bytes, char *out, size_t out_size) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = (double)bytes;
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < sizeof units / sizeof *units) {
    value /= 1024;
    unit++;
  }
  (void)snprintf(out, out_size, "%.*f %s", unit && value < 100 ? 1 : 0, value, units[unit]);
}

void describe_config(FILE *out, const struct holdback_stream_config *config) {
  char bytes[32];
  fprintf(out, "stream           %s (%s, %s acks)\n", config->name, describe_mode(config->mode),
          describe_ack(config));
  bool per_key = config->mode == HOLDBACK_MODE_PER_KEY;
  if (config->first_seen) {
    fprintf(out, "first sequence   %s\n",
            per_key ? "of each key: its event with initial" : "the first seen");
  } else {
    fprintf(out, "first sequence   %" PRId64 "\n", config->first_sequence);
  }
  fprintf(out, "ahead at most    %" PRIu64 " sequences\n", config->ahead_max);
  describe_bytes(config->held_bytes_max, bytes, sizeof bytes);
  fprintf(out, "held at most     %" PRIu64 " events, %s\n", config->held_events_max, bytes);
  fprintf(out, "gaps at most     %" PRIu64 "\n", config->gaps_max);
  describe_bytes(config->event_bytes_max, bytes, sizeof bytes);
  fprintf(out, "event at most    %s\n", bytes);
}

/* What colours mean: green is delivered or there, red is missing. */
struct palette {
  const char *there;
  const char *missing;
  const char *off;
};
static const struct palette plain = {"", "", ""};
static const struct palette coloured = {"\033[32m", "\033[31m", "\033[0m"};

static void print_picture(FILE *out, const struct holdback_stream_status *status,
                          const struct palette *palette) {
  int64_t start = status->complete_to;
  int64_t end = status->highest < INT64_MAX ? status->highest + 1 : status->highest;
  bool cut = status->gaps_count < status->gaps_total && status->gaps_count > 0;
  if (cut) end = status->gaps[status->gaps_count - 1].end;
  if (start >= end) return;
  char drawn[PICTURE_WIDTH + 1];
  size_t width = picture_draw(start, end, status->gaps, status->gaps_count, drawn, PICTURE_WIDTH);
  fputs("\n  ", out);
  for (size_t i = 0; i < width; i++)
    fprintf(out, "%s%c%s", drawn[i] == '.' ? palette->missing : palette->there, drawn[i],
            palette->off);
  fprintf(out, "%s\n  %" PRId64 " to %" PRId64 "; # is there, . is missing, + is mixed\n",
          cut ? " ..." : "", start, end);
}

static void print_gaps(FILE *out, const char *name, const struct holdback_stream_status *status,
                       const struct palette *palette) {
  fprintf(out, "gaps             %" PRIu64 "\n", status->gaps_total);
  for (size_t i = 0; i < status->gaps_count; i++) {
    const struct holdback_gap *gap = &status->gaps[i];
    char age[32];
    describe_age(gap->age_ms, age, sizeof age);
    uint64_t count = (uint64_t)gap->end - (uint64_t)gap->start;
    bool blocks = gap->start == status->complete_to;
    fprintf(out, "  %s[%" PRId64 ", %" PRId64 ")%s  %" PRIu64 " missing for %s%s\n",
            palette->missing, gap->start, gap->end, palette->off, count, age,
            blocks ? "  <- everything held waits for it" : "");
  }
  if (status->gaps_count && status->gaps_total > status->gaps_count)
    fprintf(out, "  and %" PRIu64 " more\n", status->gaps_total - status->gaps_count);
  if (status->gaps_total > status->gaps_count)
    fprintf(out, "  all of them: holdback stream gaps %s\n", name);
}

static void print_numbers(FILE *out, const struct holdback_stream_status *status,
                          const struct palette *palette) {
  char bytes[32];
  fprintf(out, "frontier         %s%" PRId64 "%s  everything below it is delivered in order\n",
          palette->there, status->frontier, palette->off);
  if (status->complete_to != status->frontier)
    fprintf(out, "complete to      %" PRId64 "  being released\n", status->complete_to);
  if (status->has_highest) fprintf(out, "highest          %" PRId64 "\n", status->highest);
  describe_bytes(status->held_bytes, bytes, sizeof bytes);
  fprintf(out, "held             %" PRIu64 " event%s, %s\n", status->held_events,
          status->held_events == 1 ? "" : "s", bytes);
  if (!status->has_max_event_time) return;
  char time[RFC3339_SIZE];
  rfc3339_format(status->max_event_time_seconds, status->max_event_time_nanos, time);
  fprintf(out, "latest time      %s\n", time);
}

void describe_status(FILE *out, const struct holdback_stream_config *config,
                     const struct holdback_stream_status *status, bool colour) {
  const struct palette *palette = colour ? &coloured : &plain;
  fprintf(out, "stream           %s (%s, %s acks)\n", config->name, describe_mode(config->mode),
          describe_ack(config));
  if (!status->has_first) {
    fprintf(out, "first sequence   not known before the first event\n");
    return;
  }
  if (config->mode == HOLDBACK_MODE_PER_KEY) {
    fprintf(out, "positions        from %" PRId64 ", as events are released\n",
            status->first_sequence);
  } else {
    fprintf(out, "first sequence   %" PRId64 "\n", status->first_sequence);
  }
  print_numbers(out, status, palette);
  fprintf(out,
          "ever             stored %" PRIu64 ", duplicate %" PRIu64 ", conflict %" PRIu64
          ", late %" PRIu64 ", before first %" PRIu64 "\n",
          status->stored_total, status->duplicate_total, status->conflict_total, status->late_total,
          status->before_first_total);
  if (status->indexed_to != status->frontier)
    fprintf(out, "indexed to       %" PRId64 "\n", status->indexed_to);
  print_gaps(out, config->name, status, palette);
  if (status->gaps_count && status->has_highest) print_picture(out, status, palette);
}
