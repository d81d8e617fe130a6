/* What the command's exit code says. --help of the command shows the same list. */
#ifndef HB_CLIENT_CMD_EXIT_H
#define HB_CLIENT_CMD_EXIT_H

enum exit_code {
  EXIT_OK = 0,       /* all STORED or DUPLICATE */
  EXIT_OWN = 1,      /* the command's own failure: a file, the terminal */
  EXIT_USAGE = 2,    /* wrong options or arguments */
  EXIT_OUTCOMES = 3, /* events were answered with another outcome; verify: findings */
  EXIT_WINDOW = 4,   /* the window stayed full */
  EXIT_INPUT = 5,    /* a line of the input is wrong */
  EXIT_RPC = 64,     /* + gRPC status */
  EXIT_INTERRUPTED = 130
};

#define EXIT_CODES_HELP                                                           \
  "Exit codes:\n"                                                                 \
  "  0    all events STORED or DUPLICATE; the command did what it was asked\n"    \
  "  1    a failure of its own (a file can't be read, the output not written)\n"  \
  "  2    wrong usage\n"                                                          \
  "  3    other outcomes (CONFLICT, LATE, BEFORE_FIRST, OUT_OF_RANGE); verify:\n" \
  "       something is wrong with the store\n"                                    \
  "  4    the window stayed full; the message names the missing range\n"          \
  "  5    a wrong line in the input; the message names file, line and fault\n"    \
  "  64+n a call failed with gRPC status n (69 NOT_FOUND, 78 UNAVAILABLE)\n"      \
  "  130  interrupted\n"

#endif
