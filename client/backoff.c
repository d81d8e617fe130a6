/* Decides how long to wait before the next attempt, and when attempts have gone on for too long. */
#include "client/backoff.h"

void hbc_backoff_attempt(struct hbc_backoff *backoff, uint64_t now_ms) {
  if (backoff->failing_ms == 0) backoff->failing_ms = now_ms ? now_ms : 1;
}

uint32_t hbc_backoff_failed(struct hbc_backoff *backoff, uint32_t dice) {
  uint32_t delay = backoff->delay_ms ? backoff->delay_ms * 2 : HBC_BACKOFF_MIN_MS;
  if (delay > HBC_BACKOFF_MAX_MS) delay = HBC_BACKOFF_MAX_MS;
  backoff->delay_ms = delay;
  return delay - dice % (delay / 4 + 1);
}

void hbc_backoff_succeeded(struct hbc_backoff *backoff) { *backoff = (struct hbc_backoff){0}; }

bool hbc_backoff_is_over(const struct hbc_backoff *backoff, uint64_t now_ms, uint32_t timeout_ms) {
  return backoff->failing_ms != 0 && now_ms >= backoff->failing_ms + timeout_ms;
}
