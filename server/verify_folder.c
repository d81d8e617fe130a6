/* Decides how findings look when nobody is connected: lines or objects as `holdback verify` prints
 * them, and a bar on a terminal. */
#include "server/verify_folder.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "storage/store.h"
#include "storage/verify.h"

enum { STEP_BYTES = 16 << 20, BAR_WIDTH = 24 };

struct output {
  bool json;
  bool bar; /* standard error is a terminal */
  uint64_t began_ms;
};

static void clear_bar(const struct output *output) {
  if (!output->bar) return;
  (void)fputs("\r\033[K", stderr);
  (void)fflush(stderr);
}

/* Findings are ASCII without control characters, names of streams too. */
static void put_json_text(const char *name, const char *text) {
  printf("\"%s\":\"", name);
  for (; *text; text++) {
    if (*text == '"' || *text == '\\') putchar('\\');
    putchar(*text);
  }
  putchar('"');
}

static void print_json(const struct hb_finding *finding) {
  printf("{\"stream_id\":%" PRIu64 ",", finding->stream);
  if (finding->name[0]) {
    put_json_text("stream", finding->name);
  } else {
    printf("\"stream\":null");
  }
  putchar(',');
  put_json_text("family", finding->family);
  if (finding->has_range) {
    printf(",\"start\":%" PRId64 ",\"end\":%" PRId64 ",", finding->range.start, finding->range.end);
  } else {
    printf(",\"start\":null,\"end\":null,");
  }
  put_json_text("text", finding->text);
  printf("}\n");
}

static void found(void *context, const struct hb_finding *finding) {
  const struct output *output = context;
  char line[HB_FINDING_LINE_SIZE];
  clear_bar(output);
  if (output->json) {
    print_json(finding);
  } else {
    printf("%s\n", hb_finding_line(finding, line));
  }
  (void)fflush(stdout); /* a failure stays and is told at the end */
}

static void draw_bar(const struct output *output, const struct hb_verify_counts *counts) {
  if (!output->bar) return;
  uint64_t total = counts->total > counts->done ? counts->total : counts->done;
  double share = total ? (double)counts->done / (double)total : 0;
  (void)fputs("\r\033[K[", stderr);
  for (int i = 0; i < BAR_WIDTH; i++) (void)fputc(i < share * BAR_WIDTH ? '#' : ' ', stderr);
  (void)fprintf(stderr, "] %3.0f%%  %.1f MiB, %" PRIu64 " findings", share * 100,
                (double)counts->bytes / (1 << 20), counts->findings);
  (void)fflush(stderr);
}

static void print_summary(const struct output *output, const struct hb_verify_counts *counts) {
  double seconds = (double)(hb_clock_mono_ms() - output->began_ms) / 1000;
  if (output->json) {
    printf("{\"sound\":%s,\"findings\":%" PRIu64 ",\"streams\":%" PRIu64 ",\"blocks\":%" PRIu64
           ",\"events\":%" PRIu64 ",\"bundles\":%" PRIu64 ",\"held_events\":%" PRIu64
           ",\"index_entries\":%" PRIu64 ",\"rows\":%" PRIu64 ",\"bytes\":%" PRIu64
           ",\"seconds\":%.3f}\n",
           counts->findings ? "false" : "true", counts->findings, counts->streams, counts->blocks,
           counts->events, counts->bundles, counts->held_events, counts->index_entries,
           counts->rows, counts->bytes, seconds);
    return;
  }
  if (counts->findings) {
    printf("%" PRIu64 " finding%s", counts->findings, counts->findings == 1 ? "" : "s");
  } else {
    printf("sound");
  }
  printf(": %" PRIu64 " streams, %" PRIu64 " blocks with %" PRIu64 " events, %" PRIu64
         " bundles with %" PRIu64 " held, %" PRIu64 " index entries, %" PRIu64
         " other rows, %.1f MiB in %.1f s\n",
         counts->streams, counts->blocks, counts->events, counts->bundles, counts->held_events,
         counts->index_entries, counts->rows, (double)counts->bytes / (1 << 20), seconds);
}

static bool look(struct hb_store *store, struct output *output) {
  struct hb_verify_options options = {.store = store, .found = found, .context = output};
  struct hb_verify *verify = hb_verify_create(&options);
  while (hb_verify_step(verify, STEP_BYTES)) draw_bar(output, hb_verify_counts(verify));
  clear_bar(output);
  print_summary(output, hb_verify_counts(verify));
  bool sound = hb_verify_counts(verify)->findings == 0;
  hb_verify_destroy(verify);
  return sound;
}

enum hb_code hb_verify_folder(const char *path, bool json, bool *out_sound, struct hb_err *err) {
  struct output output = {
      .json = json, .bar = isatty(STDERR_FILENO) == 1, .began_ms = hb_clock_mono_ms()};
  struct hb_store_options options = {.path = path, .read_only = true};
  struct hb_store *store = NULL;
  enum hb_code code = hb_store_open(&options, &store, err);
  if (code) return code;
  bool sound = look(store, &output);
  hb_store_close(store);
  if (fflush(stdout) || ferror(stdout)) {
    return hb_err_set(err, HB_IO, NULL, "standard output: %s", strerror(errno));
  }
  *out_sound = sound;
  return HB_OK;
}
