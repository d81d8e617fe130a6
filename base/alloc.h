/* Memory: allocation that never returns NULL.
 *
 * gRPC's allocator aborts and RocksDB throws when memory is gone, so a server on top of both
 * can't carry on either; hb_alloc says which size failed and aborts. What a peer could make
 * large is bounded before it is allocated (base/limits.h). */
#ifndef HB_BASE_ALLOC_H
#define HB_BASE_ALLOC_H

#include <stddef.h>

/* Not initialised. size 0 gives a pointer that can be freed. Free with free(). */
void *hb_alloc(size_t size) __attribute__((malloc, returns_nonnull));
/* Zeroed; aborts also where count * size overflows. */
void *hb_calloc(size_t count, size_t size) __attribute__((malloc, returns_nonnull));
void *hb_realloc(void *memory, size_t size) __attribute__((returns_nonnull));
void *hb_memdup(const void *from, size_t size) __attribute__((returns_nonnull));
char *hb_strdup(const char *text) __attribute__((returns_nonnull));

/* Make *array (elements of `size` bytes, *cap of them) hold at least `needed`, by doubling. */
void hb_reserve_more(void **array, size_t *cap, size_t needed, size_t size);
static inline void hb_reserve(void **array, size_t *cap, size_t needed, size_t size) {
  if (needed > *cap) hb_reserve_more(array, cap, needed, size);
}

#endif
