/* Tables of what can be wrong in a sound store, and what verification must say of each. */
#ifndef HB_STORAGE_TEST_DAMAGE_INTERNAL_H
#define HB_STORAGE_TEST_DAMAGE_INTERNAL_H

#include <ftw.h>

#include "storage/key_internal.h"
#include "storage/test_sound_internal.h"

struct edit {
  struct fixture *fixture;
  struct hb_batch_writer *batch;
};

MAYBE_UNUSED static void put(struct edit *edit, enum hb_family family, struct hb_key key,
                             struct hb_slice value) {
  hb_rocks_put(edit->batch, family, hb_key_view(&key), value);
}

MAYBE_UNUSED static void erase(struct edit *edit, enum hb_family family, struct hb_key key) {
  hb_rocks_delete(edit->batch, family, hb_key_view(&key));
}

/* The row with one bit flipped at `at` (from the end where negative). */
MAYBE_UNUSED static void flip(struct edit *edit, enum hb_family family, struct hb_key key,
                              long at) {
  struct hb_bytes *value = NULL;
  struct hb_err err;
  must(hb_rocks_get(edit->fixture->store->engine, family, hb_key_view(&key), &value, &err), &err);
  assert_non_null(value);
  uint8_t *copy = hb_memdup(value->data, value->size);
  copy[at < 0 ? (long)value->size + at : at] ^= 0x10;
  put(edit, family, key, hb_slice_of(copy, value->size));
  hb_bytes_unref(value);
  free(copy);
}

struct damage {
  const char *name;
  void (*damage)(struct edit *edit);
  const char *lines[3]; /* each is part of one finding */
  size_t count;         /* of findings; 0 = as many as lines */
};

MAYBE_UNUSED static bool check_row(struct fixture *fixture, const struct damage *damage) {
  struct edit edit = {fixture, hb_rocks_batch_create(fixture->store->engine)};
  struct hb_err err;
  damage->damage(&edit);
  must(hb_rocks_write(fixture->store->engine, edit.batch, true, &err), &err);
  hb_rocks_batch_destroy(edit.batch);
  struct found found;
  struct hb_verify_counts counts = verify_store(fixture->store, 0, false, 5000, &found);
  size_t lines = 0;
  bool good = counts.streams >= 2;
  while (lines < 3 && damage->lines[lines]) {
    good = is_found(&found, damage->lines[lines++]) && good;
  }
  good = found.count == (damage->count ? damage->count : lines) && good;
  if (!good) {
    print_error("%s: %zu findings\n", damage->name, found.count);
    print_findings(&found);
  }
  return good;
}

/* Each is told where it is, and nothing else is said to be wrong. */
MAYBE_UNUSED static void check_damage(struct fixture *fixture, const struct damage *damage,
                                      size_t count) {
  int failed = 0;
  for (size_t i = 0; i < count; i++) {
    close_store(fixture);
    nftw(fixture->path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    open_store(fixture);
    sound_fill(fixture);
    failed += !check_row(fixture, &damage[i]);
  }
  assert_int_equal(failed, 0);
}

#endif
