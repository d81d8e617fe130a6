/* A shared object that is no processor. */
#include "processing/holdback/processor.h"

HBP_EXPORT int nothing_of_ours(void);
int nothing_of_ours(void) { return 0; }
