/* Files that say whose mark of an attempt no crash left: each names one, and all go together. */
#include <fcntl.h>
#include <unistd.h>

#include "storage/folder_internal.h"
#include "storage/processor.h"
#include "storage/test_store_internal.h"

static bool is_there(const struct fixture *fixture, const char *name) {
  char *file = hb_folder_join(fixture->folder, name);
  bool there = access(file, F_OK) == 0;
  free(file);
  return there;
}

static void make(const struct fixture *fixture, const char *name) {
  struct hb_err err;
  must(hb_folder_write_file(fixture->folder, name, (struct hb_slice){NULL, 0}, &err), &err);
}

static void each_names_one(void **state) {
  struct fixture *fixture = *state;
  struct hb_processor_id noted = {.stream = 7, .processor = UINT64_MAX};
  struct hb_processor_id others[] = {
      {.stream = 7, .processor = 1}, {.stream = 71, .processor = UINT64_MAX}, {0, 0}};
  struct hb_err err;
  assert_false(hb_stopped_is_noted(fixture->folder, noted));
  hb_stopped_note(fixture->folder, noted);
  hb_stopped_note(fixture->folder, noted);
  assert_true(hb_stopped_is_noted(fixture->folder, noted));
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    assert_false(hb_stopped_is_noted(fixture->folder, others[i]));
  }
  must(hb_stopped_forget(fixture->folder, &err), &err);
  assert_false(hb_stopped_is_noted(fixture->folder, noted));
}

/* What lies beside them stays; the file that builds before this one made goes, too. */
static void others_stay(void **state) {
  struct fixture *fixture = *state;
  struct hb_err err;
  make(fixture, "STOPPED");
  make(fixture, "FORMAT");
  make(fixture, "STOP");
  for (uint64_t i = 0; i < 100; i++) {
    hb_stopped_note(fixture->folder, (struct hb_processor_id){.stream = 1, .processor = i});
  }
  must(hb_stopped_forget(fixture->folder, &err), &err);
  must(hb_stopped_forget(fixture->folder, &err), &err);
  assert_false(is_there(fixture, "STOPPED"));
  assert_true(is_there(fixture, "FORMAT") && is_there(fixture, "STOP"));
  for (uint64_t i = 0; i < 100; i++) {
    struct hb_processor_id id = {.stream = 1, .processor = i};
    assert_false(hb_stopped_is_noted(fixture->folder, id));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(each_names_one, setup_folder, teardown),
      cmocka_unit_test_setup_teardown(others_stay, setup_folder, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
