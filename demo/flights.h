/* The second act: 20,000 real flights in the order they left, read in the order they were due. */
#ifndef DEMO_FLIGHTS_H
#define DEMO_FLIGHTS_H

#include "demo/stage.h"

/* Prints the demo's last line where all holds. */
bool demo_flights(struct demo_stage *stage, const char *path);

#endif
