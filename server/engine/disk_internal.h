/* The disk: how much of it is free, and what may be written then. See disk.c. */
#ifndef HB_SERVER_ENGINE_DISK_INTERNAL_H
#define HB_SERVER_ENGINE_DISK_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct hb_engine;

/* In this order: each writes less than the one before. */
enum hb_disk_state {
  HB_DISK_OK,
  HB_DISK_RESERVE, /* nothing new is held, no index is written; what is held is released */
  HB_DISK_FLOOR,   /* nothing is written but deletions */
  HB_DISK_LOST     /* a write met a full disk: the store has to be opened again (reopen.c) */
};

/* Free bytes of the disk that has `path`; false: not known. The seam where tests fill a disk. */
typedef bool hb_free_bytes_fn(void *context, const char *path, uint64_t *out);

struct hb_disk {
  /* Immutable once open. */
  char *path; /* owned: the data folder */
  hb_free_bytes_fn *free_bytes;
  void *context;
  uint64_t floor;
  uint64_t reserve; /* without what is held */

  _Atomic enum hb_disk_state state; /* the sequencer writes */

  /* Sequencer's thread only (open.c before it runs). */
  uint64_t looked_ns;
  uint64_t written; /* bytes since then */
  uint64_t free;    /* as seen then */
  uint64_t held;    /* bytes of all bundles, as published */

  pthread_mutex_t mutex;
  void (*changed)(void *context); /* protected by mutex, as its context */
  void *changed_context;
};

void hb_disk_open(struct hb_engine *engine, const char *path);
void hb_disk_close(struct hb_engine *engine);

/* Look how much is free, where that was not just done. Sequencer's thread, as all below. */
void hb_disk_look(struct hb_engine *engine);
/* When to look again; UINT64_MAX: not before something is written. */
uint64_t hb_disk_due_ns(const struct hb_engine *engine);
void hb_disk_note_write(struct hb_engine *engine, uint64_t bytes);
/* Any thread. */
bool hb_disk_stops_writes(const struct hb_engine *engine);
bool hb_disk_is_lost(const struct hb_engine *engine);
/* Why nothing is written, and the way out. */
enum hb_code hb_err_disk(const struct hb_engine *engine, struct hb_err *err);

/* A write met a full disk, though there should have been room. */
void hb_disk_lose(struct hb_engine *engine, const struct hb_err *err);
/* Room to open a store with so much log. */
bool hb_disk_has_room(const struct hb_engine *engine, uint64_t wal_bytes);
/* The store is open again. */
void hb_disk_regain(struct hb_engine *engine);

#endif
