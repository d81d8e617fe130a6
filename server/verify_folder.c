/* Decides how findings look when nobody is connected: lines or objects as `holdback verify` prints
 * them, and a bar on a terminal. */
#include "server/verify_folder.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "storage/store.h"
#include "storage/verify.h"

enum { STEP_BYTES = 16 << 20, BAR_WIDTH = 24 };

struct output {
  const struct hb_verify_folder_options *options;
  uint64_t began_ms;
};

static void clear_bar(const struct output *output) {
  if (!output->options->bar) return;
  (void)fputs("\r\033[K", output->options->bar);
  (void)fflush(output->options->bar);
}

/* Findings are ASCII without control characters, names of streams too. */
static void put_json_text(FILE *out, const char *name, const char *text) {
  (void)fprintf(out, "\"%s\":\"", name);
  for (; *text; text++) {
    if (*text == '"' || *text == '\\') (void)fputc('\\', out);
    (void)fputc(*text, out);
  }
  (void)fputc('"', out);
}

static void print_json(FILE *out, const struct hb_finding *finding) {
  (void)fprintf(out, "{\"stream_id\":%" PRIu64 ",", finding->stream);
  if (finding->name[0]) {
    put_json_text(out, "stream", finding->name);
  } else {
    (void)fprintf(out, "\"stream\":null");
  }
  (void)fputc(',', out);
  put_json_text(out, "family", finding->family);
  if (finding->has_range) {
    (void)fprintf(out, ",\"start\":%" PRId64 ",\"end\":%" PRId64 ",", finding->range.start,
                  finding->range.end);
  } else {
    (void)fprintf(out, ",\"start\":null,\"end\":null,");
  }
  put_json_text(out, "text", finding->text);
  (void)fprintf(out, "}\n");
}

static void found(void *context, const struct hb_finding *finding) {
  const struct output *output = context;
  FILE *out = output->options->out;
  char line[HB_FINDING_LINE_SIZE];
  clear_bar(output);
  if (output->options->json) {
    print_json(out, finding);
  } else {
    (void)fprintf(out, "%s\n", hb_finding_line(finding, line));
  }
  (void)fflush(out); /* a failure stays and is told at the end */
}

static void draw_bar(const struct output *output, const struct hb_verify_counts *counts) {
  FILE *bar = output->options->bar;
  if (!bar) return;
  uint64_t total = counts->total > counts->done ? counts->total : counts->done;
  double share = total ? (double)counts->done / (double)total : 0;
  (void)fputs("\r\033[K[", bar);
  for (int i = 0; i < BAR_WIDTH; i++) (void)fputc(i < share * BAR_WIDTH ? '#' : ' ', bar);
  (void)fprintf(bar, "] %3.0f%%  %.1f MiB, %" PRIu64 " findings", share * 100,
                (double)counts->bytes / (1 << 20), counts->findings);
  (void)fflush(bar);
}

static void print_summary_json(FILE *out, const struct hb_verify_counts *counts, double seconds) {
  (void)fprintf(out,
                "{\"sound\":%s,\"findings\":%" PRIu64 ",\"streams\":%" PRIu64 ",\"blocks\":%" PRIu64
                ",\"events\":%" PRIu64 ",\"bundles\":%" PRIu64 ",\"held_events\":%" PRIu64
                ",\"index_entries\":%" PRIu64 ",\"rows\":%" PRIu64 ",\"bytes\":%" PRIu64
                ",\"seconds\":%.3f}\n",
                counts->findings ? "false" : "true", counts->findings, counts->streams,
                counts->blocks, counts->events, counts->bundles, counts->held_events,
                counts->index_entries, counts->rows, counts->bytes, seconds);
}

static void print_summary(FILE *out, const struct hb_verify_counts *counts, double seconds) {
  if (counts->findings) {
    (void)fprintf(out, "%" PRIu64 " finding%s", counts->findings, counts->findings == 1 ? "" : "s");
  } else {
    (void)fprintf(out, "sound");
  }
  (void)fprintf(out,
                ": %" PRIu64 " streams, %" PRIu64 " blocks with %" PRIu64 " events, %" PRIu64
                " bundles with %" PRIu64 " held, %" PRIu64 " index entries, %" PRIu64
                " other rows, %.1f MiB in %.1f s\n",
                counts->streams, counts->blocks, counts->events, counts->bundles,
                counts->held_events, counts->index_entries, counts->rows,
                (double)counts->bytes / (1 << 20), seconds);
}

static bool look(struct hb_store *store, struct output *output) {
  struct hb_verify_options options = {.store = store, .found = found, .context = output};
  struct hb_verify *verify = hb_verify_create(&options);
  while (hb_verify_step(verify, STEP_BYTES)) draw_bar(output, hb_verify_counts(verify));
  clear_bar(output);
  double seconds = (double)(hb_clock_mono_ms() - output->began_ms) / 1000;
  if (output->options->json) {
    print_summary_json(output->options->out, hb_verify_counts(verify), seconds);
  } else {
    print_summary(output->options->out, hb_verify_counts(verify), seconds);
  }
  bool sound = hb_verify_counts(verify)->findings == 0;
  hb_verify_destroy(verify);
  return sound;
}

enum hb_code hb_verify_folder(const struct hb_verify_folder_options *options, bool *out_sound,
                              struct hb_err *err) {
  struct output output = {.options = options, .began_ms = hb_clock_mono_ms()};
  struct hb_store_options store_options = {.path = options->path, .read_only = true};
  struct hb_store *store = NULL;
  enum hb_code code = hb_store_open(&store_options, &store, err);
  if (code) return code;
  bool sound = look(store, &output);
  hb_store_close(store);
  if (fflush(options->out) || ferror(options->out)) {
    return hb_err_set(err, HB_IO, NULL, "standard output: %s", strerror(errno));
  }
  *out_sound = sound;
  return HB_OK;
}
