/* When each event of an open loop is due: a schedule that does not wait for anybody. */
#ifndef HB_BENCH_PACER_H
#define HB_BENCH_PACER_H

#include <stdint.h>

struct hb_pacer {
  uint64_t start_ns;
  uint64_t rate; /* a second */
  int timer;     /* of the kernel's; -1 = none */
};

/* rate 0: everything is due at once. */
void hb_pacer_init(struct hb_pacer *pacer, uint64_t start_ns, uint64_t rate);
void hb_pacer_done(struct hb_pacer *pacer);
/* The moment that event i was meant for, monotonic. */
uint64_t hb_pacer_due_ns(const struct hb_pacer *pacer, uint64_t i);
/* Wait until it has come; does not wait where it is over. */
void hb_pacer_wait(struct hb_pacer *pacer, uint64_t i);

#endif
