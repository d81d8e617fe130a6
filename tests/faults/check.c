/* acked <= stored <= acked + in flight, in whole batches; numbers never go back. */
#include "tests/faults/run.h"

static uint32_t count_stored(const struct hb_input *input, const struct hb_told *told,
                             uint32_t stream, uint32_t batch) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < HB_INPUT_PER_BATCH; i++) {
    count += told->found[stream].stored[hb_input_number(input, stream, batch, i)];
  }
  return count;
}

static const char *check_batch(const struct hb_input *input, const struct hb_told *told,
                               uint32_t stream, uint32_t batch, bool power_lost) {
  const struct hb_told_stream *said = &told->streams[stream];
  uint32_t stored = count_stored(input, told, stream, batch);
  bool async = stream == 1;
  bool promised = async && power_lost ? said->durable[batch] : said->acked[batch];
  if (promised && stored != HB_INPUT_PER_BATCH) return "an acknowledged event is gone (I1)";
  if (stored != 0 && stored != HB_INPUT_PER_BATCH) return "a part of a batch is stored";
  if (stored && !said->begun[batch]) return "something is stored that was never sent";
  return NULL;
}

const char *hb_check_found(const struct hb_input *input, const struct hb_told *told,
                           bool power_lost) {
  for (uint32_t stream = 0; stream < HB_INPUT_STREAMS; stream++) {
    const struct hb_told_stream *said = &told->streams[stream];
    const struct hb_found_stream *found = &told->found[stream];
    for (uint32_t batch = 0; batch < HB_INPUT_BATCHES; batch++) {
      const char *what = check_batch(input, told, stream, batch, power_lost);
      if (what) return what;
    }
    if (found->frontier < said->frontier) return "the frontier went back (I2, I5)";
    if (found->complete_to < said->complete_to) return "complete_to went back (I5)";
    if (stream == HB_INPUT_KEYED) continue; /* its numbers are positions; the look was by key */
    for (int64_t i = 0; i < found->complete_to; i++) {
      if (!found->stored[i]) return "something below complete_to is not there (I4)";
    }
    if (found->complete_to < HB_INPUT_EVENTS && found->stored[found->complete_to]) {
      return "complete_to is covered (I4)";
    }
  }
  return NULL;
}

const char *hb_check_finished(const struct hb_told *told) {
  for (uint32_t stream = 0; stream < HB_INPUT_STREAMS; stream++) {
    const struct hb_found_stream *found = &told->found[stream];
    if (found->frontier != HB_INPUT_EVENTS) return "not everything came out in the end (I11)";
    for (uint32_t batch = 0; batch < HB_INPUT_BATCHES; batch++) {
      if (!told->streams[stream].acked[batch]) return "not everything was answered in the end";
    }
  }
  return NULL;
}
