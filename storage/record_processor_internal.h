/* Values of a processor's rows; as record_internal.h. */
#ifndef HB_STORAGE_RECORD_PROCESSOR_INTERNAL_H
#define HB_STORAGE_RECORD_PROCESSOR_INTERNAL_H

#include <stdint.h>

#include "base/err.h"
#include "base/slice.h"
#include "storage/processor_rows.h"

/* Slices of what was decoded are borrowed from `value`. */
void hb_record_put_processor(struct hb_buf *out, const struct hb_processor_config *config);
HB_MUST_CHECK enum hb_code hb_record_get_processor(struct hb_slice value,
                                                   struct hb_processor_config *out,
                                                   struct hb_err *err);
void hb_record_put_place(struct hb_buf *out, const struct hb_processor_place *place);
HB_MUST_CHECK enum hb_code hb_record_get_place(struct hb_slice value,
                                               struct hb_processor_place *out, struct hb_err *err);
void hb_record_put_attempt(struct hb_buf *out, const struct hb_processor_attempt *attempt);
HB_MUST_CHECK enum hb_code hb_record_get_attempt(struct hb_slice value,
                                                 struct hb_processor_attempt *out,
                                                 struct hb_err *err);
void hb_record_put_key_status(struct hb_buf *out, const struct hb_key_status *status);
HB_MUST_CHECK enum hb_code hb_record_get_key_status(struct hb_slice value,
                                                    struct hb_key_status *out, struct hb_err *err);
/* out->key stays as it is: it is the row's key. */
void hb_record_put_blocked(struct hb_buf *out, const struct hb_blocked_row *row);
HB_MUST_CHECK enum hb_code hb_record_get_blocked(struct hb_slice value, struct hb_blocked_row *out,
                                                 struct hb_err *err);
/* What stands in place of the frame in an `unprocessed` row of a processor. */
void hb_record_put_failure(struct hb_buf *out, uint64_t processor,
                           const struct hb_failure_row *row);
HB_MUST_CHECK enum hb_code hb_record_get_failure(struct hb_slice bytes, uint64_t *out_processor,
                                                 struct hb_failure_row *out, struct hb_err *err);

#endif
