/* Decides which planted bug is active: the environment says. Empty in a usual build. */
#include "base/planted.h"

#ifdef HB_PLANTED_BUGS

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

#define NAME(name, text) text,
static const char *const NAMES[] = {HB_PLANTED_TABLE(NAME)};
#undef NAME

static bool is_known(const char *text) {
  for (int i = 0; i < HB_PLANTED_COUNT; i++) {
    if (strcmp(NAMES[i], text) == 0) return true;
  }
  return false;
}

bool hb_planted(enum hb_planted_bug bug) {
  const char *text = getenv("HB_PLANTED_BUG");
  if (!text || !*text) return false;
  HB_ASSERT(is_known(text)); /* a test that plants nothing would show nothing */
  return strcmp(NAMES[bug], text) == 0;
}

#endif
