/* What generated code makes of a message that generated code read. */
#ifndef HB_TESTS_FUZZ_CANONICAL_H
#define HB_TESTS_FUZZ_CANONICAL_H

#include <protobuf-c/protobuf-c.h>

#include "base/slice.h"

/* False: the message carries a field whose number protobuf does not have. protobuf-c takes such a
 * tag, of more than 32 bits, and writes it again; for our readers it is malformed. */
bool canonical_pack(const ProtobufCMessage *message, struct hb_buf *out);

#endif
