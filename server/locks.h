/* What gRPC's locks check while they lock. */
#ifndef HB_SERVER_LOCKS_H
#define HB_SERVER_LOCKS_H

/* Before grpc_init. */
void hb_locks_tune(void);

#endif
