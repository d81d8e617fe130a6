/* Compaction on request: what was deleted takes no room afterwards, what is there is still there.
 */
#include "storage/compact.h"

#include "storage/engine_internal.h"
#include "storage/key_internal.h"
#include "storage/read.h"
#include "storage/store_internal.h"
#include "storage/test_store_internal.h"

enum { BUNDLES = 200, BUNDLE_BYTES = 64 * 1024 };

/* Bundles of bytes that don't compress, one commit each. */
static void put_bundles(struct fixture *fixture) {
  static uint8_t noise[BUNDLE_BYTES];
  uint64_t random = 1;
  for (uint32_t i = 1; i <= BUNDLES; i++) {
    for (size_t at = 0; at + 8 <= sizeof noise; at += 8) {
      random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
      memcpy(noise + at, &random, 8);
    }
    hb_write_put_bundle(fixture->write, (struct hb_bundle_id){1, i, 0},
                        hb_slice_of(noise, sizeof noise));
    apply(fixture);
  }
}

static int count_bundles(struct fixture *fixture) {
  struct hb_rocks_iter *iter = hb_store_iter(fixture->store, HB_FAMILY_HELD, 1);
  int count = 0;
  for (hb_rocks_iter_first(iter); hb_rocks_iter_valid(iter); hb_rocks_iter_next(iter)) count++;
  hb_rocks_iter_destroy(iter);
  return count;
}

/* Deleted bundles give their bytes back; those that stay are all there, also after a restart. */
static void deleted_bytes_are_given_back(void **state) {
  struct fixture *fixture = *state;
  struct hb_err err;
  make_stream(fixture, 1, "one");
  put_bundles(fixture);
  must(hb_store_compact(fixture->store, &err), &err);
  uint64_t full = hb_store_file_bytes(fixture->store);
  assert_true(full >= (uint64_t)BUNDLES * BUNDLE_BYTES);
  for (uint32_t i = 11; i <= BUNDLES; i++) {
    hb_write_delete_bundle(fixture->write, (struct hb_bundle_id){1, i, 0});
  }
  apply(fixture);
  must(hb_store_compact(fixture->store, &err), &err);
  assert_true(hb_store_file_bytes(fixture->store) < full / 2);
  assert_int_equal(count_bundles(fixture), 10);
  reopen_store(fixture);
  assert_int_equal(count_bundles(fixture), 10);
}

/* Once it was told to end, no compaction runs any more, and says so. */
static void an_ended_compaction_is_refused(void **state) {
  struct fixture *fixture = *state;
  struct hb_err err = {0};
  make_stream(fixture, 1, "one");
  hb_store_end_compaction(fixture->store);
  hb_store_end_compaction(fixture->store);
  assert_int_equal(hb_store_compact(fixture->store, &err), HB_UNAVAILABLE);
  assert_string_equal(err.reason, "SERVER_STOPS");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(deleted_bytes_are_given_back, setup_store, teardown),
      cmocka_unit_test_setup_teardown(an_ended_compaction_is_refused, setup_store, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
