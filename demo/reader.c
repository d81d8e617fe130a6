/* Decides whether what was delivered is the whole file in the order of its sequence. */
#include "demo/reader.h"

#include <openssl/evp.h>
#include <stdio.h>

static bool hash_event(EVP_MD_CTX *hash, const struct holdback_event *event) {
  char number[32];
  int size = snprintf(number, sizeof number, "%lld\t", (long long)event->sequence);
  return EVP_DigestUpdate(hash, number, (size_t)size) == 1 &&
         EVP_DigestUpdate(hash, event->key.data, event->key.size) == 1 &&
         EVP_DigestUpdate(hash, "\t", 1) == 1 &&
         EVP_DigestUpdate(hash, event->payload.data, event->payload.size) == 1 &&
         EVP_DigestUpdate(hash, "\n", 1) == 1;
}

static bool take_events(struct demo_reader *reader, const struct holdback_message *message,
                        EVP_MD_CTX *hash) {
  struct holdback_event event;
  int64_t position = 0;
  for (size_t cursor = 0; holdback_message_event(message, &cursor, &event, &position);) {
    if (!demo_expect(event.sequence == reader->delivered + 1, "delivered in order, each once") ||
        !demo_expect(hash_event(hash, &event), "sha256")) {
      return false;
    }
    reader->delivered++;
  }
  return true;
}

static bool read_all(struct demo_reader *reader, struct holdback_subscription *subscription,
                     EVP_MD_CTX *hash) {
  struct holdback_error error = {0};
  while (reader->delivered < reader->count) {
    const struct holdback_message *message = NULL;
    if (holdback_next(subscription, DEMO_WAIT_MS, &message, &error) != HOLDBACK_OK) {
      return demo_fail("subscription", &error);
    }
    if (!demo_expect(message != NULL, "news from the server in time")) return false;
    if (holdback_message_kind(message) == HOLDBACK_MESSAGE_EVENTS &&
        !take_events(reader, message, hash)) {
      return false;
    }
  }
  return demo_expect(EVP_DigestFinal_ex(hash, reader->sha256, NULL) == 1, "sha256");
}

static void *reader_main(void *argument) {
  struct demo_reader *reader = argument;
  struct holdback_error error = {0};
  struct holdback_subscribe_options options = {.stream = reader->stream,
                                               .start = HOLDBACK_START_EARLIEST};
  struct holdback_subscription *subscription = NULL;
  EVP_MD_CTX *hash = EVP_MD_CTX_new();
  if (!hash || EVP_DigestInit_ex(hash, EVP_sha256(), NULL) != 1) {
    (void)demo_expect(false, "sha256");
  } else if (holdback_subscribe(reader->client, &options, &subscription, &error) != HOLDBACK_OK) {
    (void)demo_fail("subscribe", &error);
  } else {
    reader->good = read_all(reader, subscription, hash);
  }
  holdback_subscription_destroy(subscription);
  EVP_MD_CTX_free(hash);
  return NULL;
}

bool demo_reader_start(struct demo_reader *reader) {
  return demo_expect(pthread_create(&reader->thread, NULL, reader_main, reader) == 0, "a thread");
}

bool demo_reader_join(struct demo_reader *reader) {
  pthread_join(reader->thread, NULL);
  return reader->good;
}
