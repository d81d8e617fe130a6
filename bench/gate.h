/* Where the threads of a measurement meet: counts, failure, and waiting for a change of them. */
#ifndef HB_BENCH_GATE_H
#define HB_BENCH_GATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct hb_counts {
  uint64_t ready;           /* subscribers that are connected */
  uint64_t received;        /* events that the first subscriber has */
  uint64_t finished;        /* subscribers that have everything */
  uint64_t stalled;         /* subscribers that have stopped reading */
  uint64_t answered;        /* producers that have all their answers */
  uint64_t first_send_ns;   /* 0 = not yet, as below; monotonic */
  uint64_t last_ack_ns;     /* of the producer that was answered last */
  uint64_t last_receive_ns; /* the last subscriber has everything */
  bool failed;
  bool stopped;
};

struct hb_gate {
  pthread_mutex_t mutex;
  pthread_cond_t changed; /* on the monotonic clock */
  struct hb_counts counts;
};

void hb_gate_init(struct hb_gate *gate);
void hb_gate_done(struct hb_gate *gate);

/* Any thread, all of these. */
void hb_gate_ready(struct hb_gate *gate);
/* When the first of them began: for all the same. */
uint64_t hb_gate_first_send(struct hb_gate *gate);
void hb_gate_answered(struct hb_gate *gate);
void hb_gate_received(struct hb_gate *gate, uint64_t events);
void hb_gate_finished(struct hb_gate *gate);
void hb_gate_stalled(struct hb_gate *gate);
void hb_gate_stop(struct hb_gate *gate);
/* Say what went wrong on stderr, the first time, and let everybody know. */
void hb_gate_fail(struct hb_gate *gate, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
struct hb_counts hb_gate_look(struct hb_gate *gate);
/* Wait for any change, at most `ms`. */
void hb_gate_wait(struct hb_gate *gate, uint32_t ms);
/* Wait until so many subscribers are connected. False: it failed or was stopped. */
bool hb_gate_wait_ready(struct hb_gate *gate, uint64_t subscribers);

#endif
