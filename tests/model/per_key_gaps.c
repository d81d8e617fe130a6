/* What is listed of gaps agrees with what is stored, however it is cut into pages. */
#include "tests/model/per_key_gaps.h"

#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
/* cmocka needs the ones above */
#include <cmocka.h>

#include "ordering/gap_list.h"

enum { LOOKS = 5, KEYS_PAGE = 2, LISTED_MAX = HB_RIG_KEYS };

/* One key's events among all of them, which are sorted; those kept aside are none. */
struct keys_events {
  const struct hb_rig_event *events;
  size_t count;
};

static bool waits(const struct hb_rig_event *event) { return event->held && !event->aside; }

/* The gaps by plain means, one page after the other. */
struct comparing {
  struct hb_per_key_rig *rig;
  struct hb_slice key;
  struct hb_gap_page page;
  struct hb_gap gaps[3];
  size_t at;
  uint64_t gaps_count;
  struct hb_gap first;
  int64_t highest;
  uint64_t held;
};

static void next_page(struct comparing *comparing, int64_t from) {
  struct hb_gap_page *page = &comparing->page;
  page->from = from;
  page->gaps = comparing->gaps;
  assert_true(hb_ordering_list_gaps(comparing->rig->core, HB_RIG_STREAM, comparing->key, page));
  comparing->at = 0;
}

static void expect_gap(struct comparing *comparing, int64_t start, int64_t end) {
  struct hb_gap_page *page = &comparing->page;
  if (comparing->at == page->count) {
    assert_true(page->more);
    next_page(comparing, comparing->gaps[page->count - 1].end);
  }
  assert_true(comparing->at < page->count);
  const struct hb_gap *gap = &comparing->gaps[comparing->at++];
  assert_int_equal(gap->start, start);
  assert_int_equal(gap->end, end);
  if (comparing->gaps_count++ == 0) comparing->first = *gap;
}

/* Whether it is known where the key begins, and what comes next of it. */
static bool next_of(const struct hb_per_key_rig *rig, const char *key, int64_t *out) {
  const struct hb_key_record *row = hb_rig_row(rig, key);
  *out = row ? row->next : rig->config.first_sequence;
  return row || !rig->config.first_seen;
}

static void check_key(struct hb_per_key_rig *rig, struct keys_events key, size_t max,
                      struct comparing *comparing) {
  *comparing =
      (struct comparing){.rig = rig, .key = hb_slice_text(key.events[0].key), .page = {.max = max}};
  int64_t next;
  bool begun = next_of(rig, key.events[0].key, &next);
  next_page(comparing, INT64_MIN);
  bool any = false;
  for (size_t i = 0; i < key.count; i++) {
    const struct hb_rig_event *event = &key.events[i];
    if (!waits(event)) continue;
    if (!any && !begun) next = event->sequence;
    if (event->sequence != next) expect_gap(comparing, next, event->sequence);
    any = true;
    next = event->sequence + 1;
    comparing->highest = event->sequence;
    comparing->held++;
  }
  assert_int_equal(comparing->at, comparing->page.count);
  assert_false(comparing->page.more);
  assert_int_equal(comparing->page.initial_missing, any && !begun);
}

/* ---- which keys have some */

struct listed {
  char name[16];
  struct hb_key_gaps gaps;
};

static size_t list_keys(struct hb_per_key_rig *rig, struct listed *out) {
  struct hb_key_gaps keys[KEYS_PAGE];
  struct hb_buf bytes = {0};
  struct hb_buf after = {0};
  struct hb_gap_keys_page page = {
      .keys = keys, .max = KEYS_PAGE, .bytes_max = 1 << 20, .looks_max = LOOKS, .bytes = &bytes};
  size_t count = 0;
  do {
    hb_buf_clear(&bytes);
    assert_true(hb_ordering_list_gap_keys(rig->core, HB_RIG_STREAM, &page));
    for (size_t i = 0; i < page.count; i++, count++) {
      assert_true(count < LISTED_MAX);
      out[count] = (struct listed){.gaps = keys[i]};
      if (!keys[i].key.size) continue; /* the empty key may have no address */
      memcpy(out[count].name, keys[i].key.data, keys[i].key.size);
    }
    page.order = page.more_order;
    page.has_after = page.more_has_key;
    if (!page.more || !page.has_after) continue;
    hb_buf_clear(&after);
    hb_buf_append(&after, keys[page.count - 1].key.data, keys[page.count - 1].key.size);
    page.after = hb_buf_view(&after);
  } while (page.more);
  hb_buf_done(&bytes);
  hb_buf_done(&after);
  return count;
}

static void check_listed(struct listed *listed, size_t *count, const char *name,
                         const struct comparing *comparing, bool begun) {
  uint64_t gaps = comparing->gaps_count + (comparing->held > 0 && !begun);
  size_t at = 0;
  while (at < *count && strcmp(listed[at].name, name) != 0) at++;
  assert_int_equal(at<*count, gaps> 0);
  if (gaps == 0) return;
  const struct hb_key_gaps *found = &listed[at].gaps;
  assert_int_equal(found->gaps, gaps);
  assert_int_equal(found->begun, begun);
  assert_int_equal(found->held, comparing->held);
  assert_int_equal(found->highest, comparing->highest);
  assert_int_equal(found->has_gap, comparing->gaps_count > 0);
  if (found->has_gap) {
    assert_int_equal(found->gap.start, comparing->first.start);
    assert_int_equal(found->gap.end, comparing->first.end);
    if (begun) assert_int_equal(found->complete_to, comparing->first.start);
  }
  listed[at] = listed[--*count];
}

void hb_rig_check_gaps(struct hb_per_key_rig *rig, const struct hb_rig_event *events,
                       size_t count) {
  struct listed listed[LISTED_MAX];
  size_t listed_count = list_keys(rig, listed);
  for (size_t from = 0, to = 0; from < count; from = to) {
    while (to < count && strcmp(events[from].key, events[to].key) == 0) to++;
    struct comparing comparing;
    struct keys_events key = {events + from, to - from};
    check_key(rig, key, 1 + from % 3, &comparing);
    int64_t next;
    bool begun = next_of(rig, events[from].key, &next);
    check_listed(listed, &listed_count, events[from].key, &comparing, begun);
  }
  assert_int_equal(listed_count, 0); /* none of others, and none twice */
}
