/* What reflection looks things up in: the contract's files by name and by the symbols in them. */
#ifndef HB_SERVER_RPC_DESCRIPTOR_INDEX_H
#define HB_SERVER_RPC_DESCRIPTOR_INDEX_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

enum { HB_DESCRIPTOR_FILES_MAX = 64 };

/* Made from the embedded descriptors at first use; never freed. Any thread. */
struct hb_descriptor_index;
const struct hb_descriptor_index *hb_descriptor_index(void);

/* Index of a file, < 0: none. A symbol is a full name: message, enum, enum value, field, service
 * or method, at any depth. */
int hb_descriptor_find_file(const struct hb_descriptor_index *index, const char *name);
int hb_descriptor_find_symbol(const struct hb_descriptor_index *index, const char *symbol);
/* The symbol is a message. */
bool hb_descriptor_is_message(const struct hb_descriptor_index *index, const char *symbol);
/* The file and all that it imports, each once, as FileDescriptorProto bytes. Returns how many. */
size_t hb_descriptor_closure(const struct hb_descriptor_index *index, int file,
                             struct hb_slice out[HB_DESCRIPTOR_FILES_MAX]);
/* Full names of all services. */
const char *const *hb_descriptor_services(const struct hb_descriptor_index *index,
                                          size_t *out_count);

#endif
