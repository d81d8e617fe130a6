/* Decides when a message arrives: never before the one sent before it. */
#include "tests/sim/network.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

struct delivery {
  struct hb_sim_conn *conn;
  struct hb_sim_message message;
};

void hb_sim_network_init(struct hb_sim_network *network, struct hb_world *world) {
  *network = (struct hb_sim_network){.world = world};
}

void hb_sim_network_done(struct hb_sim_network *network) {
  for (size_t i = 0; i < network->conns_count; i++) {
    free(network->conns[i]->inbox);
    free(network->conns[i]);
  }
  free(network->conns);
}

struct hb_sim_conn *hb_sim_connect(struct hb_sim_network *network, struct hb_sim_end client) {
  struct hb_sim_conn *conn = hb_calloc(1, sizeof *conn);
  conn->network = network;
  conn->id = network->conns_count + 1;
  conn->client = client;
  conn->client_open = conn->server_open = true;
  hb_reserve((void **)&network->conns, &network->conns_cap, network->conns_count + 1,
             sizeof(struct hb_sim_conn *));
  network->conns[network->conns_count++] = conn;
  return conn;
}

static void arrive(void *context, uint64_t to_server) {
  struct delivery *delivery = context;
  struct hb_sim_conn *conn = delivery->conn;
  conn->network->messages--;
  if (to_server ? conn->server_open : conn->client_open) {
    struct hb_sim_end to = to_server ? conn->network->server : conn->client;
    if (delivery->message.kind == HB_SIM_CLOSE) {
      conn->client_open = false;
    }
    to.receive(to.context, conn, &delivery->message);
  }
  free(delivery);
}

static void send(struct hb_sim_conn *conn, const struct hb_sim_message *message, bool to_server) {
  struct hb_world *world = conn->network->world;
  struct delivery *delivery = hb_alloc(sizeof *delivery);
  *delivery = (struct delivery){conn, *message};
  uint64_t at =
      world->now_us + hb_world_between(world, 50, hb_world_chance(world, 5) ? 30000 : 900);
  if (at <= conn->free_at_us[to_server]) at = conn->free_at_us[to_server] + 1;
  conn->free_at_us[to_server] = at;
  conn->network->messages++;
  hb_world_plan(world, at - world->now_us, arrive, delivery, to_server);
}

void hb_sim_to_server(struct hb_sim_conn *conn, const struct hb_sim_message *message) {
  send(conn, message, true);
}

void hb_sim_to_client(struct hb_sim_conn *conn, const struct hb_sim_message *message) {
  send(conn, message, false);
}

void hb_sim_close_by_server(struct hb_sim_conn *conn) {
  if (!conn->server_open) return;
  conn->server_open = false;
  send(conn, &(struct hb_sim_message){.kind = HB_SIM_CLOSE}, false);
}

void hb_sim_close_by_client(struct hb_sim_conn *conn) {
  conn->client_open = conn->server_open = false;
}

void hb_sim_break(struct hb_sim_conn *conn) {
  if (!conn->client_open) return;
  hb_world_note(conn->network->world, "connection %" PRIu64 " breaks", conn->id);
  conn->server_open = conn->client_open = false;
  conn->client.receive(conn->client.context, conn, &(struct hb_sim_message){.kind = HB_SIM_CLOSE});
}
