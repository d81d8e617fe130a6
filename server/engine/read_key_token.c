/* Decides how a page token looks: version, phase, flags, a hash of what it was given for, numbers,
 * places; little-endian. It comes from outside, so everything in it is checked. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/endian.h"
#include "server/engine/read_key_internal.h"

enum {
  TOKEN_VERSION = 2,
  TOKEN_HEAD = 3 + 8 + 8 + 8 + 8 + 4 + 4 + 8,
  TOKEN_PLACE = 8 + 8 + 4,
  FLAG_AFTER = 1,
  FLAG_TRUNCATED = 2
};

void hb_key_state_done(struct hb_key_state *state) {
  free(state->places);
  *state = (struct hb_key_state){0};
}

void hb_key_state_add(struct hb_key_state *state, struct hb_key_place place, size_t max) {
  size_t low = 0;
  size_t high = state->places_count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (state->places[middle].position < place.position) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low < state->places_count && state->places[low].position == place.position) {
    state->places[low] = place;
    return;
  }
  if (state->places_count == max) {
    state->truncated = true;
    if (low == max) return;
    state->places_count--; /* the highest makes room */
  }
  hb_reserve((void **)&state->places, &state->places_cap, state->places_count + 1,
             sizeof *state->places);
  memmove(state->places + low + 1, state->places + low,
          (state->places_count - low) * sizeof *state->places);
  state->places[low] = place;
  state->places_count++;
}

void hb_key_state_shift(struct hb_key_state *state, size_t count) {
  if (count == 0) return;
  state->places_count -= count;
  memmove(state->places, state->places + count, state->places_count * sizeof *state->places);
}

static uint64_t purpose_of(const struct hb_read *read) {
  uint8_t given[2 + 8] = {read->released_only, read->has_from};
  if (read->has_from) hb_put_u64_le(given + 2, (uint64_t)read->from_position);
  uint64_t seed = hb_token_hash(read->stream->id, hb_slice_of(given, sizeof given));
  return hb_token_hash(seed, read->key);
}

void hb_key_token_encode(const struct hb_key_state *state, const struct hb_read *read,
                         struct hb_buf *out) {
  hb_buf_clear(out);
  size_t size = TOKEN_HEAD + state->places_count * TOKEN_PLACE;
  uint8_t *at = hb_buf_reserve(out, size);
  at[0] = TOKEN_VERSION;
  at[1] = (uint8_t)state->phase;
  at[2] = (uint8_t)((state->has_after ? FLAG_AFTER : 0) | (state->truncated ? FLAG_TRUNCATED : 0));
  hb_put_u64_le(at + 3, purpose_of(read));
  hb_put_u64_le(at + 11, (uint64_t)state->next);
  hb_put_u64_le(at + 19, (uint64_t)state->bound);
  hb_put_u64_le(at + 27, state->after.commit);
  hb_put_u32_le(at + 35, state->after.part);
  hb_put_u32_le(at + 39, (uint32_t)state->places_count);
  hb_put_u64_le(at + 43, (uint64_t)state->held_next);
  at += TOKEN_HEAD;
  for (size_t i = 0; i < state->places_count; i++, at += TOKEN_PLACE) {
    hb_put_u64_le(at, (uint64_t)state->places[i].position);
    hb_put_u64_le(at + 8, state->places[i].commit);
    hb_put_u32_le(at + 16, state->places[i].part);
  }
  out->size += size;
}

static bool decode_head(const struct hb_read *read, struct hb_key_state *out, uint32_t *out_count) {
  const uint8_t *at = read->token.data;
  if (read->token.size < TOKEN_HEAD || at[0] != TOKEN_VERSION) return false;
  if (at[1] < HB_KEY_RELEASED || at[1] > HB_KEY_DRAIN) return false;
  if (at[2] & ~(FLAG_AFTER | FLAG_TRUNCATED)) return false;
  if (hb_get_u64_le(at + 3) != purpose_of(read)) return false;
  out->phase = (enum hb_key_phase)at[1];
  out->has_after = (at[2] & FLAG_AFTER) != 0;
  out->truncated = (at[2] & FLAG_TRUNCATED) != 0;
  out->next = (int64_t)hb_get_u64_le(at + 11);
  out->bound = (int64_t)hb_get_u64_le(at + 19);
  out->after.stream = read->stream->id;
  out->after.commit = hb_get_u64_le(at + 27);
  out->after.part = hb_get_u32_le(at + 35);
  *out_count = hb_get_u32_le(at + 39);
  out->held_next = (int64_t)hb_get_u64_le(at + 43);
  return !(read->released_only && out->phase != HB_KEY_RELEASED);
}

enum hb_code hb_key_token_decode(const struct hb_read *read, size_t places_max,
                                 struct hb_key_state *out, struct hb_err *err) {
  struct hb_key_state state = {0};
  uint32_t count;
  if (!decode_head(read, &state, &count)) return hb_token_invalid(err);
  if (count > places_max || read->token.size != TOKEN_HEAD + (size_t)count * TOKEN_PLACE) {
    return hb_token_invalid(err);
  }
  const uint8_t *at = read->token.data + TOKEN_HEAD;
  state.places = hb_calloc(count, sizeof *state.places);
  state.places_cap = count;
  for (uint32_t i = 0; i < count; i++, at += TOKEN_PLACE) {
    struct hb_key_place place = {.position = (int64_t)hb_get_u64_le(at),
                                 .commit = hb_get_u64_le(at + 8),
                                 .part = hb_get_u32_le(at + 16)};
    if (i > 0 && place.position <= state.places[i - 1].position) {
      hb_key_state_done(&state);
      return hb_token_invalid(err);
    }
    state.places[state.places_count++] = place;
  }
  *out = state;
  return HB_OK;
}
