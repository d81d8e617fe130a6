/* Errors as values: a code, a message for a person, a reason for a machine.
 *
 * A function that can fail returns an enum hb_code and takes a struct hb_err as its last
 * argument (may be NULL); on failure it fills that and leaves its outputs untouched.
 * Messages are lower case, name the field, the value and the limit. Only the edge logs. */
#ifndef HB_BASE_ERR_H
#define HB_BASE_ERR_H

#include <stdbool.h>

#include "base/err_table.h"

#define HB_MUST_CHECK __attribute__((warn_unused_result))

#define HB_ERR_ENUM(name, text, grpc, retry, fatal, exit_code) name,
enum hb_code { HB_ERR_TABLE(HB_ERR_ENUM) HB_CODE_COUNT };
#undef HB_ERR_ENUM

enum { HB_ERR_MESSAGE_SIZE = 512 };

struct hb_err {
  enum hb_code code;
  const char *reason; /* UPPER_SNAKE, static; NULL = the code's name without HB_ */
  char message[HB_ERR_MESSAGE_SIZE];
};

/* Fill `err` (may be NULL) and return `code`, so that a caller can set and return in one line. */
enum hb_code hb_err_set(struct hb_err *err, enum hb_code code, const char *reason,
                        const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Put "context: " before the message; the code stays. */
void hb_err_wrap(struct hb_err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Row look-ups in err_table.h; `code` must be a row. All static strings. */
const char *hb_code_text(enum hb_code code);
const char *hb_code_reason(enum hb_code code);
int hb_code_grpc_status(enum hb_code code);
bool hb_code_is_retryable(enum hb_code code);
bool hb_code_is_fatal(enum hb_code code);
int hb_code_exit(enum hb_code code);

#endif
