/* Completion queues: creating, resizing and destroying them, by their entries. */
#include "config.h"
#include "tests.h"

#include <errno.h>
#include "measure.h"

#define MOST_QUEUES 128u

struct queues {
    struct miba *m;
    int entries;
    bool resized;
    struct ibv_cq *cq[MOST_QUEUES];
};

static enum miba_status batch(void *arg, unsigned n, double *ns)
{
    struct queues *q = arg;
    int error = 0;
    unsigned made = 0, figure = 0;
    const char *verb = "ibv_create_cq";

    uint64_t begin = miba_now();
    while (made < n && !error) {
        q->cq[made] = ibv_create_cq(q->m->dev.ctx, q->entries, NULL, NULL, 0);
        if (q->cq[made])
            made++;
        else
            error = errno;
    }
    ns[figure++] = (double)(miba_now() - begin);
    if (q->resized && !error) {
        verb = "ibv_resize_cq";
        begin = miba_now();
        for (unsigned i = 0; i < n && !error; i++)
            error = ibv_resize_cq(q->cq[i], 2 * q->entries);
        ns[figure++] = (double)(miba_now() - begin);
    }
    begin = miba_now();
    for (unsigned i = 0; i < made; i++) {
        const int failed = ibv_destroy_cq(q->cq[i]);
        if (failed && !error) {
            verb = "ibv_destroy_cq";
            error = failed;
        }
    }
    ns[figure] = (double)(miba_now() - begin);
    return error ? miba_fail_verb(&q->m->why, error, verb, NULL) : MIBA_OK;
}

static enum miba_status lead(struct miba *m, const struct miba_case *c)
{
    static const char *const plain[] = {"cq_create", "cq_destroy"};
    static const char *const resized[] = {"cq_create_resized", "cq_resize", "cq_destroy_resized"};
    struct queues q = {.m = m, .entries = (int)c->x, .resized = c->variant == 1};
    const struct measure what = {
        .run = batch, .arg = &q, .figures = q.resized ? 3 : 2, .most = MOST_QUEUES, .scale = 1};

    if (c->x == 0 || c->x * (q.resized ? 2 : 1) > (uint64_t)m->dev.attr.max_cqe)
        return miba_fail(&m->why, MIBA_UNSUPPORTED, "%llu entries: the device's queues have 1 to %d",
                         (unsigned long long)c->x * (q.resized ? 2 : 1), m->dev.attr.max_cqe);
    return measure_and_report(m, c, &what, q.resized ? resized : plain);
}

static const uint64_t entries[] = {1, 16, 256, 4096, 65536, 1048576};
static const char *const variants[] = {"plain", "resized", NULL};

const struct miba_test test_cq = {
    .name = "cq",
    .paper = "Figure 3",
    .isolates =
        "Creating and destroying a completion queue by its entries (plain), and resizing it to twice as many before "
        "(resized). What grows with the entries is the memory of the queue.",
    .x_name = "entries",
    VALUES(entries),
    .variants = variants,
    .local = lead,
};
