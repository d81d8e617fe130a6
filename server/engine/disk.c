/* Decides what may be written with so much of the disk free.
 *
 *   OK       everything
 *   RESERVE  below max(disk_reserve, floor + 64 MiB) + 2 x held bytes: nothing new is held, and no
 *            index is written. Twice, since what is held is written once more when it is released,
 *            and the space of its bundles comes back later.
 *   FLOOR    below 64 MiB + wal_bytes_max: nothing but deletions. A start needs that much, for it
 *            writes the log as files before it removes it.
 *   LOST     a write failed for lack of space in spite of all that: see reopen.c
 *
 * A state is left only when there is a sixteenth more (at most 16 MiB) than where it is entered, so
 * that one file more or less does not make it come and go. */
#include <inttypes.h>
#include <stdlib.h>
#include <sys/statvfs.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "server/engine/engine_internal.h"

enum { FLOOR_BYTES = 64 << 20, HEADROOM_BYTES = 64 << 20, SLACK_BYTES_MAX = 16 << 20 };

static bool free_of_disk(void *context, const char *path, uint64_t *out) {
  (void)context;
  struct statvfs disk;
  if (statvfs(path, &disk)) return false;
  *out = (uint64_t)disk.f_bavail * disk.f_frsize;
  return true;
}

void hb_disk_open(struct hb_engine *engine, const char *path) {
  struct hb_disk *disk = &engine->disk;
  disk->path = hb_strdup(path);
  disk->free_bytes = engine->tuning.free_bytes ? engine->tuning.free_bytes : free_of_disk;
  disk->context = engine->tuning.free_context;
  disk->floor = FLOOR_BYTES + engine->limits.wal_bytes_max;
  disk->reserve = disk->floor + HEADROOM_BYTES;
  if (engine->limits.disk_reserve > disk->reserve) disk->reserve = engine->limits.disk_reserve;
  atomic_init(&disk->state, HB_DISK_OK);
  pthread_mutex_init(&disk->mutex, NULL);
}

void hb_disk_close(struct hb_engine *engine) {
  pthread_mutex_destroy(&engine->disk.mutex);
  free(engine->disk.path);
}

/* ---- who is told */

bool hb_engine_is_ingesting(const struct hb_engine *engine) {
  return !hb_disk_stops_writes(engine);
}

void hb_engine_on_ingest(struct hb_engine *engine, void (*changed)(void *context), void *context) {
  pthread_mutex_lock(&engine->disk.mutex);
  engine->disk.changed = changed;
  engine->disk.changed_context = context;
  pthread_mutex_unlock(&engine->disk.mutex);
}

static void tell(struct hb_disk *disk) {
  pthread_mutex_lock(&disk->mutex);
  if (disk->changed) disk->changed(disk->changed_context);
  pthread_mutex_unlock(&disk->mutex);
}

/* ---- states */

static uint64_t reserve_of(const struct hb_disk *disk) { return disk->reserve + 2 * disk->held; }

static bool is_below(const struct hb_disk *disk, uint64_t bytes, bool was_below) {
  uint64_t slack = bytes / 16 < SLACK_BYTES_MAX ? bytes / 16 : SLACK_BYTES_MAX;
  return disk->free < bytes + (was_below ? slack : 0);
}

static enum hb_disk_state state_now(const struct hb_disk *disk) {
  enum hb_disk_state before = atomic_load(&disk->state);
  if (is_below(disk, disk->floor, before >= HB_DISK_FLOOR)) return HB_DISK_FLOOR;
  if (is_below(disk, reserve_of(disk), before >= HB_DISK_RESERVE)) return HB_DISK_RESERVE;
  return HB_DISK_OK;
}

static void log_state(const struct hb_disk *disk, enum hb_disk_state state) {
  char path[512];
  (void)hb_log_quote(disk->path, path, sizeof path);
  switch (state) {
    case HB_DISK_OK:
      hb_log(HB_LOG_INFO, "disk_ok", "path=%s free_bytes=%" PRIu64 " reserve_bytes=%" PRIu64, path,
             disk->free, reserve_of(disk));
      break;
    case HB_DISK_RESERVE:
      hb_log(HB_LOG_WARN, "disk_reserve",
             "path=%s free_bytes=%" PRIu64 " reserve_bytes=%" PRIu64 " held_bytes=%" PRIu64
             " advice=\"nothing new is held: make room, or send what fills the gaps\"",
             path, disk->free, reserve_of(disk), disk->held);
      break;
    case HB_DISK_FLOOR:
      hb_log(HB_LOG_ERROR, "disk_floor",
             "path=%s free_bytes=%" PRIu64 " floor_bytes=%" PRIu64
             " advice=\"nothing is written: make room, delete streams that nobody needs\"",
             path, disk->free, disk->floor);
      break;
    case HB_DISK_LOST:
      break; /* hb_disk_lose has the cause */
  }
}

static void enter(struct hb_engine *engine, enum hb_disk_state state) {
  struct hb_disk *disk = &engine->disk;
  enum hb_disk_state before = atomic_exchange(&disk->state, state);
  if (state == before) return;
  hb_ordering_set_disk_reserve(engine->sequencer.core, state >= HB_DISK_RESERVE);
  hb_indexer_pause(engine, state != HB_DISK_OK);
  log_state(disk, state);
  if ((state >= HB_DISK_FLOOR) != (before >= HB_DISK_FLOOR)) tell(disk);
  if (state < HB_DISK_FLOOR && before >= HB_DISK_FLOOR) hb_processors_kick(engine);
}

/* ---- looking */

static bool read_free(struct hb_disk *disk) {
  disk->looked_ns = hb_clock_mono_ns();
  disk->written = 0;
  return disk->free_bytes(disk->context, disk->path, &disk->free);
}

void hb_disk_look(struct hb_engine *engine) {
  struct hb_disk *disk = &engine->disk;
  uint64_t age_ns = hb_clock_mono_ns() - disk->looked_ns;
  bool is_new = age_ns < engine->tuning.disk_look_ms * UINT64_C(1000000);
  if (is_new && disk->written < engine->tuning.disk_look_bytes) return;
  if (!read_free(disk)) return; /* then nothing is known that would be new */
  if (!hb_disk_is_lost(engine)) enter(engine, state_now(disk));
}

uint64_t hb_disk_due_ns(const struct hb_engine *engine) {
  const struct hb_disk *disk = &engine->disk;
  enum hb_disk_state state = atomic_load(&disk->state);
  if (engine->sequencer.fatal || state == HB_DISK_OK) return UINT64_MAX;
  return disk->looked_ns + engine->tuning.disk_look_ms * UINT64_C(1000000);
}

void hb_disk_note_write(struct hb_engine *engine, uint64_t bytes) { engine->disk.written += bytes; }

bool hb_disk_stops_writes(const struct hb_engine *engine) {
  return atomic_load(&engine->disk.state) >= HB_DISK_FLOOR;
}

bool hb_disk_is_lost(const struct hb_engine *engine) {
  return atomic_load(&engine->disk.state) == HB_DISK_LOST;
}

enum hb_code hb_err_disk(const struct hb_engine *engine, struct hb_err *err) {
  const struct hb_disk *disk = &engine->disk;
  if (hb_disk_is_lost(engine) && !is_below(disk, disk->floor, false)) {
    return hb_err_no_store(err);
  }
  return hb_err_set(err, HB_NO_SPACE, "DISK_FLOOR",
                    "disk: %" PRIu64 " bytes are free in '%.200s', writing needs %" PRIu64
                    " (64 MiB + wal_bytes_max); make room there, or delete streams",
                    disk->free, disk->path, disk->floor);
}

/* ---- lost and regained */

void hb_disk_lose(struct hb_engine *engine, const struct hb_err *err) {
  struct hb_disk *disk = &engine->disk;
  (void)read_free(disk);
  char path[512];
  char quoted[HB_ERR_MESSAGE_SIZE];
  hb_log(HB_LOG_ERROR, "disk_full",
         "path=%s free_bytes=%" PRIu64
         " cause=%s advice=\"make room: writing goes on by itself then\"",
         hb_log_quote(disk->path, path, sizeof path), disk->free,
         hb_log_quote(err->message, quoted, sizeof quoted));
  enter(engine, HB_DISK_LOST);
}

bool hb_disk_has_room(const struct hb_engine *engine, uint64_t wal_bytes) {
  return engine->disk.free >= FLOOR_BYTES + wal_bytes;
}

void hb_disk_regain(struct hb_engine *engine) {
  struct hb_disk *disk = &engine->disk;
  (void)read_free(disk);
  enter(engine, state_now(disk));
  /* enter compares with LOST: the new core is told in any case. */
  hb_ordering_set_disk_reserve(engine->sequencer.core, atomic_load(&disk->state) != HB_DISK_OK);
}
