/* Decides what SIGINT and SIGTERM do to a command that sends or prints events. */
#include "client/cmd/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include "client/cmd/exit.h"

static volatile sig_atomic_t came;

static void on_signal(int number) {
  (void)number;
  if (came) _exit(EXIT_INTERRUPTED);
  came = 1;
}

void interrupt_watch(void) {
  struct sigaction action = {.sa_handler = on_signal}; /* no SA_RESTART: waits end early */
  sigemptyset(&action.sa_mask);
  (void)sigaction(SIGINT, &action, NULL);
  (void)sigaction(SIGTERM, &action, NULL);
}

bool interrupt_came(void) { return came != 0; }
