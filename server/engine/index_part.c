/* Gathers index entries of one stream: keys are copied, so that no block is kept for them. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/frame/scan.h"
#include "server/engine/indexer_internal.h"

enum { CHUNK_BYTES = 256 << 10 };

struct hb_index_part *hb_index_part_create(int64_t from, uint64_t now_ms) {
  struct hb_index_part *part = hb_calloc(1, sizeof *part);
  part->to = from;
  part->began_ms = part->grown_ms = now_ms;
  return part;
}

void hb_index_part_destroy(struct hb_index_part *part) {
  if (!part) return;
  for (size_t i = 0; i < part->chunks_count; i++) free(part->chunks[i]);
  free((void *)part->chunks);
  free(part->entries);
  free(part);
}

void hb_index_note_destroy(struct hb_index_note *note) {
  hb_index_part_destroy(note->rows);
  free(note);
}

/* A key may be up to 64 KiB: it always fits a chunk of its own. */
static struct hb_slice keep_key(struct hb_index_part *part, struct hb_slice key) {
  if (part->chunks_count == 0 || key.size > CHUNK_BYTES - part->chunk_used) {
    hb_reserve((void **)&part->chunks, &part->chunks_cap, part->chunks_count + 1,
               sizeof *part->chunks);
    part->chunks[part->chunks_count++] = hb_alloc(CHUNK_BYTES);
    part->chunk_used = 0;
  }
  uint8_t *at = part->chunks[part->chunks_count - 1] + part->chunk_used;
  if (key.size > 0) memcpy(at, key.data, key.size);
  part->chunk_used += key.size;
  part->key_bytes += key.size;
  return hb_slice_of(at, key.size);
}

enum hb_code hb_index_part_add(struct hb_index_part *part, const struct hb_block *block,
                               struct hb_err *err) {
  hb_reserve((void **)&part->entries, &part->cap, part->count + block->count,
             sizeof *part->entries);
  for (uint32_t i = 0; i < block->count; i++) {
    struct hb_slice frame = hb_block_frame(block, i);
    struct hb_event event;
    enum hb_code code = hb_scan_frame(frame, &event, err);
    if (code != HB_OK) return code;
    part->entries[part->count++] =
        (struct hb_index_entry){.key = keep_key(part, hb_event_key(&event)),
                                .position = hb_block_sequence(block, i),
                                .block = block->from,
                                .offset = (uint32_t)(frame.data - block->frames.data),
                                .length = (uint32_t)frame.size};
  }
  part->to = block->to;
  return HB_OK;
}
