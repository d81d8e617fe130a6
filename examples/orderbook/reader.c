/* Decides how long results are waited for, and what is said where they don't come. */
#include "examples/orderbook/reader.h"

#include <stdio.h>

#include "base/clock.h"
#include "demo/stage.h"

enum { STALL_MS = 60000 };

static bool take_results(struct ob_reader *reader, const struct holdback_message *message) {
  struct holdback_processor_result result;
  struct ob_depth depth;
  for (size_t cursor = 0; holdback_message_result(message, &cursor, &result);) {
    if (!ob_judge_take(reader->judge, &result)) return false;
    /* It is what the judge encoded: it has the form, and a contract of the feed. */
    const char *wrong = ob_depth_decode(result.payload.data, result.payload.size, &depth);
    if (!demo_expect(wrong == NULL, wrong)) return false;
    ob_table_take(reader->table, &depth);
  }
  return true;
}

static bool say_state(void *context, const struct holdback_processor_config *config,
                      const struct holdback_processor_status *status) {
  (void)context;
  (void)fprintf(stderr, "orderbook: processor '%s' is %s, %llu events, %llu failed. %s %s\n",
                config->name, holdback_processor_state_name(status->state),
                (unsigned long long)status->events, (unsigned long long)status->failed,
                status->reason, status->has_last_failure ? status->last_failure : "");
  return true;
}

/* True: the stream has ended. */
static bool read_all(struct ob_reader *reader, struct holdback_subscription *subscription) {
  struct holdback_error error = {0};
  uint64_t news_ms = hb_clock_mono_ms();
  while (!atomic_load(&reader->stop) && hb_clock_mono_ms() - news_ms < STALL_MS) {
    const struct holdback_message *message = NULL;
    if (holdback_next(subscription, DEMO_WAIT_MS, &message, &error) != HOLDBACK_OK) {
      return demo_fail("subscription", &error);
    }
    if (!message) continue;
    if (holdback_message_kind(message) == HOLDBACK_MESSAGE_END) return true;
    if (holdback_message_kind(message) != HOLDBACK_MESSAGE_RESULTS) continue;
    news_ms = hb_clock_mono_ms();
    if (!take_results(reader, message)) return false;
  }
  return demo_expect(atomic_load(&reader->stop), "results from the processor in time");
}

static void *reader_main(void *argument) {
  struct ob_reader *reader = argument;
  struct holdback_error error = {0};
  struct holdback_subscribe_options options = {
      .stream = reader->stream, .processor = reader->processor, .start = HOLDBACK_START_EARLIEST};
  struct holdback_subscription *subscription = NULL;
  if (holdback_subscribe(reader->client, &options, &subscription, &error) != HOLDBACK_OK) {
    (void)demo_fail("subscribe", &error);
  } else {
    reader->good = read_all(reader, subscription) && ob_judge_finish(reader->judge);
  }
  reader->ended_ns = hb_clock_mono_ns();
  holdback_subscription_destroy(subscription);
  if (!reader->good) {
    (void)holdback_processor_list(reader->client, reader->stream, reader->processor, say_state,
                                  NULL, &error);
  }
  return NULL;
}

bool ob_reader_start(struct ob_reader *reader) {
  return demo_expect(pthread_create(&reader->thread, NULL, reader_main, reader) == 0, "a thread");
}

bool ob_reader_join(struct ob_reader *reader) {
  pthread_join(reader->thread, NULL);
  return reader->good;
}
