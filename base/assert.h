/* Assertions that stay on in every build.
 *
 * HB_ASSERT is for what our own code guarantees. Bytes from the wire, the disk, a configuration
 * or a peer are validated and answered with an error, never asserted. */
#ifndef HB_BASE_ASSERT_H
#define HB_BASE_ASSERT_H

#define HB_ASSERT(condition) \
  ((condition) ? (void)0 : hb_assert_failed(#condition, __FILE__, __LINE__))
#define HB_UNREACHABLE() hb_assert_failed("unreachable", __FILE__, __LINE__)

/* Print the condition and its place to stderr, then abort. Any thread. */
_Noreturn void hb_assert_failed(const char *condition, const char *file, int line);

#endif
