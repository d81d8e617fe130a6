/* What libFuzzer's main would do with a list of files: each is one input. Arguments are files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char **files;
static int files_count;

static void replay_file(const char *path) {
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  assert_int_equal(fseek(file, 0, SEEK_END), 0);
  long size = ftell(file);
  rewind(file);
  uint8_t *bytes =
      malloc(size ? (size_t)size : 1); /* of its own size: ASan sees a read behind it */
  assert_non_null(bytes);
  assert_int_equal(fread(bytes, 1, (size_t)size, file), size);
  fclose(file);
  print_message("%s\n", path);
  LLVMFuzzerTestOneInput(bytes, (size_t)size);
  free(bytes);
}

/* No input of the corpus breaks what the target checks. */
static void the_corpus_holds(void **state) {
  (void)state;
  assert_true(files_count > 0);
  for (int i = 0; i < files_count; i++) replay_file(files[i]);
}

int main(int argc, char **argv) {
  files = argv + 1;
  files_count = argc - 1;
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_corpus_holds)};
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
