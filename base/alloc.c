/* Decides what happens when memory is gone: say how much was asked for, and abort. */
#include "base/alloc.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *checked(void *memory, size_t size) {
  if (memory) return memory;
  (void)fprintf(stderr, "event=out_of_memory size=%zu\n", size);
  abort();
}

void *hb_alloc(size_t size) { return checked(malloc(size ? size : 1), size); }

void *hb_calloc(size_t count, size_t size) {
  return checked(calloc(count ? count : 1, size ? size : 1), size);
}

void *hb_realloc(void *memory, size_t size) {
  return checked(realloc(memory, size ? size : 1), size);
}

void *hb_memdup(const void *from, size_t size) {
  void *copy = hb_alloc(size);
  if (size) memcpy(copy, from, size);
  return copy;
}

char *hb_strdup(const char *text) { return hb_memdup(text, strlen(text) + 1); }

void hb_reserve_more(void **array, size_t *cap, size_t needed, size_t size) {
  size_t grown = *cap ? *cap : 8;
  while (grown < needed) grown = grown > SIZE_MAX / 2 ? needed : grown * 2;
  if (size && grown > SIZE_MAX / size) (void)checked(NULL, SIZE_MAX);
  *array = hb_realloc(*array, grown * size);
  *cap = grown;
}
