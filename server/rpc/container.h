/* From a member (a tag, a post, a timer) back to the struct that it is embedded in. */
#ifndef HB_SERVER_RPC_CONTAINER_H
#define HB_SERVER_RPC_CONTAINER_H

#include <stddef.h>

#define HB_CONTAINER_OF(pointer, type, member) \
  ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

#endif
