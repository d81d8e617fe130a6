/* The log: one line of `event=NAME key=value ...` per occurrence, on stderr.
 *
 * Only the edge (server/) logs; everything below returns errors. Never one line per event of a
 * stream, never a payload. A value with a space, a quote or a '=' is quoted. Thread-safe. */
#ifndef HB_BASE_LOG_H
#define HB_BASE_LOG_H

enum hb_log_level { HB_LOG_ERROR, HB_LOG_WARN, HB_LOG_INFO, HB_LOG_DEBUG };

/* Lines above `level` are dropped. Default HB_LOG_INFO. Call before threads start. */
void hb_log_set_level(enum hb_log_level level);
enum hb_log_level hb_log_get_level(void);
/* "error", "warn", "info", "debug" -> level; < 0 where it is none of them. */
int hb_log_parse_level(const char *text);

/* hb_log(HB_LOG_INFO, "ready", "recovery_ms=%u listen=%s", ...) */
void hb_log(enum hb_log_level level, const char *event, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* `text` as a value of key=value: quoted and escaped where needed, cut at `size`. Returns `out`. */
const char *hb_log_quote(const char *text, char *out, unsigned long size);

#endif
