/* demo HOLDBACKD FLIGHTS: shows what Holdback is for, on a real server in a temporary folder.
 *
 * Every sentence that it prints about the server is checked; it exits with 0 only if all held. */
#include <stdio.h>

#include "demo/flights.h"
#include "demo/founding.h"
#include "demo/stage.h"

int main(int argc, char **argv) {
  if (argc != 3) {
    (void)fprintf(stderr, "usage: %s HOLDBACKD FLIGHTS.jsonl\n", argv[0]);
    return 2;
  }
  (void)setvbuf(stdout, NULL, _IOLBF, 0);
  (void)printf(
      "Holdback takes events in any order and gives them out in the order of their sequence,\n"
      "each when everything before it is there. This runs a server in a temporary folder.\n\n");
  struct demo_stage stage;
  bool good = demo_stage_open(&stage, argv[1], NULL) && demo_founding(&stage) &&
              demo_flights(&stage, argv[2]);
  demo_stage_close(&stage);
  return good ? 0 : 1;
}
