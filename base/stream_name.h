/* Which names streams may have: [a-z0-9][a-z0-9._-]{0,127}; '/' is kept back for namespaces. */
#ifndef HB_BASE_STREAM_NAME_H
#define HB_BASE_STREAM_NAME_H

#include "base/err.h"
#include "base/slice.h"

/* HB_INVALID (STREAM_MISSING where it is empty, else STREAM_NAME_INVALID), naming `field`. */
HB_MUST_CHECK enum hb_code hb_stream_name_check(const char *field, struct hb_slice name,
                                                struct hb_err *err);

#endif
