/* A TCP port on loopback that nobody has at this moment. */
#ifndef HB_BENCH_PORT_H
#define HB_BENCH_PORT_H

#include <stdint.h>

uint16_t hb_free_port(void);

#endif
