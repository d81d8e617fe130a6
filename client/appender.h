/* An appender from the inside: what its four rooms share.
 *
 *   appender.c         the caller's side: fills batches, waits for room, flushes
 *   appender_call.c    the call: sends, loses the connection, sends again
 *   appender_answer.c  answers become results; refused events go to the window
 *   appender_window.c  when refused events go again, and when they are given up
 *
 * A batch goes from the caller's thread to the client's as a task, and never back. */
#ifndef HB_CLIENT_APPENDER_H
#define HB_CLIENT_APPENDER_H

#include "client/backoff.h"
#include "client/call.h"
#include "client/outbox.h"
#include "client/unary.h"
#include "client/window.h"
#include "holdback/v1/ingest.pb-c.h"

/* Numbers of a stream that tell, from poll to poll, whether there is room that was not there. */
struct hbc_room {
  bool known;
  uint64_t held_events;
  uint64_t held_bytes;
  uint64_t gaps_total;
  uint64_t limits[4];
};

struct holdback_appender {
  struct hbc_member member; /* first */
  struct holdback_client *client;
  /* immutable */
  char *stream;   /* owned */
  char *producer; /* owned; NULL = none */
  size_t batch_events;
  size_t batch_bytes;
  uint32_t window_timeout_ms;
  uint32_t reconnect_timeout_ms;
  holdback_on_result *on_result;
  void *context;

  /* the caller's thread only */
  struct hbc_batch *filling; /* NULL = nothing collected */
  size_t size_guess;         /* bytes that the last batch needed */

  atomic_bool failed; /* broken.status is set: what holdback_append looks at without the mutex */
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  /* protected by mutex */
  size_t unanswered; /* batches handed to the client's thread, refused events sent again included */
  size_t unanswered_bytes;
  size_t refused; /* events that wait in the window */
  size_t refused_bytes;
  struct holdback_append_progress progress;
  struct holdback_error broken; /* status 0 = works */
  bool closed;

  /* client's thread only */
  struct hbc_call call;
  struct hbc_outbox outbox;
  struct hbc_window window;
  struct hbc_backoff backoff;
  struct hbc_timer again_at;   /* the next attempt to connect */
  struct hbc_timer give_up_at; /* no answer for too long */
  struct hbc_timer poll_at;    /* ask GetStream */
  struct hbc_timer window_at;  /* complete_to did not move for too long */
  struct hbc_timer close_at;   /* the server does not end the call */
  struct holdback_error last_failure;
  struct hb_buf incarnation;   /* empty = not known yet */
  struct holdback_gap missing; /* the lowest gap of the last answer; start == end: none said */
  struct hbc_unary poll;
  struct hbc_room room;
  bool polling;
  bool opening;  /* the call's next message is its first */
  bool retrying; /* a batch of refused events is on its way */
  bool is_broken;
  bool closing;
};

/* All on the client's thread. */

/* Connect where needed and send what can be sent. */
void hbc_appender_pump(struct holdback_appender *appender);
/* Something is asked of the server: the time until an answer counts, if it does not already. */
void hbc_appender_attempt(struct holdback_appender *appender);
/* For good: everything unanswered is dropped, whoever waits gets `error`. */
void hbc_appender_break(struct holdback_appender *appender, const struct holdback_error *error);
/* Begin to end; `closed` is signalled when nothing of it is under way any more. */
void hbc_appender_close(struct holdback_appender *appender);
/* Tell the closing thread where that is so. The appender may be gone afterwards. */
void hbc_appender_closed_maybe(struct holdback_appender *appender);

/* `batch` is what `result` answers. False: the result can't be an answer to it. */
bool hbc_appender_take_answer(struct holdback_appender *appender, const struct hbc_batch *batch,
                              const Holdback__V1__AppendResult *result);

/* After anything that may have changed the window: send refused events again, set timers. */
void hbc_appender_window_changed(struct holdback_appender *appender);
void hbc_appender_window_init(struct holdback_appender *appender);
void hbc_appender_call_init(struct holdback_appender *appender);

#endif
