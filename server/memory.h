/* How the process takes memory from the system and gives it back. */
#ifndef HB_SERVER_MEMORY_H
#define HB_SERVER_MEMORY_H

/* Call first in main, before any thread. Settings that the environment gives (MALLOC_ARENA_MAX
 * and so on) are overruled. */
void hb_memory_tune(void);

#endif
