/* Atomic members of structs that both C11 and C++ can read: `ST_ATOMIC(type)` is `_Atomic(type)` in C and
 * `std::atomic<type>` in C++, of the same size and alignment. The calls are those of <stdatomic.h> in C; in C++ the
 * same names are found in namespace std by the type of their argument. */
#ifndef STRATA_SDK_ATOMIC_H
#define STRATA_SDK_ATOMIC_H

#ifdef __cplusplus
#include <atomic>
/* Type of an atomic member. */
#define ST_ATOMIC(type) std::atomic<type>
using std::memory_order_acquire;
using std::memory_order_relaxed;
using std::memory_order_release;
#else
#include <stdatomic.h>
/* Type of an atomic member. */
#define ST_ATOMIC(type) _Atomic(type)
#endif

#endif
