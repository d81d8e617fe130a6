/* Decides in which order a store is looked at:
 *
 *   FORMAT, meta, the rows of `streams`; then for each stream what is held (as of one moment with
 * its frontier record), its log up to that frontier, the rows of its keys, its index, its small
 * rows, its processors; then what belongs to no stream.
 *
 * What a writer adds meanwhile lies above the frontier that was read and is left alone; log blocks
 * and index entries below it never change, so only what is held needs a view of one moment. */
#include "storage/verify.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "storage/key_internal.h"
#include "storage/verify_internal.h"

struct hb_verify *hb_verify_create(const struct hb_verify_options *options) {
  struct hb_verify *verify = hb_calloc(1, sizeof *verify);
  verify->options = *options;
  return verify;
}

static void leave_stream(struct hb_verify *verify) {
  hb_verify_held_done(&verify->held);
  hb_verify_keys_done(&verify->keys);
  hb_verify_locate_done(&verify->locate);
  hb_verify_processors_done(&verify->processors);
  free(verify->stream.log_sums);
  free(verify->stream.index_sums);
  verify->stream = (struct hb_verify_stream){0};
}

void hb_verify_destroy(struct hb_verify *verify) {
  if (!verify) return;
  hb_scan_end(&verify->scan);
  leave_stream(verify);
  hb_buf_done(&verify->key);
  free(verify->streams);
  free(verify->names);
  free(verify);
}

const struct hb_verify_counts *hb_verify_counts(const struct hb_verify *verify) {
  return &verify->counts;
}

/* ---- findings */

const char *hb_finding_line(const struct hb_finding *finding, char out[HB_FINDING_LINE_SIZE]) {
  int at = 0;
  if (finding->stream && finding->name[0]) {
    at = snprintf(out, HB_FINDING_LINE_SIZE, "stream '%s' (id %" PRIu64 "), ", finding->name,
                  finding->stream);
  } else if (finding->stream) {
    at = snprintf(out, HB_FINDING_LINE_SIZE, "stream id %" PRIu64 ", ", finding->stream);
  }
  at += snprintf(out + at, HB_FINDING_LINE_SIZE - (size_t)at, "%s", finding->family);
  if (finding->has_range) {
    at += snprintf(out + at, HB_FINDING_LINE_SIZE - (size_t)at, " [%" PRId64 ", %" PRId64 ")",
                   finding->range.start, finding->range.end);
  }
  (void)snprintf(out + at, HB_FINDING_LINE_SIZE - (size_t)at, ": %s", finding->text);
  return out;
}

/* What one finding takes of a step: the findings of a step are told together. */
enum { FINDING_BYTES = 16 << 10 };

/* One line of ASCII, whatever lay on the disk: it goes to terminals, and into strings of proto3. */
static void make_plain(char *text) {
  for (; *text; text++) {
    bool plain = *text >= 0x20 && *text < 0x7F;
    if (!plain) *text = '?';
  }
}

/* Findings of one family and stream are cut short: damage to a whole family is no news each time.
 */
static void tell(struct hb_verify *verify, struct hb_finding *finding) {
  uint64_t told = verify->stream.findings;
  if (told > HB_VERIFY_FINDINGS_MAX) return;
  verify->stream.findings = told + 1;
  if (told == HB_VERIFY_FINDINGS_MAX) {
    finding->has_range = false;
    (void)snprintf(finding->text, sizeof finding->text,
                   "more than %d findings: the others are left out", HB_VERIFY_FINDINGS_MAX);
  }
  make_plain(finding->text);
  verify->budget -= FINDING_BYTES;
  verify->counts.findings++;
  if (verify->options.found) verify->options.found(verify->options.context, finding);
}

void hb_verify_report(struct hb_verify *verify, const char *family, const struct hb_range *range,
                      const char *format, ...) {
  const struct hb_verify_stream *stream = &verify->stream;
  if (stream->id && verify->options.live && !hb_verify_is_there(verify, stream->id)) return;
  struct hb_finding finding = {.stream = stream->id, .family = family};
  memcpy(finding.name, stream->config.name, sizeof finding.name);
  if (range) {
    finding.has_range = true;
    finding.range = *range;
  }
  va_list args;
  va_start(args, format);
  (void)vsnprintf(finding.text, sizeof finding.text, format, args);
  va_end(args);
  tell(verify, &finding);
}

void hb_verify_report_of(struct hb_verify *verify, uint64_t stream, const char *family,
                         const char *text) {
  struct hb_finding finding = {.stream = stream, .family = family};
  (void)snprintf(finding.text, sizeof finding.text, "%s", text);
  tell(verify, &finding);
}

static bool has_row(struct hb_verify *verify, uint64_t stream, enum hb_stream_kind kind) {
  struct hb_key key = hb_key_streams_row(stream, kind);
  struct hb_bytes *value = NULL;
  struct hb_rocks *engine = verify->options.store->engine;
  enum hb_code code = hb_rocks_get(engine, HB_FAMILY_STREAMS, hb_key_view(&key), &value, NULL);
  bool any = code != HB_OK || value; /* unreadable rows are told elsewhere */
  if (!code) hb_bytes_unref(value);
  return any;
}

bool hb_verify_is_there(struct hb_verify *verify, uint64_t stream) {
  return has_row(verify, stream, HB_KIND_CONFIG);
}

bool hb_verify_is_known(struct hb_verify *verify, uint64_t stream) {
  return has_row(verify, stream, HB_KIND_CONFIG) || has_row(verify, stream, HB_KIND_DELETING);
}

/* ---- the order */

/* The next stream's first phase, or what comes after all of them. */
static enum hb_verify_phase enter_stream(struct hb_verify *verify) {
  if (verify->at == verify->streams_count) {
    return verify->options.stream ? HB_VERIFY_DONE : HB_VERIFY_UNUSED;
  }
  hb_verify_load(verify, verify->streams[verify->at++]);
  verify->counts.streams++;
  return verify->stream.ok ? HB_VERIFY_HELD : HB_VERIFY_STREAM_END;
}

static enum hb_verify_phase after(struct hb_verify *verify) {
  verify->stream.findings = 0;
  switch (verify->phase) {
    case HB_VERIFY_FORMAT:
      return HB_VERIFY_META;
    case HB_VERIFY_META:
      return HB_VERIFY_STREAMS;
    case HB_VERIFY_STREAMS:
    case HB_VERIFY_STREAM:
      return HB_VERIFY_STREAM;
    case HB_VERIFY_HELD:
      hb_verify_held_done(&verify->held);
      return HB_VERIFY_LOG;
    case HB_VERIFY_LOG:
      return HB_VERIFY_KEYS;
    case HB_VERIFY_KEYS:
      return HB_VERIFY_INDEX;
    case HB_VERIFY_INDEX:
      return HB_VERIFY_LOCATE;
    case HB_VERIFY_LOCATE:
      hb_verify_locate_done(&verify->locate);
      return HB_VERIFY_GAPS;
    case HB_VERIFY_GAPS:
      return HB_VERIFY_KEPT;
    case HB_VERIFY_KEPT:
      return HB_VERIFY_PROCESSORS;
    case HB_VERIFY_PROCESSORS:
      return HB_VERIFY_RESULTS;
    case HB_VERIFY_RESULTS:
      return HB_VERIFY_STATES;
    case HB_VERIFY_STATES:
      return HB_VERIFY_TIMERS;
    case HB_VERIFY_TIMERS:
      return HB_VERIFY_STREAM_END;
    case HB_VERIFY_STREAM_END:
      hb_verify_compare_now(verify);
      leave_stream(verify);
      return HB_VERIFY_STREAM;
    case HB_VERIFY_UNUSED:
      return HB_VERIFY_PEERS;
    case HB_VERIFY_PEERS:
      return HB_VERIFY_ORPHANS;
    case HB_VERIFY_ORPHANS:
    case HB_VERIFY_DONE:
      break;
  }
  return HB_VERIFY_DONE;
}

/* True: the phase is over. */
static bool work(struct hb_verify *verify) {
  static bool (*const works[])(struct hb_verify *) = {[HB_VERIFY_FORMAT] = hb_verify_format,
                                                      [HB_VERIFY_META] = hb_verify_meta,
                                                      [HB_VERIFY_STREAMS] = hb_verify_streams,
                                                      [HB_VERIFY_HELD] = hb_verify_held,
                                                      [HB_VERIFY_LOG] = hb_verify_log,
                                                      [HB_VERIFY_KEYS] = hb_verify_keys,
                                                      [HB_VERIFY_INDEX] = hb_verify_index,
                                                      [HB_VERIFY_LOCATE] = hb_verify_locate,
                                                      [HB_VERIFY_GAPS] = hb_verify_gaps,
                                                      [HB_VERIFY_KEPT] = hb_verify_kept,
                                                      [HB_VERIFY_PROCESSORS] = hb_verify_processors,
                                                      [HB_VERIFY_RESULTS] = hb_verify_results,
                                                      [HB_VERIFY_STATES] = hb_verify_states,
                                                      [HB_VERIFY_TIMERS] = hb_verify_timers,
                                                      [HB_VERIFY_UNUSED] = hb_verify_unused,
                                                      [HB_VERIFY_PEERS] = hb_verify_peers,
                                                      [HB_VERIFY_ORPHANS] = hb_verify_orphans,
                                                      [HB_VERIFY_DONE] = NULL};
  return works[verify->phase] ? works[verify->phase](verify) : true;
}

bool hb_verify_step(struct hb_verify *verify, size_t bytes) {
  verify->budget = (int64_t)bytes;
  while (verify->phase != HB_VERIFY_DONE) {
    if (verify->phase == HB_VERIFY_STREAM) {
      verify->phase = enter_stream(verify);
    } else if (work(verify)) {
      hb_scan_end(&verify->scan);
      verify->phase = after(verify);
    } else {
      return true;
    }
    verify->budget -= 64; /* phases that find nothing cost something too */
  }
  verify->counts.total = verify->counts.done;
  return false;
}
