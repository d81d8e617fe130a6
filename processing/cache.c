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

/* What the allocator takes for so many bytes, about. */
static size_t taken(size_t size) { return (size + 8 + 15) & ~(size_t)15; }

static bool is_apart(const struct hb_state *state) { return state->value_size > state->room; }

static uint8_t *value_apart(const struct hb_state *state) {
  uint8_t *value = NULL;
  if (is_apart(state)) memcpy(&value, state->bytes, sizeof value);
  return value;
}

static size_t weight(const struct hb_state *state) {
  size_t size = sizeof *state + state->room + state->key_size + state->name_size;
  return taken(size) + (is_apart(state) ? taken(state->value_size) : 0) + sizeof(void *);
}

static void destroy(struct hb_state *state) {
  free(value_apart(state));
  free(state);
}

void hb_cache_done(struct hb_cache *cache) {
  hb_cache_undo(cache);
  for (size_t i = 0; i < cache->slots_count; i++) {
    for (struct hb_state *state = cache->slots[i]; state;) {
      struct hb_state *next = state->hash_next;
      destroy(state);
      state = next;
    }
  }
  free(cache->undos);
  free(cache->slots);
  free(cache->dirty);
  hb_buf_done(&cache->before);
  hb_buf_done(&cache->scratch);
}

/* ---- by (key, name) */

static uint32_t hash_of(struct hb_slice key, struct hb_slice name) {
  XXH64_hash_t hash = XXH3_64bits(key.data, key.size);
  if (name.size) hash = XXH3_64bits_withSeed(name.data, name.size, hash);
  return (uint32_t)(hash ^ hash >> 32);
}

static bool is(const struct hb_state *state, struct hb_slice key, struct hb_slice name) {
  const uint8_t *id = state->bytes + state->room;
  return state->key_size == key.size && state->name_size == name.size &&
         (!key.size || memcmp(id, key.data, key.size) == 0) &&
         (!name.size || memcmp(id + key.size, name.data, name.size) == 0);
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

static struct hb_state *find(struct hb_cache *cache, uint32_t hash, struct hb_slice key,
                             struct hb_slice name) {
  struct hb_state *state = *slot_of(cache, hash);
  while (state && !(state->hash == hash && is(state, key, name))) state = state->hash_next;
  if (state) state->used = true;
  cache->last = state;
  return state;
}

/* As much room for a value as the allocator gives anyway, and at least for an address. */
static uint8_t room_of(size_t ids_size) {
  enum { ROOM_MAX = 248 };
  size_t least = sizeof(struct hb_state) + ids_size + sizeof(uint8_t *);
  size_t room = (taken(least) - 8 - sizeof(struct hb_state) - ids_size) & ~(size_t)7;
  return (uint8_t)(room < ROOM_MAX ? room : ROOM_MAX);
}

/* Known to be absent. */
static struct hb_state *add(struct hb_cache *cache, uint32_t hash, struct hb_slice key,
                            struct hb_slice name) {
  if (cache->count >= cache->slots_count) grow(cache);
  uint8_t room = room_of(key.size + name.size);
  struct hb_state *state = hb_alloc(sizeof *state + room + key.size + name.size);
  *state = (struct hb_state){.hash = hash,
                             .key_size = (uint32_t)key.size,
                             .name_size = (uint16_t)name.size,
                             .room = room,
                             .used = true};
  if (key.size) memcpy(state->bytes + room, key.data, key.size);
  if (name.size) memcpy(state->bytes + room + key.size, name.data, name.size);
  struct hb_state **slot = slot_of(cache, hash);
  state->hash_next = *slot;
  *slot = state;
  cache->last = state;
  cache->count++;
  cache->bytes += weight(state);
  return state;
}

static void drop(struct hb_cache *cache, struct hb_state *state) {
  struct hb_state **at = slot_of(cache, state->hash);
  while (*at != state) at = &(*at)->hash_next;
  *at = state->hash_next;
  if (cache->last == state) cache->last = NULL;
  cache->count--;
  cache->bytes -= weight(state);
  destroy(state);
}

/* In two steps, for where a state lies is known when its slot is here. */
void hb_cache_expect(struct hb_cache *cache, struct hb_slice key) {
  uint32_t hash = hash_of(key, (struct hb_slice){NULL, 0});
  __builtin_prefetch(slot_of(cache, hash));
  unsigned at = cache->expected_count++;
  __builtin_prefetch(
      *slot_of(cache, cache->expected[(at + HB_CACHE_EXPECTED / 2) % HB_CACHE_EXPECTED]));
  cache->expected[at % HB_CACHE_EXPECTED] = hash;
}

/* ---- reading and changing */

/* What it had is not its own any more. The value may lie in the state. */
static void set_value(struct hb_state *state, bool present, struct hb_slice value) {
  size_t size = present ? value.size : 0;
  if (size > state->room) {
    uint8_t *apart = hb_memdup(value.data, size);
    memcpy(state->bytes, &apart, sizeof apart);
  } else if (size) {
    memmove(state->bytes, value.data, size);
  }
  state->present = present;
  state->value_size = (uint32_t)size;
}

static enum hb_code read(struct hb_cache *cache, struct hb_slice key, struct hb_slice name,
                         bool *out_found, struct hb_err *err) {
  const struct hb_state_source *source = cache->source;
  hb_buf_clear(&cache->scratch);
  if (cache->knows == HB_CACHE_NOT_ASKED) {
    bool any = true;
    const struct hb_slice none = {NULL, 0};
    enum hb_code code = HB_OK;
    if (source->next_key) {
      code = source->next_key(source->context, false, none, &any, &cache->scratch, err);
    }
    if (code != HB_OK) return code;
    cache->knows = any ? HB_CACHE_SOME : HB_CACHE_ALL;
    hb_buf_clear(&cache->scratch);
  }
  if (cache->knows == HB_CACHE_ALL) return HB_OK;
  return source->get(source->context, key, name, out_found, &cache->scratch, err);
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
  enum hb_code code = read(cache, key, name, &found, err);
  if (code != HB_OK) return code;
  state = add(cache, hash, key, name);
  if (found) {
    cache->bytes -= weight(state);
    set_value(state, true, hb_buf_view(&cache->scratch));
    cache->bytes += weight(state);
  }
  *out = state;
  return HB_OK;
}

/* The state's value is the undo's afterwards. */
static void note_before(struct hb_cache *cache, struct hb_state *state, bool forget) {
  hb_reserve((void **)&cache->undos, &cache->undos_cap, cache->undos_count + 1,
             sizeof *cache->undos);
  cache->undos[cache->undos_count++] = (struct hb_undo){.state = state,
                                                        .forget = forget,
                                                        .was_dirty = state->dirty,
                                                        .present = state->present,
                                                        .value_size = state->value_size,
                                                        .value = value_apart(state),
                                                        .offset = cache->before.size};
  if (!is_apart(state)) hb_buf_append(&cache->before, state->bytes, state->value_size);
}

void hb_cache_put(struct hb_cache *cache, struct hb_slice key, struct hb_slice name, bool present,
                  struct hb_slice value) {
  struct hb_state *state = cache->last;
  bool is_new = false;
  if (!state || !is(state, key, name)) {
    uint32_t hash = hash_of(key, name);
    state = find(cache, hash, key, name);
    is_new = !state;
    if (is_new) state = add(cache, hash, key, name);
  }
  note_before(cache, state, is_new);
  size_t before = weight(state);
  set_value(state, present, value);
  size_t now = weight(state);
  cache->bytes += now - before;
  if (state->dirty) {
    if (now > before) cache->dirty_bytes += now - before;
    return;
  }
  cache->dirty_bytes += now;
  state->dirty = true;
  hb_reserve((void **)&cache->dirty, &cache->dirty_cap, cache->dirty_count + 1,
             sizeof(struct hb_state *));
  cache->dirty[cache->dirty_count++] = state;
}

/* ---- the end of a call */

/* From one slot, what was not used since the hand came by last. */
static void sweep(struct hb_cache *cache, size_t slot) {
  for (struct hb_state *state = cache->slots[slot]; state;) {
    struct hb_state *next = state->hash_next;
    if (!state->dirty && !state->used) {
      if (state->present) cache->knows = HB_CACHE_SOME;
      drop(cache, state);
    } else {
      state->used = false;
    }
    state = next;
  }
}

/* After two rounds only dirty ones are left. */
static void shrink(struct hb_cache *cache) {
  for (size_t i = 0; i < 2 * cache->slots_count && cache->bytes > cache->budget; i++) {
    cache->hand = (cache->hand + 1) & (cache->slots_count - 1);
    sweep(cache, cache->hand);
  }
}

void hb_cache_keep(struct hb_cache *cache) {
  for (size_t i = 0; i < cache->undos_count; i++) free(cache->undos[i].value);
  cache->undos_count = 0;
  hb_buf_clear(&cache->before);
  /* Dirty entries can't go: don't walk over them for every call. */
  if (cache->bytes > cache->budget && cache->dirty_count < cache->count / 2) shrink(cache);
}

/* The state that was changed last is the last of the dirty ones. */
static void undo_one(struct hb_cache *cache, const struct hb_undo *undo) {
  struct hb_state *state = undo->state;
  if (!undo->was_dirty) {
    cache->dirty_count--;
    state->dirty = false;
  }
  cache->bytes -= weight(state);
  free(value_apart(state));
  state->present = undo->present;
  state->value_size = undo->value_size;
  if (undo->value) {
    memcpy(state->bytes, &undo->value, sizeof undo->value);
  } else if (undo->value_size) {
    memcpy(state->bytes, cache->before.data + undo->offset, undo->value_size);
  }
  cache->bytes += weight(state);
  if (undo->forget) drop(cache, state);
}

void hb_cache_undo(struct hb_cache *cache) {
  while (cache->undos_count > 0) undo_one(cache, &cache->undos[--cache->undos_count]);
  hb_buf_clear(&cache->before);
}

void hb_cache_committed(struct hb_cache *cache) {
  for (size_t i = 0; i < cache->dirty_count; i++) cache->dirty[i]->dirty = false;
  cache->dirty_count = 0;
  cache->dirty_bytes = 0;
  shrink(cache);
}
