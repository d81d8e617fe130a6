/* Decides where a span is put when its page is full and when two pages become one.
 *
 *   a page with a small array   -> a larger array, up to HB_PAGE_SPANS (small sets stay small)
 *   full, at the very end       -> a new page behind it, so ascending input fills pages wholly
 *   full, a neighbour has room  -> half of that room is used
 *   full, neighbours full       -> split in two
 *   less than a quarter full    -> joined with a neighbour if both fill three quarters at most */
#include "ordering/pages.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

enum {
  PAGE_SPANS_FIRST = 16,
  PAGE_LEAN = HB_PAGE_SPANS * 7 / 8, /* a neighbour up to here takes some */
  PAGE_JOIN = HB_PAGE_SPANS / 4,
  PAGE_JOINED = HB_PAGE_SPANS * 3 / 4
};

_Static_assert(sizeof(struct hb_span) == 24, "a scattered event or gap costs 24 bytes");

static size_t page_bytes(uint32_t cap) {
  return sizeof(struct hb_page) + cap * sizeof(struct hb_span);
}

static struct hb_page *page_create(struct hb_pages *pages, uint32_t cap) {
  struct hb_page *page = hb_alloc(page_bytes(cap));
  *page = (struct hb_page){.cap = cap};
  *pages->account += page_bytes(cap);
  return page;
}

static void page_destroy(struct hb_pages *pages, struct hb_page *page) {
  *pages->account -= page_bytes(page->cap);
  free(page);
}

void hb_pages_init(struct hb_pages *pages, size_t *account) {
  *pages = (struct hb_pages){.account = account};
}

void hb_pages_done(struct hb_pages *pages) {
  for (size_t i = 0; i < pages->count; i++) page_destroy(pages, hb_pages_page(pages, i));
  *pages->account -= pages->cap * sizeof *pages->tops;
  free(pages->tops);
  hb_pages_init(pages, pages->account);
}

struct hb_span *hb_pages_back(const struct hb_pages *pages) {
  if (!pages->count) return NULL;
  struct hb_page *page = hb_pages_page(pages, pages->count - 1);
  return &page->spans[page->begin + page->count - 1];
}

/* ---- tops */

static struct hb_page_top *tops_of(const struct hb_pages *pages) {
  return pages->tops + pages->head;
}

/* Room for one more behind the last: what was removed in front is used again first. */
static void tops_reserve(struct hb_pages *pages) {
  if (pages->head + pages->count < pages->cap) return;
  if (pages->head > pages->cap / 4) {
    memmove(pages->tops, tops_of(pages), pages->count * sizeof *pages->tops);
    pages->head = 0;
    return;
  }
  size_t cap = pages->cap ? pages->cap + pages->cap / 2 : 4;
  pages->tops = hb_realloc(pages->tops, cap * sizeof *pages->tops);
  *pages->account += (cap - pages->cap) * sizeof *pages->tops;
  pages->cap = cap;
}

static void tops_insert(struct hb_pages *pages, size_t at, struct hb_page *page) {
  tops_reserve(pages);
  struct hb_page_top *tops = tops_of(pages);
  memmove(tops + at + 1, tops + at, (pages->count - at) * sizeof *tops);
  tops[at] = (struct hb_page_top){.start = page->spans[page->begin].start, .page = page};
  pages->count++;
}

static void tops_remove(struct hb_pages *pages, size_t at) {
  struct hb_page_top *tops = tops_of(pages);
  page_destroy(pages, tops[at].page);
  if (at == 0) {
    pages->head++;
  } else {
    memmove(tops + at, tops + at + 1, (pages->count - at - 1) * sizeof *tops);
  }
  pages->count--;
  if (!pages->count) pages->head = 0;
}

static void top_refresh(struct hb_pages *pages, size_t at) {
  struct hb_page_top *top = tops_of(pages) + at;
  top->start = top->page->spans[top->page->begin].start;
}

/* ---- search */

static bool top_holds(const struct hb_pages *pages, size_t at, int64_t key) {
  const struct hb_page_top *tops = tops_of(pages);
  if (at >= pages->count || tops[at].start > key) return false;
  return at + 1 == pages->count || key < tops[at + 1].start;
}

static size_t find_page(const struct hb_pages *pages, int64_t key, size_t hint) {
  if (top_holds(pages, hint, key)) return hint;
  if (top_holds(pages, hint + 1, key)) return hint + 1;
  const struct hb_page_top *base = tops_of(pages);
  size_t count = pages->count;
  while (count > 1) {
    size_t half = count / 2;
    base = base[half].start <= key ? base + half : base;
    count -= half;
  }
  return (size_t)(base - tops_of(pages));
}

static bool span_holds(const struct hb_page *page, uint32_t at, int64_t key) {
  const struct hb_span *span = page->spans + page->begin;
  if (at >= page->count || span[at].start > key) return false;
  return at + 1 == page->count || key < span[at + 1].start;
}

/* Where the key would be if starts were evenly spread, which they nearly are: a few cache lines
 * from there it is found, while halving would touch one for each step. `end` > key >= first. */
static uint32_t guess_span(const struct hb_page *page, int64_t key, int64_t first, int64_t end) {
  double part =
      (double)((uint64_t)key - (uint64_t)first) / (double)((uint64_t)end - (uint64_t)first);
  uint32_t guess = (uint32_t)(part * (double)page->count);
  return guess < page->count ? guess : page->count - 1;
}

/* The last span of [low, high) with start <= key; that at `low` is one. */
static uint32_t halve(const struct hb_span *spans, uint32_t low, uint32_t high, int64_t key) {
  while (high - low > 1) {
    uint32_t middle = low + (high - low) / 2;
    if (spans[middle].start <= key) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

/* The first span's start is <= key. Growing steps away from the guess, then halving. */
static uint32_t find_from(const struct hb_page *page, int64_t key, uint32_t guess) {
  const struct hb_span *spans = page->spans + page->begin;
  uint32_t step = 1;
  if (spans[guess].start <= key) {
    uint32_t low = guess;
    uint32_t high = guess + 1;
    while (high < page->count && spans[high].start <= key) {
      low = high;
      high += step;
      step *= 2;
    }
    return halve(spans, low, high < page->count ? high : page->count, key);
  }
  uint32_t high = guess;
  uint32_t low = guess - 1; /* the guess is not the first: that one is <= key */
  while (spans[low].start > key) {
    high = low;
    low = low > step ? low - step : 0;
    step *= 2;
  }
  return halve(spans, low, high, key);
}

static uint32_t find_span(const struct hb_pages *pages, size_t at, int64_t key, uint32_t hint) {
  const struct hb_page_top *tops = tops_of(pages) + at;
  const struct hb_page *page = tops->page;
  if (span_holds(page, hint, key)) return hint;
  if (span_holds(page, hint + 1, key)) return hint + 1;
  int64_t end =
      at + 1 < pages->count ? tops[1].start : page->spans[page->begin + page->count - 1].start;
  if (key >= end) return page->count - 1;
  return find_from(page, key, guess_span(page, key, tops->start, end));
}

bool hb_pages_floor(const struct hb_pages *pages, int64_t key, struct hb_place *place) {
  if (!pages->count || key < tops_of(pages)->start) {
    *place = (struct hb_place){0, 0};
    return false;
  }
  size_t page = find_page(pages, key, place->page);
  /* In another page the place within the last one says nothing. */
  place->at = find_span(pages, page, key, page == place->page ? place->at : UINT32_MAX - 1);
  place->page = page;
  return true;
}

void hb_pages_expect_page(const struct hb_pages *pages, int64_t key, size_t *page) {
  if (!pages->count || key < tops_of(pages)->start) return;
  *page = find_page(pages, key, *page);
  __builtin_prefetch(hb_pages_page(pages, *page));
}

/* An evenly spread guess is off by half the root of the page's spans: some lines on both sides. */
void hb_pages_expect_spans(const struct hb_pages *pages, int64_t key, size_t *page) {
  enum { LINE = 64, LINES = 2 };
  if (!pages->count || key < tops_of(pages)->start) return;
  *page = find_page(pages, key, *page);
  const struct hb_page_top *top = tops_of(pages) + *page;
  if (*page + 1 == pages->count) return; /* where the sequence ends it is in use anyway */
  uint32_t guess = guess_span(top->page, key, top->start, top[1].start);
  const char *at = (const char *)(top->page->spans + top->page->begin + guess);
  for (int line = -LINES; line <= LINES; line++) __builtin_prefetch(at + line * LINE, 1);
}

/* ---- change within a page */

/* Make room for `count` spans before the span `at`; the page has the room. */
static void open_hole(struct hb_page *page, uint32_t at, uint32_t count) {
  struct hb_span *first = page->spans + page->begin;
  bool front = page->begin >= count;
  bool back = page->begin + page->count + count <= page->cap;
  if (front && (!back || at < page->count / 2)) {
    memmove(first - count, first, at * sizeof *first);
    page->begin -= count;
  } else {
    if (!back) {
      memmove(page->spans, first, page->count * sizeof *first);
      page->begin = 0;
      first = page->spans;
    }
    memmove(first + at + count, first + at, (page->count - at) * sizeof *first);
  }
  page->count += count;
}

static void close_hole(struct hb_page *page, uint32_t at, uint32_t count) {
  struct hb_span *first = page->spans + page->begin;
  if (at < page->count / 2) {
    memmove(first + count, first, at * sizeof *first);
    page->begin += count;
  } else {
    memmove(first + at, first + at + count, (page->count - at - count) * sizeof *first);
  }
  page->count -= count;
}

/* The last `count` spans of `left` become the first of `right`. */
static void move_right(struct hb_page *left, struct hb_page *right, uint32_t count) {
  open_hole(right, 0, count);
  memcpy(right->spans + right->begin, left->spans + left->begin + left->count - count,
         count * sizeof(struct hb_span));
  left->count -= count;
}

/* The first `count` spans of `right` become the last of `left`. */
static void move_left(struct hb_page *left, struct hb_page *right, uint32_t count) {
  open_hole(left, left->count, count);
  memcpy(left->spans + left->begin + left->count - count, right->spans + right->begin,
         count * sizeof(struct hb_span));
  right->begin += count;
  right->count -= count;
}

/* ---- change of pages */

static void grow_page(struct hb_pages *pages, size_t at) {
  struct hb_page *page = hb_pages_page(pages, at);
  uint32_t cap = page->cap * 4 > HB_PAGE_SPANS ? HB_PAGE_SPANS : page->cap * 4;
  *pages->account += page_bytes(cap) - page_bytes(page->cap);
  page = hb_realloc(page, page_bytes(cap));
  page->cap = cap;
  tops_of(pages)[at].page = page;
}

static bool can_lean(const struct hb_pages *pages, size_t at) {
  if (at >= pages->count) return false;
  const struct hb_page *page = hb_pages_page(pages, at);
  return page->cap == HB_PAGE_SPANS && page->count <= PAGE_LEAN;
}

static void lean_right(struct hb_pages *pages, struct hb_place *place) {
  struct hb_page *page = hb_pages_page(pages, place->page);
  struct hb_page *right = hb_pages_page(pages, place->page + 1);
  move_right(page, right, (HB_PAGE_SPANS - right->count) / 2);
  top_refresh(pages, place->page + 1);
  if (place->at <= page->count) return;
  place->at -= page->count;
  place->page++;
}

static void lean_left(struct hb_pages *pages, struct hb_place *place) {
  struct hb_page *page = hb_pages_page(pages, place->page);
  struct hb_page *left = hb_pages_page(pages, place->page - 1);
  uint32_t count = (HB_PAGE_SPANS - left->count) / 2;
  move_left(left, page, count);
  top_refresh(pages, place->page);
  if (place->at >= count) {
    place->at -= count;
  } else {
    place->at += left->count - count;
    place->page--;
  }
}

static void split(struct hb_pages *pages, struct hb_place *place) {
  struct hb_page *page = hb_pages_page(pages, place->page);
  struct hb_page *right = page_create(pages, HB_PAGE_SPANS);
  move_right(page, right, page->count / 2);
  tops_insert(pages, place->page + 1, right);
  if (place->at <= page->count) return;
  place->at -= page->count;
  place->page++;
}

/* After it the page at `place` has room for one. */
static void make_room(struct hb_pages *pages, struct hb_place *place) {
  struct hb_page *page = hb_pages_page(pages, place->page);
  if (page->count < page->cap) return;
  if (page->cap < HB_PAGE_SPANS) {
    grow_page(pages, place->page);
  } else if (can_lean(pages, place->page + 1)) {
    lean_right(pages, place);
  } else if (place->page > 0 && can_lean(pages, place->page - 1)) {
    lean_left(pages, place);
  } else {
    split(pages, place);
  }
}

static void append_page(struct hb_pages *pages, struct hb_place *place, struct hb_span span) {
  struct hb_page *page = page_create(pages, pages->count ? HB_PAGE_SPANS : PAGE_SPANS_FIRST);
  page->spans[0] = span;
  page->count = 1;
  tops_insert(pages, pages->count, page);
  *place = (struct hb_place){.page = pages->count - 1};
}

static bool is_full_end(const struct hb_pages *pages, struct hb_place place) {
  const struct hb_page *page = hb_pages_page(pages, place.page);
  return place.page + 1 == pages->count && page->count == HB_PAGE_SPANS && place.at == page->count;
}

void hb_pages_insert(struct hb_pages *pages, struct hb_place *place, struct hb_span span) {
  pages->spans++;
  if (!pages->count || is_full_end(pages, *place)) {
    append_page(pages, place, span);
    return;
  }
  make_room(pages, place);
  struct hb_page *page = hb_pages_page(pages, place->page);
  HB_ASSERT(place->at <= page->count);
  open_hole(page, place->at, 1);
  page->spans[page->begin + place->at] = span;
  if (place->at == 0) top_refresh(pages, place->page);
}

static bool can_join(const struct hb_pages *pages, size_t left) {
  if (left + 1 >= pages->count) return false;
  const struct hb_page *a = hb_pages_page(pages, left);
  const struct hb_page *b = hb_pages_page(pages, left + 1);
  return a->cap == HB_PAGE_SPANS && a->count + b->count <= PAGE_JOINED;
}

/* Page `left + 1` goes into page `left`. Returns how many were there before. */
static uint32_t join(struct hb_pages *pages, size_t left) {
  struct hb_page *page = hb_pages_page(pages, left);
  struct hb_page *right = hb_pages_page(pages, left + 1);
  uint32_t before = page->count;
  move_left(page, right, right->count);
  tops_remove(pages, left + 1);
  return before;
}

static void join_if_small(struct hb_pages *pages, struct hb_place *place) {
  if (hb_pages_page(pages, place->page)->count >= PAGE_JOIN) return;
  if (can_join(pages, place->page)) {
    (void)join(pages, place->page);
  } else if (place->page > 0 && can_join(pages, place->page - 1)) {
    place->at += join(pages, place->page - 1);
    place->page--;
  }
}

void hb_pages_erase(struct hb_pages *pages, struct hb_place *place) {
  struct hb_page *page = hb_pages_page(pages, place->page);
  HB_ASSERT(place->at < page->count);
  close_hole(page, place->at, 1);
  pages->spans--;
  if (!page->count) {
    tops_remove(pages, place->page);
    place->at = 0;
    return;
  }
  if (place->at == 0) top_refresh(pages, place->page);
  join_if_small(pages, place);
  if (place->at < hb_pages_page(pages, place->page)->count) return;
  place->page++;
  place->at = 0;
}

void hb_pages_pop_front(struct hb_pages *pages) {
  struct hb_page *page = hb_pages_page(pages, 0);
  page->begin++;
  page->count--;
  pages->spans--;
  if (page->count) {
    top_refresh(pages, 0);
  } else {
    tops_remove(pages, 0);
  }
}

void hb_pages_set_start(struct hb_pages *pages, struct hb_place place, int64_t start) {
  hb_pages_at(pages, place)->start = start;
  if (place.at == 0) tops_of(pages)[place.page].start = start;
}
