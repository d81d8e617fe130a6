/* Hand-overs that go through gRPC, told to ThreadSanitizer: gRPC is not instrumented, so its locks
 * are not seen, and what one thread wrote before and another reads after would look like a race.
 * Nothing in other builds. */
#ifndef HB_BASE_HANDOFF_H
#define HB_BASE_HANDOFF_H

#if defined(__SANITIZE_THREAD__)
#define HB_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HB_TSAN 1
#endif
#endif

#ifdef HB_TSAN
void __tsan_acquire(void *address);
void __tsan_release(void *address);
static inline void hb_handoff_give(void *what) { __tsan_release(what); }
static inline void hb_handoff_take(void *what) { __tsan_acquire(what); }
#else
static inline void hb_handoff_give(void *what) { (void)what; }
static inline void hb_handoff_take(void *what) { (void)what; }
#endif

#endif
