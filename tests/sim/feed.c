/* Decides what a subscriber gets next: up to the published frontier, from the log, in pieces. */
#include "tests/sim/feed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>
#include <inttypes.h>

#include "base/frame/block.h"

void hb_feed_numbers(const struct hb_sim_server *server, uint64_t stream,
                     struct hb_sim_message *message) {
  struct hb_fake_stream *durable = hb_fake_find((struct hb_fake_store *)&server->durable, stream);
  message->complete_to = durable->record.complete_to;
  message->frontier = durable->record.frontier;
}

void hb_feed_status(struct hb_sim_server *server, struct hb_sim_conn *conn, uint64_t stream) {
  struct hb_sim_message message = {.kind = HB_SIM_STATUS, .stream = stream};
  hb_feed_numbers(server, stream, &message);
  hb_sim_to_client(conn, &message);
}

static void add_events(struct hb_sim_message *message, const struct hb_put_block *put) {
  struct hb_block block;
  assert_int_equal(hb_block_decode(hb_bytes_view(put->block), &block, NULL), HB_OK);
  uint32_t at = hb_block_find(&block, message->position);
  for (; at < block.count && message->count < HB_SIM_EVENTS_MAX; at++) {
    message->events[message->count++] =
        (struct hb_test_event){.sequence = hb_block_sequence(&block, at),
                               .content = hb_test_frame_content(hb_block_frame(&block, at))};
    message->position = hb_block_sequence(&block, at) + 1;
  }
}

/* The argument is the life that the read was begun in. */
static void read_log(void *context, uint64_t life) {
  struct hb_sim_conn *conn = context;
  struct hb_sim_server *server = conn->network->server.context;
  conn->feeding = false;
  if (life != server->life || !conn->server_open) return;
  const struct hb_fake_stream *stream = hb_fake_find(&server->durable, conn->stream);
  struct hb_sim_message message = {
      .kind = HB_SIM_BATCH, .stream = conn->stream, .position = conn->position};
  hb_feed_numbers(server, conn->stream, &message);
  for (size_t i = 0; i < stream->blocks_count && message.count < HB_SIM_EVENTS_MAX; i++) {
    if (stream->blocks[i].to > message.position) add_events(&message, &stream->blocks[i]);
  }
  if (!message.count) {
    hb_world_fail(server->world, "stream %" PRIu64 ": a hole in the log at %" PRId64 " (I4)",
                  conn->stream, conn->position);
  }
  conn->position = message.position;
  conn->batch_out = true;
  conn->unread++;
  hb_world_note(server->world, "connection %" PRIu64 " gets %u up to %" PRId64, conn->id,
                message.count, message.position);
  hb_sim_to_client(conn, &message);
}

void hb_feed(struct hb_sim_server *server, struct hb_sim_conn *conn) {
  if (!server->core || !conn->server_open || !conn->subscribed) return;
  if (conn->batch_out || conn->feeding) return;
  const struct hb_fake_stream *stream = hb_fake_find(&server->durable, conn->stream);
  if (conn->position >= stream->record.frontier) return;
  conn->feeding = true;
  hb_world_plan(server->world, hb_world_between(server->world, 10, 1000), read_log, conn,
                server->life);
}

void hb_feed_all(struct hb_sim_server *server) {
  for (size_t i = 0; i < server->network->conns_count; i++) {
    hb_feed(server, server->network->conns[i]);
  }
}

void hb_feed_subscribe(struct hb_sim_server *server, struct hb_sim_conn *conn,
                       const struct hb_sim_message *message) {
  conn->subscribed = true;
  conn->stream = message->stream;
  conn->position = message->position;
  hb_feed(server, conn);
}
