/* Decides what outcomes and reasons are called: as in the contract, without the enum's prefix. */
#include <stddef.h>

#include "client/holdback.h"

static const char *const outcome_names[] = {
    [HOLDBACK_STORED] = "STORED",
    [HOLDBACK_DUPLICATE] = "DUPLICATE",
    [HOLDBACK_CONFLICT] = "CONFLICT",
    [HOLDBACK_LATE] = "LATE",
    [HOLDBACK_BEFORE_FIRST] = "BEFORE_FIRST",
    [HOLDBACK_OUT_OF_RANGE_EVENT] = "OUT_OF_RANGE",
    [HOLDBACK_WINDOW_FULL] = "WINDOW_FULL",
};

/* Index = holdback.v1.OutcomeReason. */
static const char *const reason_names[] = {
    "",           "AHEAD",          "HELD_BYTES", "GAPS",        "SERVER_MEMORY", "DISK_RESERVE",
    "UNVERIFIED", "CHAIN_CONFLICT", "QUOTA",      "HELD_EVENTS", "SEALED",
};

static const char *look_up(const char *const *names, size_t count, int number) {
  if (number < 0 || (size_t)number >= count || !names[number]) return "UNKNOWN";
  return names[number];
}

const char *holdback_outcome_name(int outcome) {
  return look_up(outcome_names, sizeof outcome_names / sizeof *outcome_names, outcome);
}

const char *holdback_reason_name(int reason) {
  return look_up(reason_names, sizeof reason_names / sizeof *reason_names, reason);
}

/* Index = holdback.v1.ProcessorState. */
static const char *const processor_state_names[] = {"UNKNOWN",  "RUNNING", "SUSPENDED",
                                                    "DETACHED", "ENDED",   "FAILED"};

const char *holdback_processor_state_name(int state) {
  return look_up(processor_state_names,
                 sizeof processor_state_names / sizeof *processor_state_names, state);
}

static const char *const status_names[] = {
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
};

const char *holdback_status_name(int status) {
  return look_up(status_names, sizeof status_names / sizeof *status_names, status);
}
