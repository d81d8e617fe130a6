/* The subscriber to the processor's results, on a thread of its own.
 *
 * It starts before the first event is sent; it ends with the stream's end, at the first result that
 * is wrong, when it is told to, or when nothing comes any more. */
#ifndef EXAMPLES_ORDERBOOK_READER_H
#define EXAMPLES_ORDERBOOK_READER_H

#include <pthread.h>
#include <stdatomic.h>

#include "examples/orderbook/judge.h"
#include "examples/orderbook/table.h"

struct ob_reader {
  /* set before start */
  struct holdback_client *client; /* borrowed */
  const char *stream;             /* borrowed */
  const char *processor;          /* borrowed */
  struct ob_judge *judge;         /* borrowed; the reader's until it was joined, as the table */
  struct ob_table *table;         /* borrowed */
  atomic_bool stop;               /* nothing more will be sent */
  /* the reader's until it was joined */
  pthread_t thread;
  uint64_t ended_ns; /* when the last result was there */
  bool good;
};

bool ob_reader_start(struct ob_reader *reader);
/* Wait for its end. True: all results came, and they were right. */
bool ob_reader_join(struct ob_reader *reader);

#endif
