/* Decides how a broken promise of our own ends the process: condition and place, then abort. */
#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>

_Noreturn void hb_assert_failed(const char *condition, const char *file, int line) {
  (void)fprintf(stderr, "event=assertion_failed condition=\"%s\" place=%s:%d\n", condition, file,
                line);
  abort();
}
