/* Facts of single copy: which samples count when the kernel switches threads. This file has its own getrusage and
 * process_vm_readv, so that the number of copies tells, and no time. */
#define _GNU_SOURCE 1
#include <check.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/uio.h>

#include "copy_facts.h"
#include "support/run_suite.h"

enum { COLD = 2, PER_SAMPLE = 3, SAMPLES = 3, TRIES = 12, NEVER = 1000 };

static unsigned copies, fails_at; /* calls of process_vm_readv; the first that fails */
static unsigned switched;         /* so many first samples are interrupted */
static uint8_t remote[65536];

int getrusage(__rusage_who_t who, struct rusage *out)
{
    unsigned interrupted = copies < COLD ? 0 : (copies - COLD + PER_SAMPLE - 1) / PER_SAMPLE;
    (void)who;
    memset(out, 0, sizeof *out);
    out->ru_nivcsw = interrupted < switched ? interrupted : switched;
    return 0;
}

ssize_t process_vm_readv(pid_t pid, const struct iovec *to, unsigned long n_to, const struct iovec *from,
                         unsigned long n_from, unsigned long flags)
{
    size_t length = 0;
    (void)pid;
    ck_assert_uint_eq(n_to, 1);
    ck_assert_uint_eq(flags, 0);
    if (++copies >= fails_at)
        return -1;
    for (unsigned long i = 0; i < n_from; i++) {
        memcpy((uint8_t *)to->iov_base + length, from[i].iov_base, from[i].iov_len);
        length += from[i].iov_len;
    }
    ck_assert_uint_eq(length, to->iov_len);
    return (ssize_t)length;
}

static bool measure(unsigned interrupted, unsigned fails, struct sm_copy_times *out)
{
    copies = 0;
    switched = interrupted;
    fails_at = fails;
    return sm_facts_measure(1, (uint64_t)(uintptr_t)remote, out);
}

START_TEST(interrupted_samples_do_not_count)
{
    static const struct {
        unsigned interrupted, samples;
    } rows[] = {{0, SAMPLES}, {1, 1 + SAMPLES}, {5, 5 + SAMPLES}, {TRIES - SAMPLES, TRIES}, {NEVER, TRIES}};
    struct sm_copy_times t;
    ck_assert(measure(rows[_i].interrupted, NEVER, &t));
    ck_assert_uint_eq(copies, COLD + PER_SAMPLE * rows[_i].samples);
    ck_assert(t.kernel > 0 && t.cache > 0 && t.call > 0 && t.kernel_16k > 0 && t.cold_16k > 0 && t.cold_64k > 0);
}
END_TEST

/* Each of the copies is refused once. */
START_TEST(refused)
{
    struct sm_copy_times t;
    ck_assert(!measure(0, (unsigned)_i, &t));
    ck_assert_uint_eq(copies, _i);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("facts of single copy");
    TCase *t = tcase_create("measuring");
    tcase_add_loop_test(t, interrupted_samples_do_not_count, 0, 5);
    tcase_add_loop_test(t, refused, 1, COLD + PER_SAMPLE * SAMPLES + 1);
    suite_add_tcase(s, t);
    return run_suite(s);
}
