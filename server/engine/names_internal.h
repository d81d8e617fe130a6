/* Streams by name (any thread) and by id (the sequencer's). */
#ifndef HB_SERVER_ENGINE_NAMES_INTERNAL_H
#define HB_SERVER_ENGINE_NAMES_INTERNAL_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "server/engine/stream_internal.h"

/* Sorted by name; one reference per stream. */
struct hb_names {
  pthread_mutex_t mutex;
  struct hb_stream **streams; /* protected by mutex, as the rest */
  size_t count;
  size_t cap;
};

void hb_names_init(struct hb_names *names);
void hb_names_done(struct hb_names *names);
void hb_names_add(struct hb_names *names, struct hb_stream *stream);
void hb_names_remove(struct hb_names *names, struct hb_stream *stream);
/* A reference, or NULL. */
struct hb_stream *hb_names_find(struct hb_names *names, const char *name);
size_t hb_names_list(struct hb_names *names, const char *prefix, const char *after,
                     struct hb_stream_config *out, size_t max, bool *out_more);

/* Ascending by id; one reference per stream. Not locked. */
struct hb_registry {
  struct hb_stream **streams;
  size_t count;
  size_t cap;
};

void hb_registry_done(struct hb_registry *registry);
/* The id is above every one before. */
void hb_registry_add(struct hb_registry *registry, struct hb_stream *stream);
void hb_registry_remove(struct hb_registry *registry, uint64_t id);
/* Borrowed, or NULL. */
struct hb_stream *hb_registry_find(const struct hb_registry *registry, uint64_t id);

#endif
