/* Decides which result is due next, and whether it is the one that came. */
#include "examples/orderbook/judge.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "examples/orderbook/outside.h"

void ob_judge_init(struct ob_judge *judge, const struct ob_feed *feed, size_t depth) {
  *judge = (struct ob_judge){
      .feed = feed, .depth = depth, .books = hb_calloc(feed->contracts, sizeof *judge->books)};
}

static bool wrong(const struct holdback_processor_result *result, const char *what) {
  (void)fprintf(stderr, "orderbook: result %" PRId64 ", key %.*s, cause %" PRId64 ": %s\n",
                result->position, (int)result->key.size, (const char *)result->key.data,
                result->cause_position, what);
  return false;
}

static bool is_payload(const struct holdback_processor_result *result, const uint8_t *bytes,
                       size_t size) {
  return result->payload.size == size && memcmp(result->payload.data, bytes, size) == 0;
}

static bool is_key(const struct holdback_processor_result *result, int64_t contract) {
  char room[OB_KEY_SIZE];
  struct holdback_bytes key = ob_key(contract, room);
  return result->key.size == key.size && memcmp(result->key.data, key.data, key.size) == 0;
}

static bool take_event(struct ob_judge *judge, const struct holdback_processor_result *result) {
  if (judge->events == judge->feed->count) return wrong(result, "more results than events");
  const struct ob_event *event = &judge->feed->events[judge->events];
  struct ob_book *book = &judge->books[event->contract - 1];
  uint8_t bytes[OB_DEPTH_SIZE_MAX];
  struct ob_why why;
  if (!ob_book_apply(book, event, &why)) return wrong(result, why.text);
  if (result->cause_position != event->sequence) return wrong(result, "another event was due");
  if (!is_key(result, event->contract)) return wrong(result, "the key is not the contract");
  if (!is_payload(result, bytes, ob_book_depth(book, judge->depth, event, bytes))) {
    return wrong(result, "the depth is not that of the feed in order");
  }
  judge->events++;
  return true;
}

/* The matcher has orders, not books: an error of the book's would show here. */
static bool rests(const struct ob_judge *judge, const struct ob_book *book) {
  struct ob_level levels[OB_LEVELS_MAX];
  const struct ob_matcher *matcher = &judge->feed->matchers[book->contract - 1];
  size_t count = ob_matcher_levels(matcher, levels, OB_LEVELS_MAX);
  return count == book->count && memcmp(levels, book->levels, count * sizeof *levels) == 0;
}

/* Keys come in byte order, each once. */
static bool is_next_key(struct ob_judge *judge, struct holdback_bytes key) {
  char text[sizeof judge->last_key] = "";
  if (key.size >= sizeof text) return false;
  memcpy(text, key.data, key.size);
  bool next = strcmp(judge->last_key, text) < 0;
  memcpy(judge->last_key, text, sizeof text);
  return next;
}

static bool take_final(struct ob_judge *judge, const struct holdback_processor_result *result) {
  struct ob_depth depth;
  const char *why = ob_depth_decode(result->payload.data, result->payload.size, &depth);
  if (why) return wrong(result, why);
  if (judge->events < judge->feed->count) return wrong(result, "a final book before the end");
  if (depth.contract < 1 || depth.contract > judge->feed->contracts ||
      !is_key(result, depth.contract) || !is_next_key(judge, result->key)) {
    return wrong(result, "the key of another contract was due");
  }
  const struct ob_book *book = &judge->books[depth.contract - 1];
  uint8_t bytes[OB_DEPTH_SIZE_MAX];
  if (!is_payload(result, bytes, ob_book_final(book, bytes))) {
    return wrong(result, "the final book is not that of the feed in order");
  }
  if (!rests(judge, book)) return wrong(result, "the final book is not what rests in the matcher");
  judge->finals++;
  return true;
}

bool ob_judge_take(struct ob_judge *judge, const struct holdback_processor_result *result) {
  if (result->position != (int64_t)(judge->events + judge->finals)) {
    return wrong(result, "its position is not the next");
  }
  if (result->kind == HOLDBACK_RESULT_EVENT) return take_event(judge, result);
  if (result->kind == HOLDBACK_RESULT_END) return take_final(judge, result);
  return wrong(result, "neither of an event nor of the end");
}

bool ob_judge_finish(const struct ob_judge *judge) {
  if (judge->events == judge->feed->count && judge->finals == judge->feed->contracts) return true;
  (void)fprintf(stderr, "orderbook: %zu results of %zu events, %" PRIu32 " of %" PRIu32 " books\n",
                judge->events, judge->feed->count, judge->finals, judge->feed->contracts);
  return false;
}

void ob_judge_done(struct ob_judge *judge) {
  free(judge->books);
  *judge = (struct ob_judge){0};
}
