/* The processors that are part of the server. README.md lists what each does and takes. */
#ifndef HB_PROCESSING_BUILTIN_H
#define HB_PROCESSING_BUILTIN_H

#include <stddef.h>

#include "processing/holdback/processor.h"

/* NULL: none has that name. */
const struct hbp_processor *hb_builtin_find(const char *name);
/* All of them, in the order of README.md. Static. */
const struct hbp_processor *const *hb_builtin_all(size_t *out_count);

#endif
