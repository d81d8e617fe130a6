/* What the store's steps cost on this machine: bazelw run --config=opt //storage:cost [FOLDER].
 * Prints; asserts nothing. Payloads are random, so that no compression flatters the result. */
#include <ftw.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/clock.h"
#include "storage/engine_internal.h"
#include "storage/index.h"
#include "storage/read.h"
#include "storage/store_internal.h"
#include "storage/write.h"

enum { BLOCK_SIZE = 64 * 1024, BUNDLE_SIZE = 1024 * 1024 };

static const char *folder;
static struct hb_store *store;
static struct hb_write *writer;
static uint64_t commit;
static uint8_t noise[8 * 1024 * 1024];

static void must(enum hb_code code, const struct hb_err *err) {
  if (!code) return;
  fprintf(stderr, "%s\n", err->message);
  exit(1);
}

static void open_store(void) {
  struct hb_err err;
  struct hb_store_options options = {.path = folder};
  must(hb_store_open(&options, &store, &err), &err);
  writer = hb_write_create(store);
  commit = hb_store_info(store)->last_commit;
}

static void close_store(void) {
  hb_write_destroy(writer);
  hb_store_close(store);
}

static double ms_since(uint64_t start_ns) { return (double)(hb_clock_mono_ns() - start_ns) / 1e6; }

static struct hb_slice some_bytes(size_t size) {
  return hb_slice_of(noise + (size_t)random() % (sizeof noise - size), size);
}

static void apply(bool sync) {
  struct hb_err err;
  struct hb_frontier record = {.frozen = true};
  record.commit = commit + 1;
  hb_write_put_frontier(writer, 1, &record);
  must(hb_store_write(store, writer, ++commit, sync, &err), &err);
  hb_write_clear(writer);
}

static void synced_blocks(int count) {
  uint64_t start = hb_clock_mono_ns();
  for (int i = 0; i < count; i++) {
    hb_write_put_block(writer, 1, i, some_bytes(BLOCK_SIZE));
    apply(true);
  }
  printf("one synced write of a 64 KiB block: %.3f ms\n", ms_since(start) / count);
}

static void plain_blocks(int count) {
  uint64_t start = hb_clock_mono_ns();
  for (int i = 0; i < count; i++) {
    hb_write_put_block(writer, 1, 100000 + i, some_bytes(BLOCK_SIZE));
    apply(false);
  }
  printf("%d unsynced writes of a 64 KiB block: %.1f ms\n", count, ms_since(start));
}

/* Streams that are written in turn, `mib` MiB in all; the slowest write tells of stalls. */
static void many_blocks(int streams, int mib) {
  double slowest = 0;
  uint64_t start = hb_clock_mono_ns();
  for (int i = 0; i < mib; i++) {
    for (int k = 0; k < 16; k++) {
      int n = i * 16 + k;
      hb_write_put_block(writer, 2 + (uint64_t)(n % streams), n, some_bytes(BLOCK_SIZE));
    }
    uint64_t before = hb_clock_mono_ns();
    apply(true);
    if (ms_since(before) > slowest) slowest = ms_since(before);
  }
  double total = ms_since(start);
  printf("%d MiB of blocks over %d streams, 1 MiB per synced commit: %.0f MB/s, slowest %.1f ms\n",
         mib, streams, mib / total * 1e3 * 1.048576, slowest);
}

/* Bundles written and deleted `lag` MiB later, as with disorder. */
static void bundles(int mib, int lag) {
  double slowest = 0;
  uint64_t base = commit;
  uint64_t start = hb_clock_mono_ns();
  for (int i = 0; i < mib; i++) {
    uint64_t id = commit + 1;
    hb_write_put_bundle(writer, (struct hb_bundle_id){1, id, 0}, some_bytes(BUNDLE_SIZE));
    if (i >= lag) {
      hb_write_delete_bundle(writer, (struct hb_bundle_id){1, base + 1 + (uint64_t)(i - lag), 0});
    }
    uint64_t before = hb_clock_mono_ns();
    apply(true);
    if (ms_since(before) > slowest) slowest = ms_since(before);
  }
  printf("%d MiB of bundles, each deleted %d MiB later: %.0f MB/s, slowest %.1f ms\n", mib, lag,
         mib / ms_since(start) * 1e3 * 1.048576, slowest);
}

static void ingest(size_t count, unsigned keys, uint64_t first) {
  struct hb_err err;
  struct hb_index_entry *entries = hb_alloc(count * sizeof *entries);
  char(*names)[16] = hb_alloc(keys * sizeof *names);
  for (unsigned i = 0; i < keys; i++) snprintf(names[i], sizeof *names, "key-%07u", i);
  for (size_t i = 0; i < count; i++) {
    unsigned key = (unsigned)random() % keys;
    int64_t position = (int64_t)(first + i);
    entries[i] = (struct hb_index_entry){.key = hb_slice_of(names[key], 11),
                                         .position = position,
                                         .block = position / 500 * 500,
                                         .offset = (uint32_t)(i % 500 * 130),
                                         .length = 130};
  }
  uint64_t start = hb_clock_mono_ns();
  must(hb_index_ingest(store, 1, entries, count, &err), &err);
  printf("ingest of %zu entries, %u keys: %.0f ms\n", count, keys, ms_since(start));
  free(names);
  free(entries);
}

static atomic_bool ingested;

static void *ingest_some(void *unused) {
  for (int i = 0; i < 3; i++) ingest(1000000, 10000, 6000000 + (uint64_t)i * 1000000);
  atomic_store(&ingested, true);
  return unused;
}

/* The sequencer must not wait for the indexer, small rows of the index included. */
static void write_beside_ingest(void) {
  double slowest = 0;
  double sum = 0;
  int count = 0;
  pthread_t thread;
  HB_ASSERT(pthread_create(&thread, NULL, ingest_some, NULL) == 0);
  while (!atomic_load(&ingested)) {
    struct hb_index_entry entry = {.key = hb_slice_text("key-0005000"), .position = -1 - count};
    hb_write_put_block(writer, 1, 200000 + count, some_bytes(BLOCK_SIZE));
    hb_write_put_index_entry(writer, 1, &entry);
    uint64_t before = hb_clock_mono_ns();
    apply(true);
    double took = ms_since(before);
    if (took > slowest) slowest = took;
    sum += took;
    count++;
  }
  pthread_join(thread, NULL);
  printf("%d synced writes beside 3 ingests: %.3f ms, slowest %.1f ms\n", count, sum / count,
         slowest);
}

static void sizes(const char *when) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  uint64_t log = hb_rocks_number(store->engine, HB_FAMILY_LOG, "rocksdb.total-sst-files-size") +
                 hb_rocks_number(store->engine, HB_FAMILY_LOG, "rocksdb.total-blob-file-size");
  uint64_t held = hb_rocks_number(store->engine, HB_FAMILY_HELD, "rocksdb.total-sst-files-size") +
                  hb_rocks_number(store->engine, HB_FAMILY_HELD, "rocksdb.total-blob-file-size");
  printf("%s: log %" PRIu64 " MB, held %" PRIu64
         " MB, max rss %ld MB, cpu %.2f s, written %ld MB\n",
         when, log / 1000000, held / 1000000, usage.ru_maxrss / 1000,
         (double)usage.ru_utime.tv_sec + (double)usage.ru_utime.tv_usec / 1e6 +
             (double)usage.ru_stime.tv_sec + (double)usage.ru_stime.tv_usec / 1e6,
         usage.ru_oublock / 2000);
}

static int remove_one(const char *path, const struct stat *stat_of, int kind, struct FTW *ftw) {
  (void)stat_of;
  (void)kind;
  (void)ftw;
  return remove(path);
}

int main(int argc, char **argv) {
  char made[] = "/tmp/hb-cost.XXXXXX";
  folder = argc > 1 ? argv[1] : mkdtemp(made);
  HB_ASSERT(folder);
  setvbuf(stdout, NULL, _IOLBF, 0);
  for (size_t i = 0; i < sizeof noise; i++) noise[i] = (uint8_t)random();
  open_store();
  synced_blocks(200);
  plain_blocks(1000);
  many_blocks(1, 400);
  sizes("after one stream");
  many_blocks(16, 400);
  sizes("after 16 streams");
  bundles(400, 130);
  sizes("after bundles");
  for (int i = 0; i < 5; i++) ingest(1000000, 10000, (uint64_t)i * 1000000);
  ingest(1000000, 1000000, 5000000);
  write_beside_ingest();
  sizes("after ingests");
  close_store();
  uint64_t start = hb_clock_mono_ns();
  open_store();
  printf("open: %.0f ms\n", ms_since(start));
  close_store();
  if (argc < 2) nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
  return 0;
}
