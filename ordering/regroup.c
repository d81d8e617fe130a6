/* Decides when bundles that each reach over most of what is held are sorted into narrow ones.
 *
 * Events that come far out of order make wide bundles: each has something near the frontier and
 * something far above it. While they are in memory that is fine. Spilled, each would be read again
 * for every few events (measured at disorder 10^6 and 1 KB: 60 us of CPU per event). So before wide
 * bundles are spilled they are merged, the first pass of an external merge sort: what they hold is
 * put anew, ascending, in bundles that are small and narrow. A release then needs only one of each
 * pass at a time. Bundles go as a whole, old and new change places in one commit (I10), and a
 * commit takes no more than it would of batches. The newest go first: they would stay longest. */
#include "base/alloc.h"
#include "ordering/core_internal.h"

/* A pass makes bundles of about a sixteenth of the width of what went in, or less. */
enum { WIDE_FACTOR = 32 };

bool hb_regroup_is_wide(const struct hb_held_bundle *bundle) {
  uint32_t live = bundle->count - bundle->next;
  if (!bundle->bytes || bundle->flags & HB_BUNDLE_SORTED || live < 2) return false;
  int64_t high = hb_bundle_sequence(bundle, bundle->count - 1);
  return ((uint64_t)high - (uint64_t)bundle->low) / WIDE_FACTOR > live;
}

/* What one commit sorts, at most; less than half of that is not worth it. */
static size_t pass_bytes(const struct hb_ordering *core) {
  size_t share = (size_t)core->options.limits.held_memory_max / 4;
  return share < core->options.release_bytes ? share : core->options.release_bytes;
}

static size_t wide_bytes(const struct hb_core_stream *stream) {
  size_t bytes = 0;
  for (size_t slot = 0; slot < stream->bundles_count; slot++) {
    const struct hb_held_bundle *bundle = &stream->bundles[slot];
    if (hb_regroup_is_wide(bundle)) bytes += bundle->live_bytes;
  }
  return bytes;
}

void hb_regroup_look(struct hb_ordering *core) {
  size_t most = pass_bytes(core) / 2;
  core->regroup_stream = NULL;
  for (size_t i = 0; i < core->streams_count; i++) {
    size_t bytes = wide_bytes(core->streams[i]);
    if (bytes <= most) continue;
    most = bytes;
    core->regroup_stream = core->streams[i];
  }
}

/* The newest wide ones, up to a pass, into core->dropping. */
static void choose(struct hb_ordering *core, const struct hb_core_stream *stream) {
  size_t count = 0;
  for (uint32_t slot = 0; slot < stream->bundles_count; slot++) {
    const struct hb_held_bundle *bundle = &stream->bundles[slot];
    if (!hb_regroup_is_wide(bundle) || bundle->commit == core->commit.number) continue;
    hb_reserve((void **)&core->due, &core->due_cap, count + 1, sizeof *core->due);
    core->due[count++] = (struct hb_item){.sequence = -(int64_t)bundle->commit, .index = slot};
  }
  hb_reserve((void **)&core->due_spare, &core->due_spare_cap, count, sizeof *core->due_spare);
  hb_sort_items(core->due, core->due_spare, count);
  size_t bytes = 0;
  for (size_t i = 0; i < count; i++) {
    uint32_t slot = core->due[i].index;
    bytes += stream->bundles[slot].live_bytes;
    if (bytes > pass_bytes(core) && core->dropping_count) return;
    hb_reserve((void **)&core->dropping, &core->dropping_cap, core->dropping_count + 1,
               sizeof *core->dropping);
    core->dropping[core->dropping_count++] = slot;
  }
}

/* Narrow bundles are a little more on disk than what they replace: there are more of them, and
 * neighbours in one no longer share a receipt. Never past the limit, whatever they turn out to be:
 * each two that follow each other are more than one may hold. */
static bool has_room(const struct hb_ordering *core, const struct hb_core_stream *stream) {
  size_t bytes = 0;
  size_t events = 0;
  for (size_t i = 0; i < core->dropping_count; i++) {
    const struct hb_held_bundle *bundle = &stream->bundles[core->dropping[i]];
    bytes += bundle->live_bytes;
    events += bundle->count - bundle->next;
  }
  size_t bundles = events; /* more than so many there can't be */
  size_t each = core->options.bundle_bytes / 4;
  if (each > 0 && 2 * (bytes / each) + 1 < bundles) bundles = 2 * (bytes / each) + 1;
  uint64_t most = stream->held_bytes + bundles * core->block_overhead;
  return most + events * core->entry_overhead <= stream->config.limits.held_bytes_max;
}

void hb_regroup(struct hb_ordering *core) {
  struct hb_core_stream *stream = core->regroup_stream;
  core->regroup_stream = NULL;
  if (!stream) return;
  choose(core, stream);
  if (has_room(core, stream)) (void)hb_rewrite_chosen(core, stream, true);
  core->dropping_count = 0;
}
