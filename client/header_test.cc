// The public header, first and alone in a C++ file.
#include "client/holdback.h"

int main() {
  struct holdback_options options = {};
  struct holdback_event event = {};
  (void)options;
  return holdback_event_size(&event) == 0 && holdback_reason_name(0)[0] == '\0' ? 0 : 1;
}
