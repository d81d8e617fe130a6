/* What generated code makes of a message that generated code read. */
#ifndef HB_TESTS_FUZZ_CANONICAL_H
#define HB_TESTS_FUZZ_CANONICAL_H

#include <protobuf-c/protobuf-c.h>

#include "base/slice.h"

/* False: the message carries an unknown field with a number that protobuf does not have, or with a
 * varint of more than 64 bits. protobuf-c writes such a one again as it came; for our readers it is
 * malformed. */
bool canonical_pack(const ProtobufCMessage *message, struct hb_buf *out);

#endif
