/* The settings that are not limits, one row each; limits have a table of their own.
 *
 *   X(id, name, argument, help) */
#ifndef HB_SERVER_CONFIG_TABLE_H
#define HB_SERVER_CONFIG_TABLE_H

#define HB_DEFAULT_LISTEN "127.0.0.1:4653"
#define HB_DEFAULT_DRAIN_MS 10000

#define HB_CONFIG_TABLE(X)                                                                       \
  X(DATA_DIR, "data-dir", "FOLDER", "the store; made if it does not exist. Needed")              \
  X(LISTEN, "listen", "ADDRESS",                                                                 \
    "host:port, [ipv6]:port or unix:path; may be given several times; port 0 takes a free one. " \
    "Default " HB_DEFAULT_LISTEN)                                                                \
  X(PROCESSOR_DIR, "processor-dir", "FOLDER",                                                    \
    "where shared objects with processors lie: NAME.so. Their code runs in the server")          \
  X(LOG_LEVEL, "log-level", "LEVEL", "error, warn, info or debug. Default info")                 \
  X(DRAIN_TIMEOUT, "drain-timeout", "TIME",                                                      \
    "how long SIGTERM waits for open calls: 500ms, 10s, 2m. Default 10s")

#endif
