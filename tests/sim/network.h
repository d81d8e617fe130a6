/* A network between clients and one server: messages come in order after some time, or not at all
 * once the connection is gone. Both ends see an end that the other made after what was sent before
 * it; a break loses what is on the way. */
#ifndef HB_TESTS_SIM_NETWORK_H
#define HB_TESTS_SIM_NETWORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ordering/batch.h"
#include "tests/model/test_batch.h"
#include "tests/sim/world.h"

enum { HB_SIM_EVENTS_MAX = 16 };

enum hb_sim_kind {
  HB_SIM_APPEND,    /* to the server */
  HB_SIM_POLL,      /* to the server: GetStream */
  HB_SIM_SUBSCRIBE, /* to the server */
  HB_SIM_READ,      /* to the server: one message was read (what HTTP/2's windows say) */
  HB_SIM_ANSWER,    /* to an APPEND, in order */
  HB_SIM_STATUS,    /* to a POLL */
  HB_SIM_BATCH,     /* of a subscription */
  HB_SIM_CLOSE      /* the server ends the connection */
};

struct hb_sim_message {
  enum hb_sim_kind kind;
  uint64_t stream;
  uint64_t ordinal; /* APPEND, ANSWER: from 0 in each connection */
  uint32_t count;
  struct hb_test_event events[HB_SIM_EVENTS_MAX];
  struct hb_decision decisions[HB_SIM_EVENTS_MAX]; /* ANSWER */
  int64_t position;                                /* SUBSCRIBE: from; BATCH: next_position */
  int64_t complete_to;                             /* ANSWER, STATUS, BATCH: as published */
  int64_t frontier;
};

struct hb_sim_conn;
/* The message lives for the call. */
typedef void hb_sim_receive(void *context, struct hb_sim_conn *conn,
                            const struct hb_sim_message *message);

struct hb_sim_end {
  hb_sim_receive *receive;
  void *context;
};

struct hb_sim_network {
  struct hb_world *world;
  struct hb_sim_end server;
  struct hb_sim_conn **conns; /* owned, all that ever were */
  size_t conns_count, conns_cap;
  size_t messages; /* on their way */
};

struct hb_sim_conn {
  struct hb_sim_network *network;
  uint64_t id;
  struct hb_sim_end client;
  bool client_open; /* the client still listens */
  bool server_open; /* so does the server */
  uint64_t free_at_us[2];

  /* The server's. */
  struct hb_sim_message *inbox; /* came, not read yet */
  size_t inbox_count, inbox_cap;
  uint64_t accepted; /* APPENDs read */
  uint64_t answered;
  uint64_t unread; /* accepted or sent, and not read by the client */
  bool subscribed, feeding, batch_out;
  uint64_t stream;
  int64_t position;
};

void hb_sim_network_init(struct hb_sim_network *network, struct hb_world *world);
void hb_sim_network_done(struct hb_sim_network *network);
struct hb_sim_conn *hb_sim_connect(struct hb_sim_network *network, struct hb_sim_end client);
void hb_sim_to_server(struct hb_sim_conn *conn, const struct hb_sim_message *message);
void hb_sim_to_client(struct hb_sim_conn *conn, const struct hb_sim_message *message);
/* The server does not listen any more; the client is told in its turn. */
void hb_sim_close_by_server(struct hb_sim_conn *conn);
/* The client leaves without a word. */
void hb_sim_close_by_client(struct hb_sim_conn *conn);
/* It breaks: what is on the way is lost, both are told. */
void hb_sim_break(struct hb_sim_conn *conn);

#endif
