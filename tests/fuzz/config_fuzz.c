/* Settings as flags and as a file. The first byte: 0, one limit and one time; 1, a file; else
 * pairs of name and value, as flags give them. What is accepted and printed must be read again,
 * and be printed the same then. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/limits.h"
#include "server/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PATH_PRINTABLE = HB_CONFIG_LINE_MAX - sizeof "data-dir=" + 1 };

static void read_number(const char *text) {
  struct hb_err err = {0};
  char number[32];
  uint64_t value;
  uint64_t again;
  if (hb_limits_parse(text, &value, &err) == HB_OK) {
    (void)snprintf(number, sizeof number, "%llu", (unsigned long long)value);
    HB_ASSERT(hb_limits_parse(number, &again, NULL) == HB_OK && again == value);
  } else {
    HB_ASSERT(err.message[0]);
  }
  if (hb_config_parse_duration("t", text, &value, &err) == HB_OK) {
    HB_ASSERT(value <= 86400000);
    (void)snprintf(number, sizeof number, "%llums", (unsigned long long)value);
    HB_ASSERT(hb_config_parse_duration("t", number, &again, NULL) == HB_OK && again == value);
  }
}

static char *print(const struct hb_config *config) {
  char *text = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&text, &size);
  HB_ASSERT(out);
  hb_config_print(config, out);
  HB_ASSERT(fclose(out) == 0);
  return text;
}

static void check_limits(const struct hb_config *config) {
  size_t count;
  const struct hb_limit_row *rows = hb_limits_rows(&count);
  for (size_t i = 0; i < count; i++) {
    uint64_t value = hb_limits_get(&config->limits, &rows[i]);
    HB_ASSERT(value >= rows[i].min && value <= rows[i].max);
  }
}

static void check_printed(const struct hb_config *config) {
  check_limits(config);
  /* No file can hold a longer one; that is said when the file is read. */
  if (config->data_dir && strlen(config->data_dir) > PATH_PRINTABLE) return;
  if (!config->listen_count) return; /* a file without addresses means the default */
  char *first = print(config);
  struct hb_config again = hb_config_default();
  struct hb_err err = {0};
  HB_ASSERT(hb_config_read(&again, "printed", first, &err) == HB_OK);
  char *second = print(&again);
  HB_ASSERT(strcmp(first, second) == 0);
  HB_ASSERT(!config->data_dir || strcmp(config->data_dir, again.data_dir) == 0);
  free(first);
  free(second);
  hb_config_done(&again);
}

static void read_file(const char *text) {
  struct hb_config config = hb_config_default();
  struct hb_err err = {0};
  if (hb_config_read(&config, "fuzz", text, &err) == HB_OK) {
    check_printed(&config);
  } else {
    HB_ASSERT(strncmp(err.message, "fuzz:", 5) == 0);
  }
  hb_config_done(&config);
}

static void set_pairs(const char *text, const char *end) {
  struct hb_config config = hb_config_default();
  while (text < end) {
    const char *name = text;
    text += strlen(text) + 1;
    if (text >= end) break;
    struct hb_err err = {0};
    if (hb_config_set(&config, name, text, &err) != HB_OK) HB_ASSERT(err.message[0]);
    text += strlen(text) + 1;
  }
  check_printed(&config);
  hb_config_done(&config);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (!size) return 0;
  char *text = hb_alloc(size);
  memcpy(text, data + 1, size - 1);
  text[size - 1] = '\0';
  if (data[0] == 0) {
    read_number(text);
  } else if (data[0] == 1) {
    read_file(text);
  } else {
    set_pairs(text, text + size - 1);
  }
  free(text);
  return 0;
}
