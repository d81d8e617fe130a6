/* Reading held bundles. Each is checked as a block before it is handed out. */
#include "base/frame/block.h"
#include "storage/key_internal.h"
#include "storage/read.h"
#include "storage/store_internal.h"

static enum hb_code check(struct hb_slice bytes, struct hb_err *err) {
  struct hb_block block;
  return hb_block_decode(bytes, &block, err);
}

enum hb_code hb_bundle_read(struct hb_store *store, struct hb_bundle_id id, struct hb_bytes **out,
                            struct hb_err *err) {
  struct hb_key key = hb_key_bundle(id);
  struct hb_bytes *bytes = NULL;
  enum hb_code code = hb_rocks_get(store->engine, HB_FAMILY_HELD, hb_key_view(&key), &bytes, err);
  if (!code && bytes) code = check(hb_bytes_view(bytes), err);
  if (code) {
    hb_bytes_unref(bytes);
    return hb_store_wrap_row(code, HB_FAMILY_HELD, hb_key_view(&key), err);
  }
  *out = bytes;
  return HB_OK;
}

struct each {
  const struct hb_bundle_id *after;
  hb_bundle_visit *visit;
  void *context;
};

static enum hb_code visit_bundle(void *context, struct hb_slice key, struct hb_slice value,
                                 bool *stop, struct hb_err *err) {
  const struct each *each = context;
  struct hb_bundle_id id;
  if (!hb_key_parse_bundle(key, &id)) return hb_store_bad_key(err);
  if (each->after && id.commit == each->after->commit && id.part == each->after->part) {
    return HB_OK; /* where the seek landed */
  }
  enum hb_code code = check(value, err);
  if (!code) *stop = !each->visit(each->context, id, value);
  return code;
}

enum hb_code hb_bundle_each(struct hb_store *store, uint64_t stream,
                            const struct hb_bundle_id *after, hb_bundle_visit *visit, void *context,
                            struct hb_err *err) {
  struct each each = {.after = after, .visit = visit, .context = context};
  struct hb_rocks_iter *iter = hb_store_iter(store, HB_FAMILY_HELD, stream);
  if (after) {
    struct hb_key key = hb_key_bundle(
        (struct hb_bundle_id){.stream = stream, .commit = after->commit, .part = after->part});
    hb_rocks_iter_seek(iter, hb_key_view(&key));
  } else {
    hb_rocks_iter_first(iter);
  }
  return hb_store_each_row(iter, HB_FAMILY_HELD, visit_bundle, &each, err);
}
