/* A folder in /tmp that goes away again.
 *
 * In /tmp and not in TEST_TMPDIR: a Unix socket's path has 107 bytes, and Bazel's folder alone
 * has more. The name carries the test's, so that one left behind says whose it was. */
#ifndef TESTS_LIB_TEMPDIR_H
#define TESTS_LIB_TEMPDIR_H

enum { HBT_PATH_SIZE = 96 };

struct hbt_tempdir {
  char path[HBT_PATH_SIZE];
};

/* Make /tmp/hb-NAME-XXXXXX; ends the process with a message where it can't. */
void hbt_tempdir_init(struct hbt_tempdir *dir, const char *name);
/* Remove it with all that is in it. Accepts a zeroed struct. */
void hbt_tempdir_done(struct hbt_tempdir *dir);
/* "PATH/name" into `out` (HBT_PATH_SIZE bytes). Returns `out`. */
char *hbt_tempdir_join(const struct hbt_tempdir *dir, const char *name, char *out);

#endif
