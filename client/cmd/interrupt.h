/* Ctrl-C: the first asks to stop in order, the second ends at once. */
#ifndef HB_CLIENT_CMD_INTERRUPT_H
#define HB_CLIENT_CMD_INTERRUPT_H

#include <stdbool.h>

void interrupt_watch(void);
bool interrupt_came(void);

#endif
