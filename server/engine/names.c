/* Decides which stream a name or an id means. Sorted arrays: streams are at most streams_max, made
 * and deleted rarely, looked up for each call (names) and each touched stream of a commit (ids).
 *
 * Lock order: names, then a stream (listing copies configurations). */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "server/engine/engine.h"
#include "server/engine/names_internal.h"

void hb_names_init(struct hb_names *names) { pthread_mutex_init(&names->mutex, NULL); }

void hb_names_done(struct hb_names *names) {
  for (size_t i = 0; i < names->count; i++) hb_stream_unref(names->streams[i]);
  free(names->streams);
  names->streams = NULL;
  names->count = 0;
  pthread_mutex_destroy(&names->mutex);
}

/* Index of the first name >= `name`. The lock is held. */
static size_t lower_bound_locked(const struct hb_names *names, const char *name) {
  size_t low = 0;
  size_t high = names->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (strcmp(names->streams[middle]->name, name) < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

void hb_names_add(struct hb_names *names, struct hb_stream *stream) {
  pthread_mutex_lock(&names->mutex);
  size_t at = lower_bound_locked(names, stream->name);
  hb_reserve((void **)&names->streams, &names->cap, names->count + 1, sizeof *names->streams);
  memmove(names->streams + at + 1, names->streams + at,
          (names->count - at) * sizeof(struct hb_stream *));
  names->streams[at] = hb_stream_ref(stream);
  names->count++;
  pthread_mutex_unlock(&names->mutex);
}

void hb_names_remove(struct hb_names *names, struct hb_stream *stream) {
  pthread_mutex_lock(&names->mutex);
  size_t at = lower_bound_locked(names, stream->name);
  HB_ASSERT(at < names->count && names->streams[at] == stream);
  names->count--;
  memmove(names->streams + at, names->streams + at + 1,
          (names->count - at) * sizeof(struct hb_stream *));
  pthread_mutex_unlock(&names->mutex);
  hb_stream_unref(stream);
}

struct hb_stream *hb_names_find(struct hb_names *names, const char *name) {
  struct hb_stream *found = NULL;
  pthread_mutex_lock(&names->mutex);
  size_t at = lower_bound_locked(names, name);
  if (at < names->count && strcmp(names->streams[at]->name, name) == 0) {
    found = hb_stream_ref(names->streams[at]);
  }
  pthread_mutex_unlock(&names->mutex);
  return found;
}

size_t hb_names_list(struct hb_names *names, const char *prefix, const char *after,
                     struct hb_stream_config *out, size_t max, bool *out_more) {
  size_t prefix_size = strlen(prefix);
  size_t count = 0;
  bool more = false;
  pthread_mutex_lock(&names->mutex);
  size_t at = lower_bound_locked(names, strcmp(prefix, after) > 0 ? prefix : after);
  for (; at < names->count; at++) {
    struct hb_stream *stream = names->streams[at];
    if (strcmp(stream->name, after) == 0) continue;
    if (strncmp(stream->name, prefix, prefix_size) != 0) break;
    more = count == max;
    if (more) break;
    hb_stream_get_config(stream, &out[count++]);
  }
  pthread_mutex_unlock(&names->mutex);
  *out_more = more;
  return count;
}

void hb_registry_done(struct hb_registry *registry) {
  for (size_t i = 0; i < registry->count; i++) hb_stream_unref(registry->streams[i]);
  free(registry->streams);
  *registry = (struct hb_registry){0};
}

static size_t registry_index(const struct hb_registry *registry, uint64_t id) {
  size_t low = 0;
  size_t high = registry->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (registry->streams[middle]->id < id) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

void hb_registry_add(struct hb_registry *registry, struct hb_stream *stream) {
  HB_ASSERT(registry->count == 0 || registry->streams[registry->count - 1]->id < stream->id);
  hb_reserve((void **)&registry->streams, &registry->cap, registry->count + 1,
             sizeof *registry->streams);
  registry->streams[registry->count++] = hb_stream_ref(stream);
}

void hb_registry_remove(struct hb_registry *registry, uint64_t id) {
  size_t at = registry_index(registry, id);
  HB_ASSERT(at < registry->count && registry->streams[at]->id == id);
  struct hb_stream *stream = registry->streams[at];
  registry->count--;
  memmove(registry->streams + at, registry->streams + at + 1,
          (registry->count - at) * sizeof(struct hb_stream *));
  hb_stream_unref(stream);
}

struct hb_stream *hb_registry_find(const struct hb_registry *registry, uint64_t id) {
  size_t at = registry_index(registry, id);
  if (at == registry->count || registry->streams[at]->id != id) return NULL;
  return registry->streams[at];
}
