/* A disk of a few MiB for one test: a tmpfs that only this process and its children see, in a mount
 * namespace of their own, so nothing of it can stay. */
#ifndef TESTS_LIB_MOUNT_H
#define TESTS_LIB_MOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* First thing in main: before this process has threads. False: mounting is refused here, and `why`
 * says by what. */
bool hbt_mount_allowed(char *why, size_t size);
/* An empty disk at the folder `path`. */
bool hbt_mount(const char *path, uint64_t bytes);
/* Nothing may be open on it any more. */
void hbt_unmount(const char *path);

/* Bytes that are free there. */
uint64_t hbt_disk_free(const char *path);
/* A file that leaves about `free_bytes` of the disk; 0: nothing at all. */
void hbt_disk_fill(const char *file, uint64_t free_bytes);

#endif
