#include "storage/engine_internal.h"
#include "storage/test_store_internal.h"

/* Every prefix that RocksDB 7.8.3 has, and the causes that have a code of their own. */
static void texts_are_mapped(void **state) {
  (void)state;
  static const struct {
    const char *text;
    enum hb_code code;
  } ROWS[] = {
      {"Corruption: block checksum mismatch", HB_CORRUPT},
      {"Corruption: No space left on device", HB_CORRUPT},
      {"NotFound: ", HB_NOT_FOUND},
      {"Not implemented: x", HB_INTERNAL},
      {"Invalid argument: x", HB_INTERNAL},
      {"Invalid argument: Column families not opened: later", HB_VERSION},
      {"Invalid argument: Column family not found: held", HB_CORRUPT},
      {"IO error: No such file or directory: While open a file: /d/x: No such file or directory",
       HB_CORRUPT},
      {"IO error: While fdatasync: /d/db/000004.log: Input/output error", HB_IO},
      {"IO error: No space left on device: While appending to file: /d/x", HB_NO_SPACE},
      {"IO error: While appending to file: /d/x: No space left on device", HB_NO_SPACE},
      {"IO error: While appending to file: /d/x: Disk quota exceeded", HB_NO_SPACE},
      {"IO error: Space limit reached", HB_NO_SPACE},
      {"IO error: No space left on device: While fdatasync: /d/db/4.log: No space left on device",
       HB_IO},
      {"IO error: No space left on device: While fsync: /d/db/4.sst: No space left on device",
       HB_IO},
      {"IO error: While sync_file_range returned: /d/x: No space left on device", HB_IO},
      {"IO error: lock hold by current process, acquire time 1: x: No locks available", HB_LOCKED},
      {"IO error: While lock file: /d/db/LOCK: Resource temporarily unavailable", HB_LOCKED},
      {"IO error: While open a file: /d/x: Permission denied", HB_PERMISSION},
      {"IO error: While mkdir: /d/x: Read-only file system", HB_PERMISSION},
      {"Merge in progress: x", HB_INTERNAL},
      {"Result incomplete: x", HB_UNAVAILABLE},
      {"Shutdown in progress: x", HB_UNAVAILABLE},
      {"Operation timed out: x", HB_TIMEOUT},
      {"Operation aborted: x", HB_UNAVAILABLE},
      {"Resource busy: x", HB_UNAVAILABLE},
      {"Operation expired: x", HB_TIMEOUT},
      {"Operation failed. Try again.: x", HB_UNAVAILABLE},
      {"Compaction too large: x", HB_INTERNAL},
      {"Column family dropped: x", HB_INTERNAL},
      {"Something new: x", HB_IO},
      {"", HB_IO},
  };
  for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
    struct hb_err err;
    enum hb_code code = hb_rocks_error(ROWS[i].text, "write", &err);
    if (code != ROWS[i].code) {
      fail_msg("'%s' is %s, expected %s", ROWS[i].text, hb_code_text(code),
               hb_code_text(ROWS[i].code));
    }
    assert_int_equal(err.code, code);
    assert_non_null(strstr(err.message, ROWS[i].text));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(texts_are_mapped)};
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
