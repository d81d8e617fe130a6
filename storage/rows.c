/* Walking over rows: what every reader of a family does, with one wording for what is wrong. */
#include "storage/key_internal.h"
#include "storage/store_internal.h"

enum hb_code hb_store_wrap_row(enum hb_code code, enum hb_family family, struct hb_slice key,
                               struct hb_err *err) {
  char text[HB_KEY_TEXT_SIZE];
  if (code) hb_err_wrap(err, "%s row %s", hb_family_name(family), hb_key_text(key, text));
  return code;
}

enum hb_code hb_store_bad_key(struct hb_err *err) {
  return hb_err_set(err, HB_CORRUPT, NULL, "not a key of this family");
}

struct hb_rocks_iter *hb_store_iter(struct hb_store *store, enum hb_family family,
                                    uint64_t stream) {
  struct hb_key start = hb_key_stream(stream);
  struct hb_key end = hb_key_stream_end(stream);
  return hb_rocks_iter_create(store->engine, family, hb_key_view(&start), hb_key_view(&end));
}

enum hb_code hb_store_each_row(struct hb_rocks_iter *owned_iter, enum hb_family family,
                               hb_row_visit *visit, void *context, struct hb_err *err) {
  enum hb_code code = HB_OK;
  bool stop = false;
  while (!code && !stop && hb_rocks_iter_valid(owned_iter)) {
    struct hb_slice key = hb_rocks_iter_key(owned_iter);
    code = visit(context, key, hb_rocks_iter_value(owned_iter), &stop, err);
    if (code) {
      code = hb_store_wrap_row(code, family, key, err);
    } else if (!stop) {
      hb_rocks_iter_next(owned_iter);
    }
  }
  if (!code) {
    code = hb_rocks_iter_error(owned_iter, err);
    if (code) hb_err_wrap(err, "%s", hb_family_name(family));
  }
  hb_rocks_iter_destroy(owned_iter);
  return code;
}
