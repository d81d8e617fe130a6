/* What the store's tests share: folders of their own, stores in them, frames and blocks. */
#ifndef HB_STORAGE_TEST_STORE_INTERNAL_H
#define HB_STORAGE_TEST_STORE_INTERNAL_H

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
/* cmocka needs the ones above */
#include <cmocka.h>

#include "base/alloc.h"
#include "base/frame/block.h"
#include "storage/store.h"
#include "storage/write.h"

#define MAYBE_UNUSED __attribute__((unused))

struct fixture {
  char folder[256]; /* of the test */
  char path[300];   /* of the store, in it; not there yet */
  struct hb_store *store;
  struct hb_write *write;
  uint64_t commit; /* the last one */
};

MAYBE_UNUSED static void must(enum hb_code code, const struct hb_err *err) {
  if (code) fail_msg("%s: %s", hb_code_text(code), err->message);
}

static int remove_one(const char *path, const struct stat *stat_of, int kind, struct FTW *ftw) {
  (void)stat_of;
  (void)kind;
  (void)ftw;
  return remove(path);
}

MAYBE_UNUSED static int setup_folder(void **state) {
  struct fixture *fixture = hb_calloc(1, sizeof *fixture);
  const char *base = getenv("TEST_TMPDIR");
  snprintf(fixture->folder, sizeof fixture->folder, "%s/hb-store.XXXXXX", base ? base : "/tmp");
  if (!mkdtemp(fixture->folder)) return -1;
  snprintf(fixture->path, sizeof fixture->path, "%s/data", fixture->folder);
  *state = fixture;
  return 0;
}

MAYBE_UNUSED static void close_store(struct fixture *fixture) {
  hb_write_destroy(fixture->write);
  hb_store_close(fixture->store);
  fixture->write = NULL;
  fixture->store = NULL;
}

MAYBE_UNUSED static int teardown(void **state) {
  struct fixture *fixture = *state;
  close_store(fixture);
  nftw(fixture->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
  free(fixture);
  return 0;
}

MAYBE_UNUSED static enum hb_code try_open(struct fixture *fixture, struct hb_err *err) {
  struct hb_store_options options = {.path = fixture->path};
  return hb_store_open(&options, &fixture->store, err);
}

MAYBE_UNUSED static void open_store(struct fixture *fixture) {
  struct hb_err err;
  must(try_open(fixture, &err), &err);
  fixture->write = hb_write_create(fixture->store);
  fixture->commit = hb_store_info(fixture->store)->last_commit;
}

MAYBE_UNUSED static void reopen_store(struct fixture *fixture) {
  close_store(fixture);
  open_store(fixture);
}

MAYBE_UNUSED static int setup_store(void **state) {
  if (setup_folder(state)) return -1;
  open_store(*state);
  return 0;
}

/* Applies what fixture->write has, synced, and clears it. */
MAYBE_UNUSED static void apply(struct fixture *fixture) {
  struct hb_err err;
  must(hb_store_write(fixture->store, fixture->write, ++fixture->commit, true, &err), &err);
  hb_write_clear(fixture->write);
}

MAYBE_UNUSED static struct hb_stream_config some_config(const char *name) {
  struct hb_stream_config config = {.mode = HB_MODE_GLOBAL, .ack = HB_ACK_DURABLE};
  config.first_sequence = 1;
  snprintf(config.name, sizeof config.name, "%s", name);
  return config;
}

MAYBE_UNUSED static struct hb_frontier some_record(uint64_t commit) {
  return (struct hb_frontier){.frozen = true,
                              .first_sequence = 1,
                              .complete_to = 1,
                              .frontier = 1,
                              .earliest = 1,
                              .commit = commit};
}

MAYBE_UNUSED static void make_stream(struct fixture *fixture, uint64_t stream, const char *name) {
  struct hb_stream_config config = some_config(name);
  struct hb_frontier record = some_record(fixture->commit + 1);
  hb_write_put_config(fixture->write, stream, &config);
  hb_write_put_frontier(fixture->write, stream, &record);
  apply(fixture);
}

/* One frame: an event with a sequence below 2^35, a time in seconds (0 = none), a payload. */
MAYBE_UNUSED static size_t make_frame(uint8_t out[300], uint64_t sequence, uint8_t seconds,
                                      const char *payload) {
  uint8_t body[280];
  size_t size = 0;
  body[size++] = 0x08;
  for (; sequence >= 0x80; sequence >>= 7) body[size++] = (uint8_t)(sequence | 0x80);
  body[size++] = (uint8_t)sequence;
  if (seconds) {
    const uint8_t time[] = {0x1A, 2, 0x08, seconds};
    memcpy(body + size, time, sizeof time);
    size += sizeof time;
  }
  body[size++] = 0x2A;
  body[size++] = (uint8_t)strlen(payload);
  memcpy(body + size, payload, strlen(payload));
  size += strlen(payload);
  assert_true(size < 128);
  out[0] = 0x0A;
  out[1] = (uint8_t)size;
  memcpy(out + 2, body, size);
  return size + 2;
}

/* A block of [from, to) with one event per sequence; seconds[i] is the time of the i-th (NULL:
 * none has one), max_seconds the running maximum (0 = absent). */
MAYBE_UNUSED static struct hb_bytes *make_block(int64_t from, int64_t to, const uint8_t *seconds,
                                                uint8_t max_seconds) {
  size_t count = (size_t)(to - from);
  struct hb_block_entry *entries = hb_calloc(count, sizeof *entries);
  uint8_t *frames = hb_alloc(count * 300);
  for (size_t i = 0; i < count; i++) {
    int64_t sequence = from + (int64_t)i;
    char payload[32];
    snprintf(payload, sizeof payload, "payload %lld", (long long)sequence);
    entries[i].sequence = sequence;
    entries[i].frame = frames + i * 300;
    entries[i].frame_size = (uint32_t)make_frame(frames + i * 300, (uint64_t)sequence,
                                                 seconds ? seconds[i] : 0, payload);
  }
  struct hb_time max = {.seconds = max_seconds, .present = max_seconds > 0};
  struct hb_bytes *block = hb_block_encode(HB_BLOCK_EVENTS, from, to, max, entries, count);
  free(frames);
  free(entries);
  return block;
}

MAYBE_UNUSED static void put_block(struct fixture *fixture, uint64_t stream, int64_t from,
                                   int64_t to) {
  struct hb_bytes *block = make_block(from, to, NULL, 0);
  hb_write_put_block(fixture->write, stream, from, hb_bytes_view(block));
  hb_bytes_unref(block);
}

MAYBE_UNUSED static void put_bundle(struct fixture *fixture, struct hb_bundle_id id, int64_t from,
                                    int64_t to) {
  struct hb_bytes *block = make_block(from, to, NULL, 0);
  hb_write_put_bundle(fixture->write, id, hb_bytes_view(block));
  hb_bytes_unref(block);
}

/* A file in the folder of the store, with `text` in it. */
MAYBE_UNUSED static void make_file(const char *folder, const char *name, const void *bytes,
                                   size_t size) {
  char path[600];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, size, file), size);
  assert_int_equal(fclose(file), 0);
}

#endif
