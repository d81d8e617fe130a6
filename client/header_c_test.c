/* The public header, first and alone in a C file. */
#include "client/holdback.h"

int main(void) {
  struct holdback_options options = {0};
  struct holdback_event event = {0};
  (void)options;
  return holdback_event_size(&event) == 0 && holdback_reason_name(0)[0] == '\0' ? 0 : 1;
}
