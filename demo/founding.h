/* The first act: six events, one of them too early, and a crash while it waits. */
#ifndef DEMO_FOUNDING_H
#define DEMO_FOUNDING_H

#include "demo/stage.h"

bool demo_founding(struct demo_stage *stage);

#endif
