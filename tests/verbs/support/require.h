/* Assertions of the suite: they print to stderr at once, since a failure may happen in a forked peer, and then end the
 * case by Check. A call of libibverbs reports by an errno value, by NULL, or by -1 and errno; there is a form for each.
 */
#ifndef VERBS_SUPPORT_REQUIRE_H
#define VERBS_SUPPORT_REQUIRE_H

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define FAIL(...)                                                                                                      \
    do {                                                                                                               \
        fprintf(stderr, "%s:%d: ", __FILE__, __LINE__);                                                                \
        fprintf(stderr, __VA_ARGS__);                                                                                  \
        fprintf(stderr, "\n");                                                                                         \
        ck_abort_msg(__VA_ARGS__);                                                                                     \
    } while (0)

#define REQUIRE(cond)                                                                                                  \
    do {                                                                                                               \
        if (!(cond))                                                                                                   \
            FAIL("%s is false (errno %s)", #cond, strerror(errno));                                                    \
    } while (0)

#define REQUIRE_MSG(cond, ...)                                                                                         \
    do {                                                                                                               \
        if (!(cond))                                                                                                   \
            FAIL(__VA_ARGS__);                                                                                         \
    } while (0)

#define REQUIRE_EQ(a, b)                                                                                               \
    do {                                                                                                               \
        long long va_ = (long long)(a), vb_ = (long long)(b);                                                          \
        if (va_ != vb_)                                                                                                \
            FAIL("%s is %lld, not %s, which is %lld", #a, va_, #b, vb_);                                               \
    } while (0)

/* For calls that return 0 or an errno value (some return -1 and set errno). */
#define REQUIRE_OK(call)                                                                                               \
    do {                                                                                                               \
        int ok_ = (call);                                                                                              \
        if (ok_)                                                                                                       \
            FAIL("%s failed: %d (%s)", #call, ok_, strerror(ok_ > 0 ? ok_ : errno));                                   \
    } while (0)

#define REQUIRE_FAILS(call)                                                                                            \
    do {                                                                                                               \
        if ((call) == 0)                                                                                               \
            FAIL("%s was accepted", #call);                                                                            \
    } while (0)

/* Refused with this error, whichever way the call reports it. */
#define REQUIRE_ERR(call, err)                                                                                         \
    do {                                                                                                               \
        errno = 0;                                                                                                     \
        int rc_ = (call);                                                                                              \
        int got_ = rc_ > 0 ? rc_ : errno;                                                                              \
        if (rc_ == 0)                                                                                                  \
            FAIL("%s was accepted", #call);                                                                            \
        if (got_ != (err))                                                                                             \
            FAIL("%s failed with %s, not %s", #call, strerror(got_), #err);                                            \
    } while (0)

#endif
