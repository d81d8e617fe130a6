/* Decides which file a symbol is in. The embedded set is cut at its field 1 into the bytes of
 * each file, which are answered as they are; they are unpacked once, for their names. */
#include "server/rpc/descriptor_index.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/frame/wire.h"
#include "google/protobuf/descriptor.pb-c.h"
#include "proto/descriptors.h"

struct symbol {
  char *name;
  int file;
  bool message;
};

struct file {
  struct hb_slice bytes;
  Google__Protobuf__FileDescriptorProto *parsed;
};

struct hb_descriptor_index {
  struct file files[HB_DESCRIPTOR_FILES_MAX];
  int files_count;
  struct symbol *symbols; /* sorted by name */
  size_t symbols_count;
  size_t symbols_cap;
  const char **services;
  size_t services_count;
  size_t services_cap;
};

static struct hb_descriptor_index the_index; /* built once, then only read */
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Returns the symbol's name: `scope`.`name`. */
static const char *add(struct hb_descriptor_index *index, const char *scope, const char *name,
                       int file, bool message) {
  hb_reserve((void **)&index->symbols, &index->symbols_cap, index->symbols_count + 1,
             sizeof *index->symbols);
  size_t size = strlen(scope) + 1 + strlen(name) + 1;
  char *full = hb_alloc(size);
  (void)snprintf(full, size, "%s%s%s", scope, scope[0] ? "." : "", name);
  index->symbols[index->symbols_count++] =
      (struct symbol){.name = full, .file = file, .message = message};
  return full;
}

static void add_enum(struct hb_descriptor_index *index, const char *scope,
                     const Google__Protobuf__EnumDescriptorProto *type, int file) {
  (void)add(index, scope, type->name, file, false);
  /* Values are siblings of their enum, as in C++. */
  for (size_t i = 0; i < type->n_value; i++) {
    (void)add(index, scope, type->value[i]->name, file, false);
  }
}

/* As deep as the contract's own files nest. */
static void add_message(struct hb_descriptor_index *index, const char *scope,
                        const Google__Protobuf__DescriptorProto *type, int file) {
  const char *name = add(index, scope, type->name, file, true);
  for (size_t i = 0; i < type->n_field; i++) {
    (void)add(index, name, type->field[i]->name, file, false);
  }
  for (size_t i = 0; i < type->n_nested_type; i++) {
    add_message(index, name, type->nested_type[i], file);
  }
  for (size_t i = 0; i < type->n_enum_type; i++) add_enum(index, name, type->enum_type[i], file);
}

static void add_service(struct hb_descriptor_index *index, const char *scope,
                        const Google__Protobuf__ServiceDescriptorProto *service, int file) {
  const char *name = add(index, scope, service->name, file, false);
  for (size_t i = 0; i < service->n_method; i++) {
    (void)add(index, name, service->method[i]->name, file, false);
  }
  hb_reserve((void **)&index->services, &index->services_cap, index->services_count + 1,
             sizeof *index->services);
  index->services[index->services_count++] = name;
}

static void add_file(struct hb_descriptor_index *index, struct hb_slice bytes) {
  Google__Protobuf__FileDescriptorProto *parsed =
      google__protobuf__file_descriptor_proto__unpack(NULL, bytes.size, bytes.data);
  HB_ASSERT(parsed);
  if (hb_descriptor_find_file(index, parsed->name) >= 0) { /* imported by several */
    google__protobuf__file_descriptor_proto__free_unpacked(parsed, NULL);
    return;
  }
  HB_ASSERT(index->files_count < HB_DESCRIPTOR_FILES_MAX);
  int file = index->files_count++;
  index->files[file] = (struct file){.bytes = bytes, .parsed = parsed};
  const char *scope = parsed->package ? parsed->package : "";
  for (size_t i = 0; i < parsed->n_message_type; i++) {
    add_message(index, scope, parsed->message_type[i], file);
  }
  for (size_t i = 0; i < parsed->n_enum_type; i++) {
    add_enum(index, scope, parsed->enum_type[i], file);
  }
  for (size_t i = 0; i < parsed->n_service; i++) {
    add_service(index, scope, parsed->service[i], file);
  }
}

static int by_name(const void *a, const void *b) {
  return strcmp(((const struct symbol *)a)->name, ((const struct symbol *)b)->name);
}

static void build(void) {
  struct hb_descriptor_index *index = &the_index;
  struct hb_wire_reader reader = {.at = hb_descriptors, .end = hb_descriptors + hb_descriptors_len};
  struct hb_wire_field field;
  while (hb_wire_next(&reader, &field) == HB_WIRE_FIELD) {
    if (field.number == 1 && field.type == HB_WIRE_LEN) add_file(index, field.bytes);
  }
  HB_ASSERT(index->files_count > 0);
  qsort(index->symbols, index->symbols_count, sizeof *index->symbols, by_name);
}

const struct hb_descriptor_index *hb_descriptor_index(void) {
  pthread_once(&once, build);
  return &the_index;
}

int hb_descriptor_find_file(const struct hb_descriptor_index *index, const char *name) {
  for (int i = 0; i < index->files_count; i++) {
    if (strcmp(index->files[i].parsed->name, name) == 0) return i;
  }
  return -1;
}

static const struct symbol *find(const struct hb_descriptor_index *index, const char *name) {
  struct symbol wanted = {.name = (char *)(uintptr_t)name};
  return bsearch(&wanted, index->symbols, index->symbols_count, sizeof wanted, by_name);
}

int hb_descriptor_find_symbol(const struct hb_descriptor_index *index, const char *symbol) {
  const struct symbol *found = find(index, symbol);
  return found ? found->file : -1;
}

bool hb_descriptor_is_message(const struct hb_descriptor_index *index, const char *symbol) {
  const struct symbol *found = find(index, symbol);
  return found && found->message;
}

size_t hb_descriptor_closure(const struct hb_descriptor_index *index, int file,
                             struct hb_slice out[HB_DESCRIPTOR_FILES_MAX]) {
  int queue[HB_DESCRIPTOR_FILES_MAX] = {file};
  bool seen[HB_DESCRIPTOR_FILES_MAX] = {false};
  seen[file] = true;
  size_t count = 1;
  for (size_t at = 0; at < count; at++) {
    const struct file *one = &index->files[queue[at]];
    out[at] = one->bytes;
    for (size_t i = 0; i < one->parsed->n_dependency; i++) {
      int import = hb_descriptor_find_file(index, one->parsed->dependency[i]);
      if (import < 0 || seen[import]) continue;
      seen[import] = true;
      queue[count++] = import;
    }
  }
  return count;
}

const char *const *hb_descriptor_services(const struct hb_descriptor_index *index,
                                          size_t *out_count) {
  *out_count = index->services_count;
  return index->services;
}
