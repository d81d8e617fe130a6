/* Decides what a text of RocksDB means. Its C interface tells errors as texts only: "Prefix: " and
 * whatever was at hand. The prefixes are those of Status::ToString; what follows "IO error: " may
 * name a cause that has a code of its own. Nobody else looks at such a text. */
#include <string.h>

#include "storage/engine_rocks_internal.h"

struct rule {
  const char *prefix;
  enum hb_code code;
};

/* An unknown prefix is HB_IO: a database that says something new is not to be trusted further. */
static const struct rule PREFIXES[] = {
    {"Corruption: ", HB_CORRUPT},
    {"IO error: ", HB_IO},
    {"NotFound: ", HB_NOT_FOUND},
    {"Not implemented: ", HB_INTERNAL},
    {"Invalid argument: ", HB_INTERNAL},
    {"Merge in progress: ", HB_INTERNAL},
    {"Result incomplete: ", HB_UNAVAILABLE},
    {"Shutdown in progress: ", HB_UNAVAILABLE},
    {"Operation timed out: ", HB_TIMEOUT},
    {"Operation aborted: ", HB_UNAVAILABLE},
    {"Resource busy: ", HB_UNAVAILABLE},
    {"Operation expired: ", HB_TIMEOUT},
    {"Operation failed. Try again.: ", HB_UNAVAILABLE},
    {"Compaction too large: ", HB_INTERNAL},
    {"Column family dropped: ", HB_INTERNAL},
};

/* Looked for only in what follows "IO error: ", in this order. A file that RocksDB names and that
 * is not there was taken away: it never removes one that it still needs. */
static const struct rule CAUSES[] = {
    {"No space left on device", HB_NO_SPACE},
    {"Disk quota exceeded", HB_NO_SPACE},
    {"Space limit reached", HB_NO_SPACE},
    {"lock hold by", HB_LOCKED},
    {"While lock file", HB_LOCKED},
    {"Permission denied", HB_PERMISSION},
    {"No such file or directory", HB_CORRUPT},
    {"Read-only file system", HB_PERMISSION},
};

/* "While fsync", "While fdatasync", "While sync_file_range returned". */
static const char *const SYNCS[] = {"While fsync", "While fdatasync", "While sync"};

static bool is_sync(const char *text) {
  for (size_t i = 0; i < sizeof SYNCS / sizeof *SYNCS; i++) {
    if (strstr(text, SYNCS[i])) return true;
  }
  return false;
}

static enum hb_code code_of(const char *text) {
  enum hb_code code = HB_IO;
  for (size_t i = 0; i < sizeof PREFIXES / sizeof *PREFIXES; i++) {
    if (strncmp(text, PREFIXES[i].prefix, strlen(PREFIXES[i].prefix)) == 0) {
      code = PREFIXES[i].code;
      break;
    }
  }
  /* All families are there from a store's first moment on. */
  if (code == HB_INTERNAL && strstr(text, "Column family not found")) return HB_CORRUPT;
  /* Families that this program does not name: a later format's. */
  if (code == HB_INTERNAL && strstr(text, "Column families not opened")) return HB_VERSION;
  /* A sync that fails is never a mere lack of space, whatever it says: what it was to make durable
   * may be gone, so nobody may go on from there. */
  if (code == HB_IO && is_sync(text)) return HB_IO;
  for (size_t i = 0; code == HB_IO && i < sizeof CAUSES / sizeof *CAUSES; i++) {
    if (strstr(text, CAUSES[i].prefix)) code = CAUSES[i].code;
  }
  return code;
}

enum hb_code hb_rocks_error(const char *text, const char *what, struct hb_err *err) {
  return hb_err_set(err, code_of(text), NULL, "%s: %s", what, text);
}

enum hb_code hb_rocks_take_error(char *text, const char *what, struct hb_err *err) {
  if (!text) return HB_OK;
  enum hb_code code = hb_rocks_error(text, what, err);
  rocksdb_free(text);
  return code;
}
