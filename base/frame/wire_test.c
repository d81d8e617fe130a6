/* Rules of base/frame/wire.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* clang-format off: cmocka needs the four above */
#include <cmocka.h>
/* clang-format on */
#include <stdlib.h>
#include <string.h>

#include "base/frame/wire.h"

#define BYTES(literal) \
  { (const uint8_t *)(literal), sizeof(literal) - 1 }

static struct hb_wire_reader reader_of(struct hb_slice bytes) {
  return (struct hb_wire_reader){bytes.data, bytes.data + bytes.size};
}

/* One well-formed field: its number, type, value, and where it begins and ends. */
static void fields_are_read(void **state) {
  (void)state;
  static const struct {
    const char *name;
    struct hb_slice bytes;
    uint32_t number;
    enum hb_wire_type type;
    uint64_t value;
    const char *content;
  } rows[] = {
      {"varint", BYTES("\x08\x05"), 1, HB_WIRE_VARINT, 5, NULL},
      {"varint of two bytes", BYTES("\x10\xac\x02"), 2, HB_WIRE_VARINT, 300, NULL},
      {"padded varint", BYTES("\x08\x85\x80\x80\x00"), 1, HB_WIRE_VARINT, 5, NULL},
      {"largest varint", BYTES("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), 1, HB_WIRE_VARINT,
       UINT64_MAX, NULL},
      {"bits above the 64th", BYTES("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f"), 1,
       HB_WIRE_VARINT, UINT64_MAX, NULL},
      {"ten bytes of nothing", BYTES("\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00"), 1,
       HB_WIRE_VARINT, 0, NULL},
      {"i64", BYTES("\x09\x01\x02\x03\x04\x05\x06\x07\x08"), 1, HB_WIRE_I64,
       UINT64_C(0x0807060504030201), NULL},
      {"i32", BYTES("\x0d\x01\x02\x03\x84"), 1, HB_WIRE_I32, 0x84030201, NULL},
      {"bytes",
       BYTES("\x0a\x03"
             "abc"),
       1, HB_WIRE_LEN, 0, "abc"},
      {"no bytes", BYTES("\x0a\x00"), 1, HB_WIRE_LEN, 0, ""},
      {"padded length",
       BYTES("\x0a\x83\x80\x80\x80\x00"
             "abc"),
       1, HB_WIRE_LEN, 0, "abc"},
      {"padded tag", BYTES("\x88\x80\x80\x80\x00\x05"), 1, HB_WIRE_VARINT, 5, NULL},
      {"largest number", BYTES("\xf8\xff\xff\xff\x0f\x01"), (1u << 29) - 1, HB_WIRE_VARINT, 1,
       NULL},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct hb_wire_reader reader = reader_of(rows[i].bytes);
    struct hb_wire_field field;
    if (hb_wire_next(&reader, &field) != HB_WIRE_FIELD) fail_msg("%s", rows[i].name);
    assert_int_equal(field.number, rows[i].number);
    assert_int_equal(field.type, rows[i].type);
    assert_int_equal(field.number_value, rows[i].value);
    if (rows[i].content) {
      assert_true(hb_slice_equal(field.bytes, hb_slice_text(rows[i].content)));
    }
    assert_ptr_equal(field.start, rows[i].bytes.data);
    assert_ptr_equal(field.end, rows[i].bytes.data + rows[i].bytes.size);
    assert_int_equal(hb_wire_next(&reader, &field), HB_WIRE_END);
  }
}

/* What no decoder should guess about is malformed, and the reader stays at the bad field. */
static void malformed_is_never_guessed(void **state) {
  (void)state;
  static const struct {
    const char *name;
    struct hb_slice bytes;
  } rows[] = {
      {"field 0", BYTES("\x00\x01")},
      {"field 0, bytes", BYTES("\x02\x00")},
      {"field 0, padded", BYTES("\x80\x80\x00\x01")},
      {"group starts", BYTES("\x0b\x0c")},
      {"group ends", BYTES("\x0c")},
      {"type 6", BYTES("\x0e\x01")},
      {"type 7", BYTES("\x0f\x01")},
      {"varint of 11 bytes", BYTES("\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00")},
      {"tag of 6 bytes", BYTES("\x88\x80\x80\x80\x80\x00\x05")},
      {"tag over 32 bits", BYTES("\xf8\xff\xff\xff\x1f\x01")},
      {"length of 6 bytes", BYTES("\x0a\x81\x80\x80\x80\x80\x00x")},
      {"length past the end", BYTES("\x0a\x04"
                                    "abc")},
      {"length of 4 GiB", BYTES("\x0a\x80\x80\x80\x80\x10"
                                "abc")},
      {"largest length", BYTES("\x0a\xff\xff\xff\xff\x7f"
                               "abc")},
      {"tag cut", BYTES("\x88")},
      {"no value", BYTES("\x08")},
      {"varint cut", BYTES("\x08\x80")},
      {"no length", BYTES("\x0a")},
      {"i64 cut", BYTES("\x09\x01\x02\x03\x04\x05\x06\x07")},
      {"i32 cut", BYTES("\x0d\x01\x02\x03")},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct hb_wire_reader reader = reader_of(rows[i].bytes);
    struct hb_wire_field field = {.number = 77};
    if (hb_wire_next(&reader, &field) != HB_WIRE_MALFORMED) fail_msg("%s", rows[i].name);
    assert_ptr_equal(reader.at, rows[i].bytes.data);
    assert_int_equal(field.number, 77);
  }
}

/* Cut anywhere but between fields, a message is malformed; a sanitizer watches the last byte. */
static void truncation_is_malformed(void **state) {
  (void)state;
  static const uint8_t whole[] =
      "\x08\xac\x02\x0a\x03"
      "abc\x09"
      "12345678\x0d"
      "1234\x88\x80\x00\x01";
  static const size_t boundaries[] = {0, 3, 8, 17, 22, 26};
  size_t next = 0;
  for (size_t size = 0; size < sizeof whole; size++) {
    uint8_t *cut = malloc(size + 1);
    memcpy(cut + 1, whole, size);
    struct hb_wire_reader reader = reader_of(hb_slice_of(cut + 1, size));
    struct hb_wire_field field;
    enum hb_wire_result result;
    do result = hb_wire_next(&reader, &field);
    while (result == HB_WIRE_FIELD);
    bool boundary = size == boundaries[next];
    assert_int_equal(result, boundary ? HB_WIRE_END : HB_WIRE_MALFORMED);
    next += boundary;
    free(cut);
  }
  assert_int_equal(next, sizeof boundaries / sizeof boundaries[0]);
}

/* A varint is written in as few bytes as it needs, as many as are foretold, and read back. */
static void varints_come_back(void **state) {
  (void)state;
  for (unsigned shift = 0; shift < 64; shift++) {
    for (int delta = -1; delta <= 1; delta++) {
      uint64_t value = (UINT64_C(1) << shift) + (uint64_t)delta;
      uint8_t bytes[1 + HB_VARINT_MAX] = {0x08};
      size_t size = hb_wire_put_varint(bytes + 1, value);
      assert_int_equal(size, hb_wire_varint_size(value));
      if (size > 1) assert_true(bytes[size] != 0);
      struct hb_wire_reader reader = {bytes, bytes + 1 + size};
      struct hb_wire_field field;
      assert_int_equal(hb_wire_next(&reader, &field), HB_WIRE_FIELD);
      assert_int_equal(field.number_value, value);
      assert_int_equal(hb_wire_next(&reader, &field), HB_WIRE_END);
    }
  }
}

/* Appended fields are the bytes of the format; zero and nothing are written too. */
static void appended_bytes_are_golden(void **state) {
  (void)state;
  struct hb_buf buf = {0};
  hb_wire_append_varint(&buf, 1, 300);
  hb_wire_append_varint(&buf, 2, 0);
  hb_wire_append_varint(&buf, 1, (uint64_t)INT64_C(-1));
  hb_wire_append_bytes(&buf, 5, hb_slice_text("abc"));
  hb_wire_append_bytes(&buf, 16, (struct hb_slice){0});
  static const struct hb_slice golden = BYTES(
      "\x08\xac\x02\x10\x00\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x2a\x03"
      "abc\x82\x01\x00");
  assert_true(hb_slice_equal(hb_buf_view(&buf), golden));
  hb_buf_done(&buf);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(fields_are_read),           cmocka_unit_test(malformed_is_never_guessed),
      cmocka_unit_test(truncation_is_malformed),   cmocka_unit_test(varints_come_back),
      cmocka_unit_test(appended_bytes_are_golden),
  };
  return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
