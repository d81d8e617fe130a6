/* Decides what "durable" costs here: one synced put per batch, one after another, no more. */
#include <rocksdb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "bench/floor/floor.h"

/* The batch's number, big-endian, so that the log's order is the database's. */
static void put(struct hb_floor *floor, rocksdb_writeoptions_t *synced, uint64_t number,
                const struct hb_bytes *frames) {
  uint8_t key[8];
  for (size_t i = 0; i < sizeof key; i++) key[i] = (uint8_t)(number >> (56 - 8 * i));
  char *error = NULL;
  rocksdb_put(floor->db, synced, (const char *)key, sizeof key, (const char *)frames->data,
              frames->size, &error);
  if (!error) return;
  (void)fprintf(stderr, "floor: %s\n", error);
  abort();
}

static void relay(struct hb_floor *floor, const struct hb_floor_job *job) {
  pthread_mutex_lock(&floor->mutex);
  hb_reserve((void **)&floor->entries, &floor->cap, floor->count + 1, sizeof *floor->entries);
  floor->entries[floor->count++] = (struct hb_floor_entry){
      .frames = job->frames, .position = floor->next_position, .count = job->count};
  floor->next_position += job->count;
  pthread_mutex_unlock(&floor->mutex);
}

static void *write_all(void *context) {
  struct hb_floor *floor = context;
  rocksdb_writeoptions_t *synced = rocksdb_writeoptions_create();
  rocksdb_writeoptions_set_sync(synced, 1);
  for (uint64_t number = 0;; number++) {
    struct hb_node *node = hb_mailbox_take(floor->jobs, 1, UINT64_MAX);
    HB_ASSERT(node && !node->next);
    struct hb_floor_job *job = (struct hb_floor_job *)node;
    put(floor, synced, number, job->frames);
    relay(floor, job);
    hb_floor_job_written(job);
    for (size_t i = 0; i < HB_FLOOR_PUMPS; i++) hb_floor_pump_ring(&floor->pumps[i]);
  }
  return NULL;
}

bool hb_floor_open(struct hb_floor *floor, const char *path) {
  char *error = NULL;
  rocksdb_options_t *options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_options_set_compression(options, rocksdb_no_compression);
  floor->db = rocksdb_open(options, path, &error);
  rocksdb_options_destroy(options);
  if (error) {
    (void)fprintf(stderr, "floor: %s\n", error);
    return false;
  }
  floor->next_position = 1;
  floor->jobs = hb_mailbox_create(SIZE_MAX, NULL, NULL);
  pthread_mutex_init(&floor->mutex, NULL);
  int failed = pthread_create(&floor->writer, NULL, write_all, floor);
  HB_ASSERT(!failed);
  return true;
}

void hb_floor_submit(struct hb_floor *floor, struct hb_floor_job *job) {
  bool posted = hb_mailbox_try_post(floor->jobs, &job->node, 1);
  HB_ASSERT(posted);
}

size_t hb_floor_take(struct hb_floor *floor, size_t from, struct hb_floor_entry *out, size_t max) {
  size_t count = 0;
  pthread_mutex_lock(&floor->mutex);
  for (; count < max && from + count < floor->count; count++) {
    out[count] = floor->entries[from + count];
    (void)hb_bytes_ref(out[count].frames);
  }
  pthread_mutex_unlock(&floor->mutex);
  return count;
}
