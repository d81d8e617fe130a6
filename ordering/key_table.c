/* Decides which keys stay in memory: a hash table per stream, and one list of idle keys over all
 * streams from which the longest unused is forgotten first. */
#include "ordering/key_table_internal.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "ordering/core_internal.h"
#include "ordering/per_key_internal.h"

enum { CAP_FIRST = 16, ALLOCATION_BYTES = 16 };

uint64_t hb_key_hash(struct hb_slice key) { return key.size ? XXH3_64bits(key.data, key.size) : 0; }

struct hb_slice hb_key_bytes(const struct hb_key_state *key) {
  return hb_slice_of(key->bytes, key->size);
}

static size_t memory_of(const struct hb_key_state *key) {
  return sizeof *key + key->size + ALLOCATION_BYTES;
}

/* ---- the table: open addressing, one step at a time */

static bool is_key(const struct hb_key_state *key, uint64_t hash, struct hb_slice bytes) {
  return key->hash == hash && hb_slice_equal(hb_key_bytes(key), bytes);
}

struct hb_key_state *hb_key_find(const struct hb_per_key *per_key, struct hb_slice bytes) {
  const struct hb_key_table *table = &per_key->table;
  if (!table->count) return NULL;
  uint64_t hash = hb_key_hash(bytes);
  size_t at = (size_t)hash & (table->cap - 1);
  while (table->slots[at] && !is_key(table->slots[at], hash, bytes)) {
    at = (at + 1) & (table->cap - 1);
  }
  return table->slots[at];
}

static void put(struct hb_key_table *table, struct hb_key_state *key) {
  size_t at = (size_t)key->hash & (table->cap - 1);
  while (table->slots[at]) at = (at + 1) & (table->cap - 1);
  table->slots[at] = key;
}

static void grow(struct hb_ordering *core, struct hb_key_table *table) {
  struct hb_key_table grown = {.cap = table->cap ? table->cap * 2 : CAP_FIRST,
                               .count = table->count};
  grown.slots = (struct hb_key_state **)hb_calloc(grown.cap, sizeof(struct hb_key_state *));
  for (size_t i = 0; i < table->cap; i++) {
    if (table->slots[i]) put(&grown, table->slots[i]);
  }
  core->index_bytes += (grown.cap - table->cap) * sizeof(struct hb_key_state *);
  free((void *)table->slots);
  *table = grown;
}

struct hb_key_state *hb_key_add(struct hb_ordering *core, struct hb_per_key *per_key,
                                struct hb_slice bytes) {
  struct hb_key_table *table = &per_key->table;
  if ((table->count + 1) * 4 > table->cap * 3) grow(core, table);
  struct hb_key_state *key = hb_alloc(sizeof *key + bytes.size);
  *key = (struct hb_key_state){
      .owner = per_key, .hash = hb_key_hash(bytes), .size = (uint32_t)bytes.size};
  if (bytes.size) memcpy(key->bytes, bytes.data, bytes.size);
  put(table, key);
  table->count++;
  core->index_bytes += memory_of(key);
  return key;
}

/* Those behind it move up, so that no search ends at the hole. */
static void take_out(struct hb_key_table *table, const struct hb_key_state *key) {
  size_t mask = table->cap - 1;
  size_t hole = (size_t)key->hash & mask;
  while (table->slots[hole] != key) hole = (hole + 1) & mask;
  for (size_t at = (hole + 1) & mask; table->slots[at]; at = (at + 1) & mask) {
    size_t home = (size_t)table->slots[at]->hash & mask;
    if (((at - home) & mask) < ((at - hole) & mask)) continue;
    table->slots[hole] = table->slots[at];
    hole = at;
  }
  table->slots[hole] = NULL;
  table->count--;
}

/* ---- all of them */

/* The lowest bit first. */
static uint64_t turn_round(uint64_t bits) {
  bits = (bits >> 1 & 0x5555555555555555) | (bits & 0x5555555555555555) << 1;
  bits = (bits >> 2 & 0x3333333333333333) | (bits & 0x3333333333333333) << 2;
  bits = (bits >> 4 & 0x0f0f0f0f0f0f0f0f) | (bits & 0x0f0f0f0f0f0f0f0f) << 4;
  return __builtin_bswap64(bits);
}

uint64_t hb_key_order(const struct hb_key_state *key) { return turn_round(key->hash); }

static int compare(const void *a, const void *b) {
  const struct hb_key_state *left = *(struct hb_key_state *const *)a;
  const struct hb_key_state *right = *(struct hb_key_state *const *)b;
  uint64_t x = hb_key_order(left);
  uint64_t y = hb_key_order(right);
  if (x != y) return x < y ? -1 : 1;
  return hb_slice_compare(hb_key_bytes(left), hb_key_bytes(right));
}

/* Keys at home in one slot lie in it and behind it, before the next empty one. */
void hb_key_cell_read(const struct hb_per_key *per_key, struct hb_key_cell *cell) {
  const struct hb_key_table *table = &per_key->table;
  size_t mask = table->cap - 1;
  size_t home = (size_t)turn_round(cell->order) & mask;
  cell->count = 0;
  for (size_t at = home; table->slots[at]; at = (at + 1) & mask) {
    if (((size_t)table->slots[at]->hash & mask) != home) continue;
    hb_reserve((void **)&cell->keys, &cell->cap, cell->count + 1, sizeof(struct hb_key_state *));
    cell->keys[cell->count++] = table->slots[at];
  }
  if (cell->count > 1) qsort(cell->keys, cell->count, sizeof(struct hb_key_state *), compare);
}

bool hb_key_cell_next(const struct hb_per_key *per_key, struct hb_key_cell *cell) {
  uint64_t cells = per_key->table.cap;            /* a power of two, at least 16 */
  uint64_t orders = UINT64_MAX / cells + 1;       /* of one */
  uint64_t first = cell->order / orders * orders; /* `order` may lie within one */
  cell->order = first + orders;
  return cell->order != 0;
}

void hb_key_cell_done(struct hb_key_cell *cell) { free((void *)cell->keys); }

/* ---- idle keys */

static void link_idle(struct hb_ordering *core, struct hb_key_state *key) {
  struct hb_key_idle *idle = &core->idle_keys;
  key->flags |= HB_KEY_IDLE;
  key->newer = NULL;
  key->older = idle->newest;
  if (idle->newest) {
    idle->newest->newer = key;
  } else {
    idle->oldest = key;
  }
  idle->newest = key;
  idle->bytes += memory_of(key);
  core->index_bytes -= memory_of(key);
}

void hb_key_use(struct hb_ordering *core, struct hb_key_state *key) {
  if (!(key->flags & HB_KEY_IDLE)) return;
  struct hb_key_idle *idle = &core->idle_keys;
  if (key->older) {
    key->older->newer = key->newer;
  } else {
    idle->oldest = key->newer;
  }
  if (key->newer) {
    key->newer->older = key->older;
  } else {
    idle->newest = key->older;
  }
  key->flags &= ~(uint32_t)HB_KEY_IDLE;
  idle->bytes -= memory_of(key);
  core->index_bytes += memory_of(key);
}

static void forget(struct hb_ordering *core, struct hb_key_state *key) {
  hb_key_use(core, key);
  take_out(&key->owner->table, key);
  core->index_bytes -= memory_of(key);
  free(key);
}

void hb_key_settle(struct hb_ordering *core, struct hb_key_state *key) {
  bool needed = key->pins || key->group || key->asides || hb_key_list_count(&key->held) ||
                key->flags & (HB_KEY_READY | HB_KEY_CHANGED | HB_KEY_IDLE);
  if (needed) return;
  if (key->flags & HB_KEY_KNOWN) {
    link_idle(core, key);
  } else {
    forget(core, key);
  }
}

void hb_key_evict(struct hb_ordering *core) {
  while (core->idle_keys.bytes > core->options.limits.key_cache_max) {
    forget(core, core->idle_keys.oldest);
  }
}

void hb_key_table_done(struct hb_ordering *core, struct hb_per_key *per_key) {
  struct hb_key_table *table = &per_key->table;
  for (size_t i = 0; i < table->cap; i++) {
    struct hb_key_state *key = table->slots[i];
    if (!key) continue;
    hb_key_use(core, key);
    hb_key_list_done(&key->held, &core->index_bytes);
    core->index_bytes -= memory_of(key);
    free(key);
  }
  core->index_bytes -= table->cap * sizeof(struct hb_key_state *);
  free((void *)table->slots);
  *table = (struct hb_key_table){0};
}
