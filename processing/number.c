/* Decides what a payload's number is, and how one is written. */
#include "processing/number.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { DECIMALS = 9, SHOWN = 40 };

static bool refuse(struct hbp_bytes text, const char *why, char *error, size_t error_size) {
  char shown[SHOWN + 1];
  const uint8_t *bytes = text.data;
  size_t size = text.size < SHOWN ? text.size : SHOWN;
  for (size_t i = 0; i < size; i++) {
    shown[i] = bytes[i] >= 0x20 && bytes[i] < 0x7f ? (char)bytes[i] : '?';
  }
  shown[size] = '\0';
  (void)snprintf(error, error_size, "payload '%s'%s %s", shown, text.size > SHOWN ? "..." : "",
                 why);
  return false;
}

static bool is_digit(uint8_t byte) { return byte >= '0' && byte <= '9'; }

bool hb_number_parse(struct hbp_bytes text, hb_number *out, char *error, size_t error_size) {
  static const char SHAPE[] = "is no number: digits, a '-' before them, at most 9 after a '.'";
  const uint8_t *at = text.data;
  const uint8_t *end = at + text.size;
  bool negative = at < end && *at == '-';
  if (negative) at++;
  hb_number number = 0;
  const uint8_t *digits = at;
  for (; at < end && is_digit(*at); at++) {
    number = number * 10 + (*at - '0');
    if (number > (hb_number)1 << 63) return refuse(text, "is beyond 2^63", error, error_size);
  }
  if (at == digits) return refuse(text, SHAPE, error, error_size);
  int decimals = 0;
  if (at < end && *at == '.') {
    at++;
    for (; at < end && is_digit(*at) && decimals < DECIMALS; at++, decimals++) {
      number = number * 10 + (*at - '0');
    }
    if (!decimals) return refuse(text, SHAPE, error, error_size);
  }
  if (at != end) return refuse(text, SHAPE, error, error_size);
  for (; decimals < DECIMALS; decimals++) number *= 10;
  *out = negative ? -number : number;
  return true;
}

size_t hb_number_print(hb_number number, char out[HB_NUMBER_TEXT_SIZE]) {
  char text[HB_NUMBER_TEXT_SIZE];
  size_t at = sizeof text;
  bool negative = number < 0;
  int place = 0;
  bool shown = false; /* a decimal that is not 0, or the point, was seen */
  do {
    int digit = (int)(number % 10);
    if (digit < 0) digit = -digit;
    number /= 10;
    if (place == DECIMALS && shown) text[--at] = '.';
    if (place >= DECIMALS || digit || shown) {
      text[--at] = (char)('0' + digit);
      shown = true;
    }
    place++;
  } while (number != 0 || place <= DECIMALS);
  if (negative) text[--at] = '-';
  size_t size = sizeof text - at;
  memcpy(out, text + at, size);
  out[size] = '\0';
  return size;
}

size_t hb_number_print_count(uint64_t count, char out[HB_NUMBER_TEXT_SIZE]) {
  char text[20];
  size_t at = sizeof text;
  do {
    text[--at] = (char)('0' + count % 10);
    count /= 10;
  } while (count != 0);
  size_t size = sizeof text - at;
  memcpy(out, text + at, size);
  out[size] = '\0';
  return size;
}

bool hb_number_add(hb_number a, hb_number b, hb_number *out) {
  return !__builtin_add_overflow(a, b, out);
}

hb_number hb_number_mean(hb_number sum, unsigned long count) {
  hb_number by = (hb_number)count;
  hb_number quotient = sum / by;
  hb_number rest = sum % by;
  if (rest < 0) rest = -rest;
  if (rest * 2 < by) return quotient;
  return sum < 0 ? quotient - 1 : quotient + 1;
}
