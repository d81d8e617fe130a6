/* A sorted sequence of spans that takes insertions anywhere: what interval set and held index are
 * made of.
 *
 * Spans lie in pages of at most HB_PAGE_SPANS; an array of tops finds the page. A full page first
 * leans on a neighbour and splits only if that is full too, so pages stay about four fifths full;
 * removal at the front moves two offsets and copies nothing. A place remembers where the last
 * search ended: ascending work costs a comparison or two per step. No entry is ever reordered by
 * this file: whoever inserts keeps the starts ascending. */
#ifndef HB_ORDERING_PAGES_H
#define HB_ORDERING_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HB_PAGE_SPANS = 128 };

/* 24 bytes; which arm is used is its owner's choice, the pages look at `start` only. */
struct hb_span {
  int64_t start;
  union {
    struct {
      int64_t end;
      uint64_t seen; /* see moments.h */
    } range;
    struct {
      uint32_t length;
      uint32_t slot;
      uint32_t index;
    } held;
  };
};

struct hb_page {
  uint32_t begin; /* spans before it were removed at the front */
  uint32_t count;
  uint32_t cap;
  struct hb_span spans[];
};

struct hb_page_top {
  int64_t start; /* of the page's first span */
  struct hb_page *page;
};

struct hb_pages {
  struct hb_page_top *tops; /* owned, and each page */
  size_t head;              /* first top in use */
  size_t count;
  size_t cap;
  size_t spans;
  size_t *account; /* borrowed: bytes of memory, shared by all who count together */
};

/* Where a span lies; also the memory of a search. Zeroed = the first one. */
struct hb_place {
  size_t page;
  uint32_t at;
};

void hb_pages_init(struct hb_pages *pages, size_t *account);
void hb_pages_done(struct hb_pages *pages);

/* The last span with start <= key; false (and the first place) where there is none. `place` on
 * entry is where to look first, any value is right. */
bool hb_pages_floor(const struct hb_pages *pages, int64_t key, struct hb_place *place);
/* What a search for `key` will touch is asked for, so that it is in the cache when the search
 * comes: the page's head first and, a few searches later, the spans around where the key would be.
 * `page` is the memory of it, as in a place. For who knows what comes next, and has it ascending.
 */
void hb_pages_expect_page(const struct hb_pages *pages, int64_t key, size_t *page);
void hb_pages_expect_spans(const struct hb_pages *pages, int64_t key, size_t *page);
/* Put `span` before the span at `place`; place->at may be one past the page's last, and on an empty
 * sequence the place is {0, 0}. Afterwards `place` is the new span's. */
void hb_pages_insert(struct hb_pages *pages, struct hb_place *place, struct hb_span span);
/* Remove the span at `place`, which then is the following span's, or past the last one. */
void hb_pages_erase(struct hb_pages *pages, struct hb_place *place);
void hb_pages_pop_front(struct hb_pages *pages);
void hb_pages_set_start(struct hb_pages *pages, struct hb_place place, int64_t start);

static inline struct hb_page *hb_pages_page(const struct hb_pages *pages, size_t page) {
  return pages->tops[pages->head + page].page;
}

/* The place must be a span's. Valid until the next change. */
static inline struct hb_span *hb_pages_at(const struct hb_pages *pages, struct hb_place place) {
  struct hb_page *page = hb_pages_page(pages, place.page);
  return &page->spans[page->begin + place.at];
}

static inline bool hb_pages_valid(const struct hb_pages *pages, struct hb_place place) {
  return place.page < pages->count && place.at < hb_pages_page(pages, place.page)->count;
}

/* To the following span; false at the end. The place must be a span's. */
static inline bool hb_pages_next(const struct hb_pages *pages, struct hb_place *place) {
  if (place->at + 1 < hb_pages_page(pages, place->page)->count) {
    place->at++;
    return true;
  }
  if (place->page + 1 >= pages->count) return false;
  place->page++;
  place->at = 0;
  return true;
}

/* NULL: none. */
static inline struct hb_span *hb_pages_front(const struct hb_pages *pages) {
  return pages->count ? hb_pages_at(pages, (struct hb_place){0, 0}) : NULL;
}

struct hb_span *hb_pages_back(const struct hb_pages *pages);

#endif
