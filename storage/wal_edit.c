/* Decides what an edit in RocksDB's MANIFEST says: of logs and families, and which tables it adds
 * and takes away. */
#include "storage/wal_edit_internal.h"

#include "base/alloc.h"
#include "storage/wal_batch_internal.h"

/* Tags of a VersionEdit. What is not here and has IGNORABLE set is a string to step over. */
enum tag {
  COMPARATOR = 1,
  LOG_NUMBER = 2,
  NEXT_FILE = 3,
  LAST_SEQUENCE = 4,
  COMPACT_CURSOR = 5,
  DELETED_FILE = 6,
  NEW_FILE = 7,
  PREVIOUS_LOG = 9,
  MIN_LOG = 10,
  NEW_FILE_2 = 100,
  NEW_FILE_3 = 102,
  NEW_FILE_4 = 103,
  FAMILY = 200,
  FAMILY_ADD = 201,
  FAMILY_DROP = 202,
  MAX_FAMILY = 203,
  IN_ATOMIC_GROUP = 300,
  BLOB_FILE = 400,
  BLOB_GARBAGE = 401,
  IGNORABLE = 1 << 13
};

enum { NEW_FILE_FIELDS_END = 1, BLOB_FIELDS_END = 0 };

/* 'n' a number, 't' that of a table, 's' a string, 'f' and 'b' the fields that end what describes a
 * file. */
static const char *shape_of(uint64_t tag) {
  switch (tag) {
    case COMPARATOR:
    case FAMILY_ADD:
      return "s";
    case LOG_NUMBER:
    case NEXT_FILE:
    case LAST_SEQUENCE:
    case PREVIOUS_LOG:
    case MIN_LOG:
    case FAMILY:
    case MAX_FAMILY:
    case IN_ATOMIC_GROUP:
      return "n";
    case COMPACT_CURSOR:
      return "ns";
    case DELETED_FILE:
      return "nt";
    case NEW_FILE:
      return "ntnss";
    case NEW_FILE_2:
      return "ntnssnn";
    case NEW_FILE_3:
      return "ntnnssnn";
    case NEW_FILE_4:
      return "ntnssnnf";
    case BLOB_FILE:
      return "nnnssb";
    case BLOB_GARBAGE:
      return "nnnb";
    case FAMILY_DROP:
      return "";
    default:
      return tag & IGNORABLE ? "s" : NULL;
  }
}

static bool take_fields(struct hb_slice *bytes, uint64_t end) {
  for (;;) {
    uint64_t tag;
    struct hb_slice text;
    if (!hb_wal_take_varint(bytes, &tag)) return false;
    if (tag == end) return true;
    if (!hb_wal_take_string(bytes, &text)) return false;
  }
}

struct entry {
  uint64_t tag;
  uint64_t number; /* the last 'n' */
  uint64_t table;
};

static bool take_one(struct hb_slice *bytes, char shape, struct entry *out) {
  struct hb_slice text;
  switch (shape) {
    case 'n':
      return hb_wal_take_varint(bytes, &out->number);
    case 't':
      return hb_wal_take_varint(bytes, &out->table);
    case 's':
      return hb_wal_take_string(bytes, &text);
    case 'f':
      return take_fields(bytes, NEW_FILE_FIELDS_END);
    default:
      return take_fields(bytes, BLOB_FIELDS_END);
  }
}

static bool take_entry(struct hb_slice *bytes, struct entry *out) {
  if (!hb_wal_take_varint(bytes, &out->tag)) return false;
  const char *shape = shape_of(out->tag);
  if (!shape) return false;
  for (; *shape; shape++) {
    if (!take_one(bytes, *shape, out)) return false;
  }
  return true;
}

/* An edit may take a table from one level and add it to another: it takes away first. */
static void note_table(struct hb_wal_tables *tables, const struct entry *entry) {
  if (entry->tag != DELETED_FILE) {
    hb_reserve((void **)&tables->numbers, &tables->cap, tables->count + 1, sizeof(uint64_t));
    tables->numbers[tables->count++] = entry->table;
    return;
  }
  for (size_t i = tables->count; i; i--) {
    if (tables->numbers[i - 1] != entry->table) continue;
    tables->numbers[i - 1] = tables->numbers[--tables->count];
    return;
  }
}

static bool is_of_table(uint64_t tag) {
  return tag == DELETED_FILE || tag == NEW_FILE || (tag >= NEW_FILE_2 && tag <= NEW_FILE_4);
}

static void note(struct hb_wal_edit *edit, const struct entry *entry) {
  if (entry->tag == LOG_NUMBER) {
    edit->has_log = true;
    edit->log = entry->number;
  } else if (entry->tag == MIN_LOG) {
    edit->has_min_log = true;
    edit->min_log = entry->number;
  } else if (entry->tag == FAMILY) {
    edit->family = entry->number;
  } else if (entry->tag == MAX_FAMILY) {
    edit->has_max_family = true;
  } else if (entry->tag == FAMILY_ADD) {
    edit->add = true;
  } else if (entry->tag == FAMILY_DROP) {
    edit->drop = true;
  } else if (entry->tag == IN_ATOMIC_GROUP) {
    edit->group_left = entry->number;
  }
}

bool hb_wal_edit_read(struct hb_slice bytes, struct hb_wal_edit *edit,
                      struct hb_wal_tables *tables) {
  while (bytes.size) {
    struct entry entry = {0};
    if (!take_entry(&bytes, &entry)) return false;
    note(edit, &entry);
    if (tables && is_of_table(entry.tag)) note_table(tables, &entry);
  }
  return edit->family < HB_WAL_FAMILIES_MAX;
}
