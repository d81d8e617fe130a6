/* A call: the one place where gRPC's objects of a call are made, used and given back.
 *
 *   open ──(hb_call_end: answered, refused, drained)──> over ──(status sent, peer closed)──> freed
 *     └────(the peer cancelled or is gone)────────────────^
 *
 * A method is a table of functions; its own state follows struct hb_call in one allocation. All
 * of it runs on the call's pump. Each accepted call gets exactly one status (I9): hb_call_end
 * counts once, and a call that its peer left needs none. */
#ifndef HB_SERVER_RPC_CALL_H
#define HB_SERVER_RPC_CALL_H

#include <grpc/grpc.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "server/rpc/peer.h"
#include "server/rpc/pump.h"

struct hb_call;
struct hb_lane;
struct hb_rpc;

struct hb_method {
  const char *path;
  size_t size;              /* of the struct that begins with hb_call */
  size_t request_bytes_max; /* larger ones are HB_INVALID; 0 = the method looks itself */
  bool budgeted;            /* messages wait where the lane has its fill of batches */
  /* Accepted; usually hb_call_read. */
  void (*opened)(struct hb_call *call);
  /* A message in one piece (take a reference to keep it); NULL: the peer sends no more. */
  void (*received)(struct hb_call *call, const grpc_slice *message);
  /* What hb_call_send started has been taken over by the transport. NULL allowed. */
  void (*sent)(struct hb_call *call);
  /* The call is over: let go of timers, watches. Once; nothing else is called but done. */
  void (*stopped)(struct hb_call *call);
  /* The server stops: end as soon as what was accepted is answered. NULL: ends by itself. */
  void (*drain)(struct hb_call *call);
  /* A stream was deleted, or ingest stopped or goes on: see whether that is this call's matter.
   * NULL allowed. */
  void (*sweep)(struct hb_call *call);
  /* Last: free what the method's state owns. NULL allowed. */
  void (*done)(struct hb_call *call);
};

struct hb_call {
  const struct hb_method *method;
  struct hb_lane *lane;
  struct hb_rpc *rpc;
  struct hb_peer peer;
  uint64_t id; /* unique in this process */

  /* call.c's */
  grpc_call *grpc;
  struct hb_call *next; /* of the lane */
  struct hb_call *previous;
  struct hb_call *next_parked; /* its message waits for the lane's budget */
  struct hb_call *previous_parked;
  bool parked;    /* it came, and waits in `incoming` */
  uint32_t holds; /* operations under way, and what the method holds */
  bool reading;   /* asked for a message that was not handed over yet */
  bool heard;     /* a whole message came once */
  uint64_t read_since_ms;
  bool sending;
  bool metadata_sent;
  bool over;
  bool closed; /* gRPC said that it ended */
  int cancelled;
  struct hb_err end;
  grpc_slice end_details;
  grpc_byte_buffer *incoming;
  grpc_byte_buffer *outgoing;
  grpc_byte_buffer *answer; /* goes with the status */
  struct hb_tag close_tag;
  struct hb_tag read_tag;
  struct hb_tag send_tag;
  struct hb_tag status_tag;
};

/* Takes over `grpc`; calls method->opened. */
void hb_call_open(struct hb_lane *lane, grpc_call *grpc, const struct hb_method *method);

/* Read the next message; none may be being read. */
void hb_call_read(struct hb_call *call);
/* Send `message` (taken over); nothing may be being sent and the call not over. more_follows: the
 * method sends another at `sent`, so the transport may wait for it. Returns the bytes. */
size_t hb_call_send(struct hb_call *call, grpc_byte_buffer *message, bool more_follows);
/* End the call: with `err`, or with OK where it is NULL. Ignored where the call is over. */
void hb_call_end(struct hb_call *call, const struct hb_err *err);
/* A unary call's answer (taken over) and OK, together. */
void hb_call_answer(struct hb_call *call, grpc_byte_buffer *answer);
/* For a server that can't wait for a peer that does not read. */
void hb_call_cut(struct hb_call *call);

/* The lane has room again: messages that waited are handed over. */
void hb_call_unpark(struct hb_lane *lane);

/* The call's memory stays while something elsewhere (the engine, a mailbox) will call back. */
void hb_call_hold(struct hb_call *call);
void hb_call_release(struct hb_call *call);

#endif
