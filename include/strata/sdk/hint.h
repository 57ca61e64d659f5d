/* Hints to the compiler. */
#ifndef STRATA_SDK_HINT_H
#define STRATA_SDK_HINT_H

/* A condition that nearly always holds. */
#define ST_LIKELY(x) __builtin_expect(!!(x), 1)
/* A condition that nearly never holds. */
#define ST_UNLIKELY(x) __builtin_expect(!!(x), 0)
/* A function that is off the hot path: never inlined, laid out apart. */
#define ST_COLD __attribute__((noinline, cold))
/* A function that is always inlined. */
#define ST_INLINE static inline __attribute__((always_inline))

#endif
