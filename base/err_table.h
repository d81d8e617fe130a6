/* Every error code of Holdback, one row each:
 *   X(name, text, gRPC status, retry, fatal, exit code of a process that ends by it)
 *
 * retry: the same request may succeed later without a change of it.
 * fatal: the process that meets it can't go on serving.
 * Exit codes follow sysexits(3) where it has one; holdbackd --help documents them. */
#define HB_ERR_TABLE(X)                                         \
  X(HB_OK, "ok", 0, false, false, 0)                            \
  X(HB_INVALID, "invalid argument", 3, false, false, 64)        \
  X(HB_NOT_FOUND, "not found", 5, false, false, 1)              \
  X(HB_EXISTS, "already exists", 6, false, false, 1)            \
  X(HB_PRECONDITION, "failed precondition", 9, false, false, 1) \
  X(HB_OUT_OF_RANGE, "out of range", 11, false, false, 1)       \
  X(HB_LIMIT, "limit reached", 8, true, false, 1)               \
  X(HB_UNAVAILABLE, "unavailable", 14, true, false, 1)          \
  X(HB_CANCELLED, "cancelled", 1, false, false, 1)              \
  X(HB_TIMEOUT, "deadline exceeded", 4, true, false, 1)         \
  X(HB_UNIMPLEMENTED, "not implemented", 12, false, false, 1)   \
  X(HB_PERMISSION, "permission denied", 7, false, true, 73)     \
  X(HB_ADDRESS_IN_USE, "address in use", 14, true, true, 69)    \
  X(HB_IO, "input/output error", 14, true, true, 74)            \
  X(HB_NO_SPACE, "no space left", 8, true, false, 74)           \
  X(HB_LOCKED, "locked by another process", 14, true, true, 75) \
  X(HB_CORRUPT, "data loss", 15, false, true, 65)               \
  X(HB_VERSION, "format not known", 9, false, true, 76)         \
  X(HB_INTERNAL, "internal error", 13, false, true, 70)
