/* Decides which states stay in memory: those used last, and all that the store does not have. */
#include "processing/cache_internal.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/alloc.h"

enum { SLOTS_MIN = 256 };

void hb_cache_init(struct hb_cache *cache, const struct hb_state_source *source, size_t budget) {
  *cache = (struct hb_cache){.source = source, .budget = budget, .slots_count = SLOTS_MIN};
  cache->slots = hb_calloc(SLOTS_MIN, sizeof *cache->slots);
}

static size_t weight(const struct hb_state *state) {
  return sizeof *state + state->key_size + state->name_size + state->value_size +
         2 * sizeof(void *);
}

static void destroy(struct hb_state *state) {
  free(state->value);
  free(state);
}

void hb_cache_done(struct hb_cache *cache) {
  hb_cache_undo(cache);
  for (struct hb_state *state = cache->newest; state;) {
    struct hb_state *older = state->older;
    destroy(state);
    state = older;
  }
  free(cache->undos);
  free(cache->slots);
  hb_buf_done(&cache->scratch);
}

/* ---- by (key, name) */

static uint32_t hash_of(struct hb_slice key, struct hb_slice name) {
  XXH64_hash_t hash = XXH3_64bits(key.data, key.size);
  if (name.size) hash = XXH3_64bits_withSeed(name.data, name.size, hash);
  return (uint32_t)(hash ^ hash >> 32);
}

static bool is(const struct hb_state *state, uint32_t hash, struct hb_slice key,
               struct hb_slice name) {
  return state->hash == hash && state->key_size == key.size && state->name_size == name.size &&
         (!key.size || memcmp(state->id, key.data, key.size) == 0) &&
         (!name.size || memcmp(state->id + key.size, name.data, name.size) == 0);
}

static struct hb_state **slot_of(const struct hb_cache *cache, uint32_t hash) {
  return &cache->slots[hash & (cache->slots_count - 1)];
}

static void grow(struct hb_cache *cache) {
  size_t count = cache->slots_count * 2;
  struct hb_state **old = cache->slots;
  cache->slots = hb_calloc(count, sizeof *cache->slots);
  size_t old_count = cache->slots_count;
  cache->slots_count = count;
  for (size_t i = 0; i < old_count; i++) {
    for (struct hb_state *state = old[i]; state;) {
      struct hb_state *next = state->hash_next;
      struct hb_state **slot = slot_of(cache, state->hash);
      state->hash_next = *slot;
      *slot = state;
      state = next;
    }
  }
  free(old);
}

/* ---- in order of use */

static void unlink_use(struct hb_cache *cache, struct hb_state *state) {
  if (state->newer) {
    state->newer->older = state->older;
  } else {
    cache->newest = state->older;
  }
  if (state->older) {
    state->older->newer = state->newer;
  } else {
    cache->oldest = state->newer;
  }
}

static void link_newest(struct hb_cache *cache, struct hb_state *state) {
  state->newer = NULL;
  state->older = cache->newest;
  if (cache->newest) cache->newest->newer = state;
  cache->newest = state;
  if (!cache->oldest) cache->oldest = state;
}

static struct hb_state *find(struct hb_cache *cache, uint32_t hash, struct hb_slice key,
                             struct hb_slice name) {
  struct hb_state *state = *slot_of(cache, hash);
  while (state && !is(state, hash, key, name)) state = state->hash_next;
  if (state && state != cache->newest) {
    unlink_use(cache, state);
    link_newest(cache, state);
  }
  return state;
}

/* Known to be absent. */
static struct hb_state *add(struct hb_cache *cache, uint32_t hash, struct hb_slice key,
                            struct hb_slice name) {
  if (cache->count >= cache->slots_count) grow(cache);
  struct hb_state *state = hb_alloc(sizeof *state + key.size + name.size);
  *state = (struct hb_state){
      .hash = hash, .key_size = (uint32_t)key.size, .name_size = (uint32_t)name.size};
  if (key.size) memcpy(state->id, key.data, key.size);
  if (name.size) memcpy(state->id + key.size, name.data, name.size);
  struct hb_state **slot = slot_of(cache, hash);
  state->hash_next = *slot;
  *slot = state;
  link_newest(cache, state);
  cache->count++;
  cache->bytes += weight(state);
  return state;
}

static void drop(struct hb_cache *cache, struct hb_state *state) {
  struct hb_state **at = slot_of(cache, state->hash);
  while (*at != state) at = &(*at)->hash_next;
  *at = state->hash_next;
  unlink_use(cache, state);
  cache->count--;
  cache->bytes -= weight(state);
  destroy(state);
}

/* ---- reading and changing */

static void set_value(struct hb_cache *cache, struct hb_state *state, bool present,
                      struct hb_slice value) {
  cache->bytes -= weight(state);
  state->present = present;
  state->value_size = present ? value.size : 0;
  state->value = state->value_size ? hb_memdup(value.data, value.size) : NULL;
  cache->bytes += weight(state);
}

enum hb_code hb_cache_get(struct hb_cache *cache, struct hb_slice key, struct hb_slice name,
                          struct hb_state **out, struct hb_err *err) {
  uint32_t hash = hash_of(key, name);
  struct hb_state *state = find(cache, hash, key, name);
  if (state) {
    cache->hits++;
    *out = state;
    return HB_OK;
  }
  cache->misses++;
  bool found = false;
  hb_buf_clear(&cache->scratch);
  enum hb_code code =
      cache->source->get(cache->source->context, key, name, &found, &cache->scratch, err);
  if (code != HB_OK) return code;
  state = add(cache, hash, key, name);
  if (found) set_value(cache, state, true, hb_buf_view(&cache->scratch));
  *out = state;
  return HB_OK;
}

void hb_cache_put(struct hb_cache *cache, struct hb_slice key, struct hb_slice name, bool present,
                  struct hb_slice value) {
  uint32_t hash = hash_of(key, name);
  struct hb_state *state = find(cache, hash, key, name);
  bool is_new = !state;
  if (is_new) state = add(cache, hash, key, name);
  hb_reserve((void **)&cache->undos, &cache->undos_cap, cache->undos_count + 1,
             sizeof *cache->undos);
  cache->undos[cache->undos_count++] = (struct hb_undo){.state = state,
                                                        .forget = is_new,
                                                        .was_dirty = state->dirty,
                                                        .present = state->present,
                                                        .value_size = state->value_size,
                                                        .value = state->value};
  set_value(cache, state, present, value);
  cache->dirty_bytes += weight(state);
  if (state->dirty) return;
  state->dirty = true;
  state->dirty_next = cache->dirty;
  cache->dirty = state;
  cache->dirty_count++;
}

/* ---- the end of a call */

static void shrink(struct hb_cache *cache) {
  struct hb_state *state = cache->oldest;
  while (state && cache->bytes > cache->budget) {
    struct hb_state *newer = state->newer;
    if (!state->dirty) drop(cache, state);
    state = newer;
  }
}

void hb_cache_keep(struct hb_cache *cache) {
  for (size_t i = 0; i < cache->undos_count; i++) free(cache->undos[i].value);
  cache->undos_count = 0;
  /* Dirty entries can't go: don't walk over them for every call. */
  if (cache->bytes > cache->budget && cache->dirty_count < cache->count / 2) shrink(cache);
}

/* The state that was changed last is the first in the list of dirty ones. */
static void undo_one(struct hb_cache *cache, struct hb_undo *undo) {
  struct hb_state *state = undo->state;
  if (!undo->was_dirty) {
    cache->dirty = state->dirty_next;
    cache->dirty_count--;
    state->dirty = false;
  }
  cache->bytes -= weight(state);
  free(state->value);
  state->present = undo->present;
  state->value = undo->value;
  state->value_size = undo->value_size;
  cache->bytes += weight(state);
  if (undo->forget) drop(cache, state);
}

void hb_cache_undo(struct hb_cache *cache) {
  while (cache->undos_count > 0) undo_one(cache, &cache->undos[--cache->undos_count]);
}

void hb_cache_committed(struct hb_cache *cache) {
  for (struct hb_state *state = cache->dirty; state; state = state->dirty_next) {
    state->dirty = false;
  }
  cache->dirty = NULL;
  cache->dirty_count = 0;
  cache->dirty_bytes = 0;
  shrink(cache);
}
