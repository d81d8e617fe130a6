/* What a read of the fake engine finds, in what a stream was given; log blocks are found beside it.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "server/engine/reads.h"
#include "server/rpc/fake_internal.h"

static bool matches(const struct hb_read *read, const struct hb_event *event) {
  if (read->kind != HB_READ_KEY) return hb_slice_starts_with(hb_event_key(event), read->key);
  return hb_slice_equal(hb_event_key(event), read->key) &&
         (!read->has_from || event->sequence >= read->from_position);
}

/* Tokens are the count of matches that were read already, as a text. */
static size_t count_of_token(const struct hb_read *read) {
  size_t skip = 0;
  for (size_t i = 0; i < read->token.size; i++)
    skip = skip * 10 + (size_t)(read->token.data[i] - 48);
  return skip;
}

static void put_token(struct hb_read *read, size_t count) {
  char token[24];
  int size = snprintf(token, sizeof token, "%zu", count);
  hb_buf_append(&read->next_token, token, (size_t)size);
}

static void read_key(struct hb_read *read) {
  struct hb_stream *stream = read->stream;
  size_t skip = count_of_token(read);
  read->entries = hb_calloc(read->page_size, sizeof *read->entries);
  size_t seen = 0;
  for (size_t i = 0; i < stream->count; i++) {
    const struct hb_event *event = &stream->events[i].event;
    if (!matches(read, event) || seen++ < skip) continue;
    if (read->entries_count == read->page_size) {
      put_token(read, skip + read->entries_count);
      return;
    }
    read->entries[read->entries_count++] =
        (struct hb_key_entry){.owner = NULL,
                              .frame = hb_event_frame(event),
                              .position = event->sequence,
                              .released = event->sequence < stream->record.frontier};
  }
}

static void read_keys(struct hb_read *read) {
  struct hb_stream *stream = read->stream;
  for (size_t i = 0; i < stream->count && read->keys_count < read->page_size; i++) {
    const struct hb_event *event = &stream->events[i].event;
    if (!matches(read, event) || event->sequence >= stream->record.frontier) continue;
    uint32_t size = event->key_size; /* little-endian here, as everywhere we run */
    hb_buf_append(&read->keys, &size, sizeof size);
    hb_buf_append(&read->keys, hb_event_key(event).data, size);
    read->keys_count++;
  }
}

/* A conflict is told as one, an event before the first as one that user code failed at, with a text
 * that is none. */
static void read_unprocessed(struct hb_read *read) {
  const struct hb_stream *stream = read->stream;
  size_t skip = count_of_token(read);
  read->unprocessed = hb_calloc(read->page_size, sizeof *read->unprocessed);
  for (size_t i = skip; i < stream->refused_count; i++) {
    const struct refused *refused = &stream->refused[i];
    bool conflict = refused->outcome == HB_OUTCOME_CONFLICT;
    const struct hb_slice none = {NULL, 0};
    if (read->unprocessed_count == read->page_size) {
      put_token(read, i);
      return;
    }
    read->unprocessed[read->unprocessed_count++] = (struct hb_unprocessed_entry){
        .owner = hb_bytes_ref(refused->frame),
        .reason = conflict ? HB_OUTCOME_CONFLICT : HB_UNPROCESSED_EXCEPTION,
        .position = refused->sequence,
        .count = i + 1,
        .first_seen_wall_ms = 1001,
        .last_seen_wall_ms = 2002,
        .frame = hb_bytes_view(refused->frame),
        .explanation = conflict ? none : hb_slice_text("cut \xC3"),
        .processor = conflict ? none : hb_slice_text("p"),
        .producer = conflict ? hb_slice_text("alice") : none};
  }
}

static void read_time(struct hb_read *read) {
  struct hb_stream *stream = read->stream;
  read->found_position = stream->record.frontier;
  for (size_t i = stream->count; i > 0; i--) {
    const struct hb_event *event = &stream->events[i - 1].event;
    if (event->sequence >= stream->record.frontier) continue;
    if (hb_time_compare(event->time, read->time) >= 0) read->found_position = event->sequence;
  }
}

void fake_read_locked(struct hb_read *read) {
  switch (read->kind) {
    case HB_READ_TIME:
      read_time(read);
      break;
    case HB_READ_KEY:
      read_key(read);
      break;
    case HB_READ_KEYS:
      read_keys(read);
      break;
    case HB_READ_UNPROCESSED:
      read_unprocessed(read);
      break;
    case HB_READ_LOG:
    case HB_READ_KEY_STATUS: /* there is no processor */
      break;
  }
}
