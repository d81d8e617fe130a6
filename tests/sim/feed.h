/* The server's side of subscriptions: a cursor in each connection, one answer on its way. */
#ifndef HB_TESTS_SIM_FEED_H
#define HB_TESTS_SIM_FEED_H

#include "tests/sim/server.h"

/* The numbers that anybody may be shown: of what is durable. */
void hb_feed_numbers(const struct hb_sim_server *server, uint64_t stream,
                     struct hb_sim_message *message);
void hb_feed_status(struct hb_sim_server *server, struct hb_sim_conn *conn, uint64_t stream);
void hb_feed_subscribe(struct hb_sim_server *server, struct hb_sim_conn *conn,
                       const struct hb_sim_message *message);
/* Something may be there for it. */
void hb_feed(struct hb_sim_server *server, struct hb_sim_conn *conn);
void hb_feed_all(struct hb_sim_server *server);

#endif
