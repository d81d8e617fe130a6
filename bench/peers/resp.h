/* Redis's wire protocol, RESP2, as much of it as XADD and XREAD need, over a socket of one's own.
 *
 * By hand and not by hiredis: the client should cost Redis as little as it can. */
#ifndef HB_BENCH_PEERS_RESP_H
#define HB_BENCH_PEERS_RESP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

struct hb_resp {
  int fd;
  char *buffer; /* owned */
  size_t cap, start, end;
  char problem[128]; /* why a function said false */
};

/* To 127.0.0.1. */
bool hb_resp_connect(struct hb_resp *resp, uint16_t port);
void hb_resp_done(struct hb_resp *resp);

/* "*count", then each argument. */
void hb_resp_put_array(struct hb_buf *out, size_t count);
void hb_resp_put(struct hb_buf *out, const void *data, size_t size);
bool hb_resp_send(struct hb_resp *resp, const struct hb_buf *bytes);

/* The next array's length; -1: nil. */
bool hb_resp_array(struct hb_resp *resp, int64_t *out_count);
/* The next string, which lives until the next call. An error of the server's is false. */
bool hb_resp_string(struct hb_resp *resp, struct hb_slice *out);
/* A string, a status or an error: of no interest but whether it is an error. */
bool hb_resp_skip(struct hb_resp *resp);

#endif
