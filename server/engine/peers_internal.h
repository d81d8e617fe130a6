/* Who sent, as numbers: texts interned in the store, so that a receipt is 4 bytes. */
#ifndef HB_SERVER_ENGINE_PEERS_INTERNAL_H
#define HB_SERVER_ENGINE_PEERS_INTERNAL_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/slice.h"
#include "storage/store.h"
#include "storage/write.h"

struct hb_peers {
  pthread_mutex_t mutex;
  /* Protected by mutex. Peer n is texts[n - 1]. */
  struct hb_slice *texts; /* owned; data NULL where a number has no text */
  size_t count;
  size_t cap;
  size_t max;
  size_t written;   /* peers up to this number were put into a write */
  uint32_t *slots;  /* open addressing; number of a peer, 0 = free */
  size_t slots_cap; /* a power of two */
};

/* Load what the store has. */
HB_MUST_CHECK enum hb_code hb_peers_open(struct hb_peers *peers, struct hb_store *store, size_t max,
                                         struct hb_err *err);
/* The store was opened again: what it does not have is put into a write once more. */
HB_MUST_CHECK enum hb_code hb_peers_reload(struct hb_peers *peers, struct hb_store *store,
                                           struct hb_err *err);
void hb_peers_close(struct hb_peers *peers);
/* Any thread. 0 where the table is full. */
uint32_t hb_peers_intern(struct hb_peers *peers, struct hb_slice text);
/* Any thread. The text is appended; nothing for a number without one. */
void hb_peers_text(struct hb_peers *peers, uint32_t peer, struct hb_buf *out);
/* Put rows that no write had yet: a batch's peers were interned before it was handed in, so they
 * are durable no later than its receipts. Sequencer's thread. Returns whether there were any. */
bool hb_peers_put(struct hb_peers *peers, struct hb_write *write);

#endif
