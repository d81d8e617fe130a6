/* The events that the server refused with WINDOW_FULL, kept to be sent again.
 *
 * They go again lowest sequence first, since the lowest are what the gaps wait for, and only when
 * there is a reason to hope: complete_to moved, a retry was taken, or a limit changed. Pure: the
 * caller has the clock. */
#ifndef HB_CLIENT_WINDOW_H
#define HB_CLIENT_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

struct hbc_refused {
  int64_t sequence;
  uint64_t serial; /* among equal sequences the first refused goes first */
  uint64_t index;  /* the caller's */
  uint8_t *frame;  /* owned */
  uint32_t size;
  int reason;
};

/* Zeroed = empty and nothing known. */
struct hbc_window {
  struct hbc_refused *heap; /* owned; lowest (sequence, serial) first */
  size_t count;
  size_t cap;
  size_t bytes; /* frames and what each entry costs */
  uint64_t serial;

  bool has_complete_to;
  int64_t complete_to;
  bool has_end;
  int64_t end;       /* a sequence at or above it is refused as AHEAD */
  bool hope;         /* there is a reason to send again */
  uint64_t moved_ms; /* when complete_to moved, or the first event was refused, if later */
};

void hbc_window_done(struct hbc_window *window);
/* The frame is copied. `now_ms` 0: it was refused before, the time without movement goes on. */
void hbc_window_add(struct hbc_window *window, const struct hbc_refused *refused, uint64_t now_ms);
/* What an answer or GetStream said. */
void hbc_window_saw_complete_to(struct hbc_window *window, int64_t complete_to, uint64_t now_ms);
void hbc_window_saw_end(struct hbc_window *window, int64_t end);
/* A retry was taken, at least in part: there is room again. */
void hbc_window_taken(struct hbc_window *window, uint64_t now_ms);
/* Whether some of it should be sent now. */
bool hbc_window_may_retry(const struct hbc_window *window);
/* NULL: empty. */
const struct hbc_refused *hbc_window_lowest(const struct hbc_window *window);
/* The lowest; its frame becomes the caller's. There must be one. */
struct hbc_refused hbc_window_take(struct hbc_window *window);

#endif
