/* PER_KEY mode, rule by rule: where keys begin and end, what is released, limits, and what survives
 * a restart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "tests/model/per_key_rig.h"

static struct hb_per_key_rig rig;

#define EV(k, s, ...) \
  { .sequence = (s), .content = (uint32_t)(s)&0xff, .key = (k), __VA_ARGS__ }
#define SEND(...)                                       \
  send_all((const struct hb_test_event[]){__VA_ARGS__}, \
           sizeof((const struct hb_test_event[]){__VA_ARGS__}) / sizeof(struct hb_test_event))

static char outcomes[256];

/* One letter per event: S D C B O, or the reason of a refusal in lower case (a b g m r e). */
static const char *send_all(const struct hb_test_event *events, size_t count) {
  struct hb_test_batch *batch = hb_rig_send(&rig, events, count);
  for (size_t i = 0; i < count; i++) {
    const struct hb_decision *decision = &batch->batch.decisions[i];
    outcomes[i] = "-SDCLBOW"[decision->outcome];
    if (decision->outcome == HB_OUTCOME_WINDOW_FULL) outcomes[i] = "-abgmruxqe"[decision->reason];
  }
  outcomes[count] = 0;
  hb_test_batch_destroy(batch);
  hb_rig_check(&rig);
  return outcomes;
}

/* What is in the log, in order: "a0 a1 b0". */
static const char *log_text(void) {
  static char text[1024];
  size_t count;
  struct hb_rig_event *events = hb_rig_events(&rig, &count);
  text[0] = 0;
  for (size_t i = 0; i < count; i++) {
    if (events[i].held) continue;
    size_t at = strlen(text);
    (void)snprintf(text + at, sizeof text - at, "%s%s%lld", at ? " " : "", events[i].key,
                   (long long)events[i].sequence);
  }
  free(events);
  return text;
}

static void start(struct hb_stream_config config) { hb_rig_start(&rig, &config, NULL); }
static int stop(void **state) {
  (void)state;
  hb_rig_stop(&rig);
  return 0;
}

/* Each key has its own sequence: the same numbers under two keys are two events. */
static void keys_are_independent(void **state) {
  (void)state;
  start(hb_rig_config(0));
  assert_string_equal(SEND(EV("a", 0), EV("b", 0), EV("a", 1), EV("b", 2)), "SSSS");
  assert_string_equal(log_text(), "a0 a1 b0");
  assert_string_equal(SEND(EV("b", 1)), "S");
  assert_string_equal(log_text(), "a0 a1 b0 b1 b2");
  assert_int_equal(hb_rig_row(&rig, "b")->next, 3);
  assert_int_equal(rig.record.frontier, 5);
}

/* The empty key is a key like others. */
static void the_empty_key_is_a_key(void **state) {
  (void)state;
  start(hb_rig_config(1));
  assert_string_equal(SEND(EV("", 2), EV("x", 1), EV("", 1)), "SSS");
  assert_string_equal(log_text(), "1 2 x1");
}

/* Copies: of what is held and of what is released, in one commit, later, and after a restart. */
static void copies_are_exact_for_ever(void **state) {
  (void)state;
  start(hb_rig_config(0));
  struct hb_test_event other = EV("a", 0);
  other.content = 99;
  struct hb_test_event other_held = EV("a", 5);
  other_held.content = 98;
  assert_string_equal(SEND(EV("a", 0), EV("a", 0), other, EV("a", 5), EV("a", 5), other_held),
                      "SDCSDC");
  assert_string_equal(SEND(EV("a", 0), other, EV("a", 5), other_held), "DCDC");
  hb_rig_recover(&rig);
  hb_rig_check(&rig);
  assert_string_equal(SEND(EV("a", 0), other, EV("a", 5), other_held), "DCDC");
  assert_int_equal(rig.content_needs, 4);
}

/* Below first_sequence, at the last number, and at the lowest. */
static void ends_of_the_numbers(void **state) {
  (void)state;
  start(hb_rig_config(INT64_MIN));
  assert_string_equal(SEND(EV("a", INT64_MAX), EV("a", INT64_MIN), EV("a", INT64_MIN + 2)), "OSS");
  hb_rig_stop(&rig);
  start(hb_rig_config(INT64_MAX - 1));
  assert_string_equal(SEND(EV("a", INT64_MAX - 1), EV("a", INT64_MAX), EV("a", INT64_MAX - 2)),
                      "SOB");
}

/* Without a first_sequence a key waits for the event that says it is the first. */
static void a_key_begins_at_its_initial_event(void **state) {
  (void)state;
  struct hb_stream_config config = hb_rig_config(0);
  config.first_seen = true;
  start(config);
  assert_string_equal(SEND(EV("a", 12), EV("a", 11), EV("b", 1)), "SSS");
  assert_string_equal(log_text(), "");
  assert_string_equal(SEND(EV("a", 10, .flags = HB_EVENT_INITIAL)), "S");
  assert_string_equal(log_text(), "a10 a11 a12");
  assert_int_equal(hb_rig_row(&rig, "a")->first, 10);
  assert_null(hb_rig_row(&rig, "b"));
  /* A second one means nothing: the key has begun. */
  assert_string_equal(SEND(EV("a", 20, .flags = HB_EVENT_INITIAL)), "S");
  assert_string_equal(SEND(EV("a", 9, .flags = HB_EVENT_INITIAL)), "B");
  assert_int_equal(hb_rig_row(&rig, "a")->next, 13);
}

/* Beam's X4: what came before the initial event and is below it does not block the key. It was
 * stored; it is kept aside. */
static void held_below_the_initial_event_is_kept_aside(void **state) {
  (void)state;
  struct hb_stream_config config = hb_rig_config(0);
  config.first_seen = true;
  start(config);
  assert_string_equal(SEND(EV("a", 2), EV("a", -1)), "SS");
  assert_int_equal(rig.record.counters.stored, 2);
  assert_string_equal(SEND(EV("a", 0, .flags = HB_EVENT_INITIAL), EV("a", 1)), "SS");
  assert_string_equal(log_text(), "a0 a1 a2");
  assert_int_equal(rig.refusals, 1);
  assert_int_equal(rig.record.counters.before_first, 1);
  assert_int_equal(rig.record.counters.stored, 3);
  assert_int_equal(rig.bundles_count, 0);
  hb_rig_recover(&rig);
  assert_string_equal(SEND(EV("a", -1)), "B");
}

/* A copy of a held event may be the one that says it: content is the same. One with another
 * content is a conflict, and says nothing. */
static void a_copy_may_say_initial(void **state) {
  (void)state;
  struct hb_stream_config config = hb_rig_config(0);
  config.first_seen = true;
  start(config);
  struct hb_test_event other = EV("a", 3, .flags = HB_EVENT_INITIAL);
  other.content = 77;
  assert_string_equal(SEND(EV("a", 3)), "S");
  assert_string_equal(SEND(other), "C");
  assert_string_equal(log_text(), "");
  assert_string_equal(SEND(EV("a", 3, .flags = HB_EVENT_INITIAL)), "D");
  assert_string_equal(log_text(), "a3");
}

/* With a first_sequence the flag changes nothing, so no order of arrival does (I11). */
static void initial_means_nothing_with_a_first_sequence(void **state) {
  (void)state;
  start(hb_rig_config(0));
  assert_string_equal(SEND(EV("a", 5, .flags = HB_EVENT_INITIAL), EV("a", 0)), "SS");
  assert_string_equal(log_text(), "a0");
}

/* A key is complete when its last event is released, not when it comes. */
static void a_key_is_complete_when_all_is_released(void **state) {
  (void)state;
  start(hb_rig_config(0));
  assert_string_equal(SEND(EV("a", 0), EV("a", 2, .flags = HB_EVENT_LAST)), "SS");
  assert_false(hb_rig_row(&rig, "a")->complete);
  hb_rig_recover(&rig);
  assert_string_equal(SEND(EV("a", 1)), "S");
  assert_true(hb_rig_row(&rig, "a")->complete);
  assert_int_equal(hb_rig_row(&rig, "a")->last, 2);
}

/* Held keys come back after a restart, and only their records were read. */
static void a_restart_reads_only_held_keys(void **state) {
  (void)state;
  start(hb_rig_config(0));
  assert_string_equal(SEND(EV("a", 0), EV("b", 0), EV("b", 2), EV("c", 3)), "SSSS");
  hb_rig_recover(&rig);
  hb_rig_check(&rig);
  rig.record_needs = 0;
  assert_string_equal(SEND(EV("b", 1), EV("c", 0)), "SS");
  assert_int_equal(rig.record_needs, 0);
  assert_string_equal(log_text(), "a0 b0 b1 b2 c0");
  assert_string_equal(SEND(EV("a", 1)), "S");
  assert_int_equal(rig.record_needs, 1);
}

/* Each limit refuses what would wait, and never what can be released. */
static void limits_refuse_what_waits(void **state) {
  (void)state;
  struct hb_stream_config config = hb_rig_config(0);
  config.limits.ahead_max = 10;
  config.limits.held_events_max = 3;
  config.limits.gaps_max = 2;
  start(config);
  assert_string_equal(SEND(EV("a", 10), EV("a", 9)), "aS");
  assert_string_equal(SEND(EV("b", 5), EV("c", 5)), "Sg");
  assert_string_equal(SEND(EV("b", 6), EV("b", 7)), "Se");
  hb_ordering_set_disk_reserve(rig.core, true);
  assert_string_equal(SEND(EV("d", 1), EV("d", 0), EV("e", 3)), "SSr");
  assert_string_equal(log_text(), "d0 d1");
}

/* ahead_max is counted from what is complete of the key when all below has been settled. */
static void ahead_is_per_key(void **state) {
  (void)state;
  struct hb_stream_config config = hb_rig_config(0);
  config.limits.ahead_max = 3;
  start(config);
  assert_string_equal(SEND(EV("a", 4), EV("a", 3), EV("a", 0), EV("b", 3)), "aSSa");
}

static void start_with_memory(struct hb_stream_config config, uint64_t bytes) {
  struct hb_ordering_options options = {.limits = hb_limits_default()};
  options.limits.key_held_memory_max = bytes;
  hb_rig_start(&rig, &config, &options);
}

static size_t resident_bytes(void) {
  size_t largest;
  return hb_rig_resident_bytes(&rig, &largest);
}

/* What memory has no room for stays in its bundle, and is read back when its key goes on: each
 * bundle once, for all keys that wait for it. */
static void memory_bounds_what_is_in_memory_only(void **state) {
  (void)state;
  start_with_memory(hb_rig_config(0), 600);
  assert_string_equal(SEND(EV("a", 1, .size = 200), EV("b", 1, .size = 200)), "SS");
  assert_string_equal(SEND(EV("c", 1, .size = 200), EV("d", 1, .size = 200)), "SS");
  assert_in_range(resident_bytes(), 1, 600);
  assert_int_equal(rig.fetches, 0);
  assert_string_equal(SEND(EV("a", 0), EV("b", 0), EV("c", 0), EV("d", 0)), "SSSS");
  assert_int_equal(rig.record.frontier, 8);
  assert_int_equal(rig.fetches, 1);
  assert_int_equal(rig.bundles_count, 0);
}

/* With memory for nothing releases go on, one bundle after another. */
static void the_smallest_memory_does(void **state) {
  (void)state;
  start_with_memory(hb_rig_config(0), 1);
  for (int64_t i = 9; i > 0; i--) assert_string_equal(SEND(EV("a", i), EV("b", i)), "SS");
  assert_int_equal(resident_bytes(), 0);
  assert_string_equal(SEND(EV("a", 0)), "S");
  assert_string_equal(log_text(), "a0 a1 a2 a3 a4 a5 a6 a7 a8 a9");
  assert_string_equal(SEND(EV("b", 0)), "S");
  assert_int_equal(rig.record.frontier, 20);
  assert_int_equal(rig.bundles_count, 0);
}

/* A key whose next event is on disk only keeps no other key waiting. */
static void a_key_that_waits_for_a_bundle_waits_alone(void **state) {
  (void)state;
  start_with_memory(hb_rig_config(0), 1);
  assert_string_equal(SEND(EV("a", 1)), "S");
  const struct hb_test_event events[] = {EV("a", 0), EV("b", 0)};
  struct hb_test_batch *batch = hb_test_batch_create(HB_RIG_STREAM, 1, events, 2);
  hb_ordering_submit(rig.core, &batch->batch);
  struct hb_need *need = hb_ordering_take_need(rig.core);
  hb_rig_answer(&rig, need);
  hb_ordering_answer_need(rig.core, need);
  const struct hb_commit *commit = hb_ordering_decide(rig.core, rig.now);
  hb_rig_apply(&rig, commit);
  hb_ordering_committed(rig.core, commit);
  assert_ptr_equal(hb_ordering_take_answered(rig.core), &batch->batch);
  hb_test_batch_destroy(batch);
  assert_string_equal(log_text(), "a0 b0");
  struct hb_bundle_id id;
  assert_false(hb_ordering_has_work(rig.core));
  assert_true(hb_ordering_take_fetch(rig.core, &id));
  assert_true(hb_ordering_waits_for(rig.core, id));
  hb_ordering_fetched(rig.core, id, NULL); /* it can't be read: again after the next commit */
  assert_false(hb_ordering_take_fetch(rig.core, &id));
  assert_string_equal(SEND(EV("b", 1)), "S");
  assert_string_equal(log_text(), "a0 b0 b1 a1");
}

/* Copies of what is on disk only are compared by a reader, exactly. */
static void copies_of_what_is_on_disk_are_exact(void **state) {
  (void)state;
  struct hb_stream_config config = hb_rig_config(0);
  config.first_seen = true;
  start_with_memory(config, 1);
  struct hb_test_event other = EV("a", 5, .flags = HB_EVENT_INITIAL);
  other.content = 98;
  assert_string_equal(SEND(EV("a", 5), EV("a", 7)), "SS");
  assert_string_equal(SEND(EV("a", 5), other, EV("a", 6)), "DCS");
  assert_int_equal(rig.held_needs, 2);
  assert_string_equal(log_text(), "");
  assert_string_equal(SEND(EV("a", 5, .flags = HB_EVENT_INITIAL)), "D"); /* so it begins there */
  assert_string_equal(log_text(), "a5 a6 a7");
}

/* What is below where a key begins is read back to be kept aside; a start goes on with it. */
static void kept_aside_from_disk(void **state) {
  (void)state;
  struct hb_stream_config config = hb_rig_config(0);
  config.first_seen = true;
  start_with_memory(config, 1);
  assert_string_equal(SEND(EV("a", 1), EV("b", 1)), "SS");
  assert_string_equal(SEND(EV("a", 2), EV("a", 4)), "SS");
  const struct hb_test_event initial = EV("a", 3, .flags = HB_EVENT_INITIAL);
  struct hb_test_batch *batch = hb_test_batch_create(HB_RIG_STREAM, 1, &initial, 1);
  hb_ordering_submit(rig.core, &batch->batch);
  const struct hb_commit *commit = hb_ordering_decide(rig.core, rig.now);
  hb_rig_apply(&rig, commit);
  hb_ordering_committed(rig.core, commit);
  hb_test_batch_destroy((struct hb_test_batch *)hb_ordering_take_answered(rig.core));
  assert_int_equal(rig.refusals, 0);
  hb_rig_check(&rig);
  hb_rig_recover(&rig);
  hb_rig_check(&rig);
  hb_rig_settle(&rig);
  hb_rig_check(&rig);
  assert_int_equal(rig.refusals, 2);
  assert_int_equal(rig.record.counters.before_first, 2);
  assert_string_equal(log_text(), "a3 a4");
  assert_string_equal(SEND(EV("a", 1), EV("b", 1, .flags = HB_EVENT_INITIAL)), "BD");
  assert_string_equal(log_text(), "a3 a4 b1");
  assert_int_equal(rig.bundles_count, 0);
}

/* A start with more than memory holds comes up, and releases as before. */
static void a_start_needs_no_more_memory(void **state) {
  (void)state;
  start_with_memory(hb_rig_config(0), 1 << 20);
  for (int64_t i = 1; i < 50; i++) {
    assert_string_equal(SEND(EV("a", i, .size = 100), EV("b", i, .size = 100)), "SS");
  }
  rig.options.limits.key_held_memory_max = 1000;
  hb_rig_recover(&rig);
  assert_in_range(resident_bytes(), 0, 1000);
  hb_rig_check(&rig);
  assert_string_equal(SEND(EV("a", 0), EV("b", 0)), "SS");
  assert_int_equal(rig.record.frontier, 100);
}

static void fill(struct hb_test_event *events, size_t count, const char *key, int64_t from) {
  for (size_t i = 0; i < count; i++) {
    events[i] = (struct hb_test_event){
        .sequence = from + (int64_t)i, .content = (uint32_t)(from + (int64_t)i), .key = key};
  }
}

/* A long release of one key goes on over several commits, others go between. */
static void releases_take_turns(void **state) {
  (void)state;
  struct hb_stream_config config = hb_rig_config(0);
  struct hb_ordering_options options = {.limits = hb_limits_default(), .release_stream_bytes = 600};
  hb_rig_start(&rig, &config, &options);
  static struct hb_test_event events[200];
  fill(events, 100, "a", 1);
  fill(events + 100, 100, "b", 1);
  struct hb_test_batch *batch = hb_rig_send(&rig, events, 200);
  hb_test_batch_destroy(batch);
  assert_string_equal(SEND(EV("a", 0), EV("b", 0)), "SS");
  const char *text = log_text();
  assert_true(strstr(text, "b1 ") < strstr(text, "a90 "));
  assert_int_equal(rig.record.frontier, 202);
  assert_int_equal(rig.bundles_count, 0);
}

/* Many commits of one held event each do not leave as many bundles, nor do drained ones stay. */
static void small_bundles_are_put_together(void **state) {
  (void)state;
  start(hb_rig_config(0));
  for (int64_t i = 0; i < 300; i++) assert_string_equal(SEND(EV("a", 2 * i + 1)), "S");
  assert_true(rig.bundles_count < 130);
  hb_rig_recover(&rig);
  hb_rig_check(&rig);
  static struct hb_test_event events[300];
  for (size_t i = 0; i < 300; i++) {
    events[i] = (struct hb_test_event)EV("a", 2 * (int64_t)i);
  }
  hb_test_batch_destroy(hb_rig_send(&rig, events, 300));
  hb_rig_check(&rig);
  assert_int_equal(rig.record.frontier, 600);
  assert_int_equal(rig.bundles_count, 0);
}

/* Keys beyond the cache are read again, and nothing is asked for twice by one batch. */
static void idle_keys_are_forgotten(void **state) {
  (void)state;
  struct hb_stream_config config = hb_rig_config(0);
  struct hb_ordering_options options = {.limits = hb_limits_default()};
  options.limits.key_cache_max = 1; /* none stays */
  hb_rig_start(&rig, &config, &options);
  assert_string_equal(SEND(EV("a", 0), EV("a", 1), EV("b", 0), EV("a", 2)), "SSSS");
  assert_int_equal(rig.record_needs, 2);
  assert_string_equal(SEND(EV("a", 3), EV("b", 1)), "SS");
  assert_int_equal(rig.record_needs, 4);
  hb_rig_stop(&rig);
  hb_rig_start(&rig, &config, NULL);
  assert_string_equal(SEND(EV("a", 0), EV("b", 0)), "SS");
  assert_string_equal(SEND(EV("a", 1), EV("b", 1)), "SS");
  assert_int_equal(rig.record_needs, 2);
}

/* A sequence in two bundles is damage, and so are events that are not numbered from 0. */
static void damage_is_found(void **state) {
  (void)state;
  start(hb_rig_config(0));
  assert_string_equal(SEND(EV("a", 5)), "S");
  struct hb_ordering *core = hb_ordering_create(&rig.options);
  struct hb_err err = {0};
  struct hb_bundle_id id = rig.bundles[0].id;
  assert_int_equal(hb_ordering_add_stream(core, HB_RIG_STREAM, &rig.config, &rig.record, &err), 0);
  assert_int_equal(hb_ordering_recover_bundle(core, id, rig.bundles[0].block, &err), HB_OK);
  id.commit++;
  assert_int_equal(hb_ordering_recover_bundle(core, id, rig.bundles[0].block, &err), HB_OK);
  struct hb_slice key;
  assert_true(hb_ordering_recover_wants_key(core, HB_RIG_STREAM, &key));
  assert_int_equal(hb_ordering_recover_key(core, HB_RIG_STREAM, key, NULL, &err), HB_CORRUPT);
  assert_string_equal(err.reason, "SEQUENCE_HELD_TWICE");
  hb_ordering_destroy(core);
}

/* A removed stream's batches come back, whatever they wait for, and its memory is given back. */
static void a_removed_stream_leaves_nothing(void **state) {
  (void)state;
  start(hb_rig_config(0));
  assert_string_equal(SEND(EV("a", 0), EV("a", 5)), "SS");
  struct hb_test_event event = EV("b", 0);
  struct hb_test_batch *batch = hb_test_batch_create(HB_RIG_STREAM, 1, &event, 1);
  hb_ordering_submit(rig.core, &batch->batch);
  struct hb_need *need = hb_ordering_take_need(rig.core);
  assert_non_null(need);
  hb_ordering_remove_stream(rig.core, HB_RIG_STREAM);
  hb_rig_answer(&rig, need);
  hb_ordering_answer_need(rig.core, need);
  assert_ptr_equal(hb_ordering_take_answered(rig.core), &batch->batch);
  assert_int_equal(batch->batch.error.code, HB_NOT_FOUND);
  hb_test_batch_destroy(batch);
}

/* The numbers are each key's own, so there is no last one of the stream. */
static void the_stream_is_not_sealed(void **state) {
  (void)state;
  start(hb_rig_config(0));
  struct hb_err err;
  assert_int_equal(hb_ordering_check_seal(rig.core, HB_RIG_STREAM, 5, &err), HB_PRECONDITION);
  assert_string_equal(err.reason, "MODE_MISMATCH");
}

int main(void) {
#define T(name) cmocka_unit_test_teardown(name, stop)
  const struct CMUnitTest tests[] = {
      T(keys_are_independent),
      T(the_empty_key_is_a_key),
      T(copies_are_exact_for_ever),
      T(ends_of_the_numbers),
      T(a_key_begins_at_its_initial_event),
      T(held_below_the_initial_event_is_kept_aside),
      T(a_copy_may_say_initial),
      T(initial_means_nothing_with_a_first_sequence),
      T(a_key_is_complete_when_all_is_released),
      T(a_restart_reads_only_held_keys),
      T(limits_refuse_what_waits),
      T(ahead_is_per_key),
      T(memory_bounds_what_is_in_memory_only),
      T(the_smallest_memory_does),
      T(a_key_that_waits_for_a_bundle_waits_alone),
      T(copies_of_what_is_on_disk_are_exact),
      T(kept_aside_from_disk),
      T(a_start_needs_no_more_memory),
      T(releases_take_turns),
      T(small_bundles_are_put_together),
      T(idle_keys_are_forgotten),
      T(damage_is_found),
      T(a_removed_stream_leaves_nothing),
      T(the_stream_is_not_sealed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
