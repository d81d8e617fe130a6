/* Decides the number of each sender's text: one text has one number for the life of the store;
 * the first peers_max are told apart, later ones are 0, 'other'. */
#include <stdbool.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "server/engine/peers_internal.h"
#include "storage/read.h"

/* FNV-1a: short texts, in memory only. */
static uint64_t hash(struct hb_slice text) {
  uint64_t value = UINT64_C(14695981039346656037);
  for (size_t i = 0; i < text.size; i++) value = (value ^ text.data[i]) * UINT64_C(1099511628211);
  return value;
}

/* The slot that has `text`, or the free one where it belongs. */
static size_t slot_of(const struct hb_peers *peers, struct hb_slice text) {
  size_t slot = (size_t)hash(text) & (peers->slots_cap - 1);
  while (peers->slots[slot] != 0 && !hb_slice_equal(peers->texts[peers->slots[slot] - 1], text)) {
    slot = (slot + 1) & (peers->slots_cap - 1);
  }
  return slot;
}

static void grow_slots(struct hb_peers *peers) {
  if (peers->slots && peers->count * 2 < peers->slots_cap) return;
  free(peers->slots);
  peers->slots_cap = peers->slots_cap ? peers->slots_cap * 2 : 64;
  while (peers->slots_cap <= peers->count * 2) peers->slots_cap *= 2;
  peers->slots = hb_calloc(peers->slots_cap, sizeof *peers->slots);
  for (size_t i = 0; i < peers->count; i++) {
    if (!peers->texts[i].data) continue;
    peers->slots[slot_of(peers, peers->texts[i])] = (uint32_t)(i + 1);
  }
}

/* Give `text` the number `peer`. */
static void insert(struct hb_peers *peers, uint32_t peer, struct hb_slice text) {
  hb_reserve((void **)&peers->texts, &peers->cap, peer, sizeof *peers->texts);
  while (peers->count < peer) peers->texts[peers->count++] = (struct hb_slice){0};
  struct hb_slice *mine = &peers->texts[peer - 1];
  free((void *)(uintptr_t)mine->data);
  *mine = hb_slice_of(hb_memdup(text.data, text.size), text.size);
  grow_slots(peers);
  peers->slots[slot_of(peers, text)] = peer;
}

static bool load(void *context, uint32_t peer, struct hb_slice text) {
  struct hb_peers *peers = context;
  if (peer > 0 && peer <= peers->max) insert(peers, peer, text);
  return true;
}

enum hb_code hb_peers_open(struct hb_peers *peers, struct hb_store *store, size_t max,
                           struct hb_err *err) {
  pthread_mutex_init(&peers->mutex, NULL);
  peers->max = max;
  grow_slots(peers);
  enum hb_code code = hb_peer_each(store, load, peers, err);
  peers->written = peers->count;
  return code;
}

static bool count_up(void *context, uint32_t peer, struct hb_slice text) {
  (void)text;
  size_t *highest = context;
  if (peer > *highest) *highest = peer;
  return true;
}

/* They are written in the order of their numbers, so those that are there come first. */
enum hb_code hb_peers_reload(struct hb_peers *peers, struct hb_store *store, struct hb_err *err) {
  size_t highest = 0;
  enum hb_code code = hb_peer_each(store, count_up, &highest, err);
  if (code != HB_OK) return code;
  pthread_mutex_lock(&peers->mutex);
  peers->written = highest < peers->count ? highest : peers->count;
  pthread_mutex_unlock(&peers->mutex);
  return HB_OK;
}

void hb_peers_close(struct hb_peers *peers) {
  if (!peers->slots) return;
  for (size_t i = 0; i < peers->count; i++) free((void *)(uintptr_t)peers->texts[i].data);
  free(peers->texts);
  free(peers->slots);
  peers->slots = NULL;
  pthread_mutex_destroy(&peers->mutex);
}

uint32_t hb_peers_intern(struct hb_peers *peers, struct hb_slice text) {
  pthread_mutex_lock(&peers->mutex);
  uint32_t peer = peers->slots[slot_of(peers, text)];
  if (peer == 0 && peers->count < peers->max) {
    peer = (uint32_t)(peers->count + 1);
    insert(peers, peer, text);
  }
  pthread_mutex_unlock(&peers->mutex);
  return peer;
}

void hb_peers_text(struct hb_peers *peers, uint32_t peer, struct hb_buf *out) {
  pthread_mutex_lock(&peers->mutex);
  if (peer > 0 && peer <= peers->count) {
    struct hb_slice text = peers->texts[peer - 1];
    hb_buf_append(out, text.data, text.size);
  }
  pthread_mutex_unlock(&peers->mutex);
}

bool hb_peers_put(struct hb_peers *peers, struct hb_write *write) {
  pthread_mutex_lock(&peers->mutex);
  bool any = peers->written < peers->count;
  for (; peers->written < peers->count; peers->written++) {
    hb_write_put_peer(write, (uint32_t)(peers->written + 1), peers->texts[peers->written]);
  }
  pthread_mutex_unlock(&peers->mutex);
  return any;
}
