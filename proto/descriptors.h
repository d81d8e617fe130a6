/* The contract's descriptors as bytes: a google.protobuf.FileDescriptorSet. */
#ifndef HB_PROTO_DESCRIPTORS_H
#define HB_PROTO_DESCRIPTORS_H

#include <stddef.h>

/* Made by the build from every .proto file that the server serves. Static; never freed. */
extern const unsigned char hb_descriptors[];
extern const size_t hb_descriptors_len;

#endif
