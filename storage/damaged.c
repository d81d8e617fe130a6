/* Decides how a store with a damaged table goes on. Who reads it is told; all others should not
 * notice. But RocksDB's compactions read tables too, and one that meets damage makes every later
 * write fail. So from the first sign of it on nothing is compacted, in later runs either: the file
 * DAMAGED says so, until a person who has mended the store, or restored it, takes it away. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "storage/folder_internal.h"
#include "storage/store_internal.h"

bool hb_damaged_is_noted(const char *path) {
  char *file = hb_folder_join(path, HB_FILE_DAMAGED);
  bool there = access(file, F_OK) == 0;
  free(file);
  return there;
}

void hb_damaged_note(struct hb_store *store, const struct hb_err *err) {
  if (store->damage_noted) return;
  store->damage_noted = true;
  const char *text = err ? err->message : "a table could not be read";
  char line[HB_ERR_MESSAGE_SIZE + 1];
  (void)snprintf(line, sizeof line, "%s\n", text);
  /* Where it can't be written, the next run finds out as this one did. */
  if (hb_folder_write_file(store->path, HB_FILE_DAMAGED, hb_slice_text(line), NULL)) return;
  (void)!hb_folder_sync(store->path, NULL);
}

bool hb_damaged_now(const struct hb_store *store) {
  return store->info.damaged || hb_rocks_is_damaged(store->engine);
}
