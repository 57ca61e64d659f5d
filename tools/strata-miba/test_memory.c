/* Memory registration and deregistration: by size, by kind of memory, and with many regions there before. */
#include "config.h"
#include "tests.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "machine.h"
#include "measure.h"

#define MOST_REGIONS 64u
#define MOST_BYTES   (UINT64_C(64) << 20) /* of a batch, unless one region has more */
#define HUGE         (UINT64_C(2) << 20)
#define ACCESS       (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

enum kind { TOUCHED, UNTOUCHED, HUGE_PAGES };

struct regions {
    struct miba *m;
    enum kind kind;
    uint64_t size, step; /* of a region; from one to the next */
    unsigned most;
    char *memory;
    struct ibv_mr *mr[MOST_REGIONS];
};

static enum miba_status batch(void *arg, unsigned n, double *ns)
{
    struct regions *r = arg;
    const char *verb = "ibv_reg_mr";
    int error = 0;
    unsigned made = 0;

    if (r->kind == UNTOUCHED && madvise(r->memory, r->step * r->most, MADV_DONTNEED))
        return miba_fail(&r->m->why, MIBA_SKIPPED, "pages cannot be given back: %s", strerror(errno));
    uint64_t begin = miba_now();
    while (made < n && !error) {
        r->mr[made] = ibv_reg_mr(r->m->dev.pd, r->memory + made * r->step, r->size, ACCESS);
        if (r->mr[made])
            made++;
        else
            error = errno;
    }
    ns[0] = (double)(miba_now() - begin);
    begin = miba_now();
    for (unsigned i = 0; i < made; i++) {
        const int failed = ibv_dereg_mr(r->mr[i]);
        if (failed && !error) {
            verb = "ibv_dereg_mr";
            error = failed;
        }
    }
    ns[1] = (double)(miba_now() - begin);
    if (error == ENOMEM || error == EAGAIN)
        return miba_fail(&r->m->why, MIBA_SKIPPED, "%llu bytes cannot be registered: %s", (unsigned long long)r->size,
                         strerror(error));
    return error ? miba_fail_verb(&r->m->why, error, verb, NULL) : MIBA_OK;
}

static enum miba_status get_memory(struct regions *r)
{
    const uint64_t bytes = r->step * r->most;
    const enum miba_status status = r->kind == HUGE_PAGES ? MIBA_OK : machine_spares(bytes, &r->m->why);

    if (status)
        return status;
    const int huge = r->kind == HUGE_PAGES ? MAP_HUGETLB : 0;
    r->memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | huge, -1, 0);
    if (r->memory == MAP_FAILED)
        return miba_fail(&r->m->why, MIBA_SKIPPED,
                         huge ? "%llu bytes of huge pages are not there: %s" : "%llu bytes: %s",
                         (unsigned long long)bytes, strerror(errno));
    if (r->kind != HUGE_PAGES)
        madvise(r->memory, bytes, MADV_NOHUGEPAGE); /* pages are of one size then */
    if (r->kind != UNTOUCHED)
        memset(r->memory, 1, bytes);
    return MIBA_OK;
}

static enum miba_status lead(struct miba *m, const struct miba_case *c)
{
    static const char *const figures[] = {"register", "deregister"};
    struct regions r = {.m = m, .kind = (enum kind)c->variant, .size = c->x};
    const uint64_t page = r.kind == HUGE_PAGES ? HUGE : 4096;

    if (c->x == 0)
        return miba_fail(&m->why, MIBA_UNSUPPORTED, "regions of 0 bytes");
    if (c->x > m->dev.attr.max_mr_size || c->x > UINT64_MAX - page)
        return miba_fail(&m->why, MIBA_UNSUPPORTED, "%llu bytes: regions of the device have %llu",
                         (unsigned long long)c->x, (unsigned long long)m->dev.attr.max_mr_size);
    r.step = (c->x + page - 1) / page * page;
    r.most = r.step >= MOST_BYTES                 ? 1
             : MOST_BYTES / r.step > MOST_REGIONS ? MOST_REGIONS
                                                  : (unsigned)(MOST_BYTES / r.step);
    if (r.kind == HUGE_PAGES)
        r.most = r.step >= 4 * HUGE ? 1 : 4;
    enum miba_status status = get_memory(&r);
    if (status)
        return status;
    const struct measure what = {.run = batch, .arg = &r, .figures = 2, .most = r.most, .scale = 1};
    status = measure_and_report(m, c, &what, figures);
    munmap(r.memory, r.step * r.most);
    return status;
}

static enum miba_status measure_beside(struct miba *m, const struct miba_case *c, struct ibv_mr **before)
{
    static const char *const figures[] = {"register_many", "deregister_many"};
    struct regions r = {.m = m, .kind = TOUCHED, .size = (uint64_t)64 << 10, .step = (uint64_t)64 << 10, .most = 32};
    enum miba_status status = get_memory(&r);
    const struct measure what = {.run = batch, .arg = &r, .figures = 2, .most = r.most, .scale = 1};

    if (status)
        return status;
    for (uint64_t i = 0; i < c->x && !status; i++) {
        before[i] = ibv_reg_mr(m->dev.pd, r.memory + i % 512 * 4096, 4096, ACCESS);
        if (!before[i])
            status = miba_fail(&m->why, MIBA_SKIPPED, "%llu regions: no more than %llu can be registered: %s",
                               (unsigned long long)c->x, (unsigned long long)i, strerror(errno));
    }
    if (!status)
        status = measure_and_report(m, c, &what, figures);
    for (uint64_t i = 0; i < c->x && before[i]; i++)
        ibv_dereg_mr(before[i]);
    munmap(r.memory, r.step * r.most);
    return status;
}

static enum miba_status lead_many(struct miba *m, const struct miba_case *c)
{
    if (c->x + 32 > (uint64_t)m->dev.attr.max_mr)
        return miba_fail(&m->why, MIBA_UNSUPPORTED, "%llu regions: the device has %d", (unsigned long long)c->x,
                         m->dev.attr.max_mr);
    struct ibv_mr **before = calloc(c->x + 1, sizeof(struct ibv_mr *));
    if (!before)
        return miba_fail(&m->why, MIBA_SKIPPED, "no memory for %llu regions", (unsigned long long)c->x);
    const enum miba_status status = measure_beside(m, c, before);
    free(before);
    return status;
}

/* The buffers lie at the end of the region, which the endpoint makes, if the memory is there. */
static enum miba_status shape_region(struct miba *m, const struct miba_case *c, struct traffic *t)
{
    traffic_base(m, c, PATTERN_STREAM, t);
    if (c->x > m->dev.attr.max_mr_size)
        return miba_fail(&m->why, MIBA_UNSUPPORTED, "%llu bytes: regions of the device have %llu",
                         (unsigned long long)c->x, (unsigned long long)m->dev.attr.max_mr_size);
    t->region = c->x;
    return MIBA_OK;
}

static const uint64_t region_sizes[] = {65536};
static const uint64_t region_bytes[] = {1 << 20, 64 << 20, 1 << 30, UINT64_C(5) << 30};
static const uint64_t sizes[] = {4096, 16384, 65536, 262144, 1 << 20, 4 << 20, 16 << 20, 64 << 20, 256 << 20, 1 << 30};
static const char *const kinds[] = {"touched", "untouched", "huge", NULL};
static const uint64_t numbers[] = {0, 100, 1000, 10000};

const struct miba_test test_registration = {
    .name = "registration",
    .paper = "Figure 2",
    .isolates =
        "Registering and deregistering memory by its size: pinning pages and telling the device where they are. Memory "
        "is "
        "touched before (touched: the pages are there), is fresh each time (untouched: the kernel makes them at "
        "registration), or has pages of 2 MiB (huge).",
    .x_name = "size",
    VALUES(sizes),
    .variants = kinds,
    .local = lead,
};

const struct miba_test test_registration_many = {
    .name = "registration_many",
    .paper = "beyond the paper (Figure 2)",
    .isolates =
        "Registering and deregistering 64 KiB while so many other regions are registered: whether tables of driver and "
        "device are searched.",
    .x_name = "regions",
    VALUES(numbers),
    .values_fixed = true,
    .local = lead_many,
};

const struct miba_test test_region = {
    .name = "region",
    .paper = "beyond the paper",
    .isolates =
        "Bandwidth to and from the end of a memory region of so many bytes, on both sides: tables of translations "
        "of large regions. Registration is not in it.",
    .x_name = "region",
    VALUES(region_bytes),
    SIZES(region_sizes),
    .ops = BIT(OP_WRITE) | BIT(OP_READ),
    .transports = BIT(RC),
    .shape = shape_region,
};
