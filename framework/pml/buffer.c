/* The buffer that a program attaches for buffered sends, one for each context: a list of blocks in address order, first
 * fit, neighbours joined when freed. */
#include <stdlib.h>
#include "framework/base/context.h"

#define GRAIN 16u

struct block {
    struct block *prev;
    size_t size; /* with this header, multiple of GRAIN */
    size_t used; /* 0: free */
    size_t spare;
};
_Static_assert(sizeof(struct block) % GRAIN == 0, "data begins aligned");
_Static_assert(sizeof(struct block) + 2 * GRAIN <= STRATA_BSEND_OVERHEAD, "what users reckon with");

struct st_buffer {
    void *buffer; /* as attached */
    size_t size;
    char *first, *end; /* aligned */
    size_t n_used;
};

static struct block *buffer_next(const struct st_buffer *bs, struct block *b)
{
    char *at = (char *)b + b->size;

    return at < bs->end ? (struct block *)(void *)at : NULL;
}

int strata_buffer_attach(strata_t *s, void *buffer, size_t size)
{
    uintptr_t first = ((uintptr_t)buffer + GRAIN - 1) & ~(uintptr_t)(GRAIN - 1);
    uintptr_t end = ((uintptr_t)buffer + size) & ~(uintptr_t)(GRAIN - 1);
    struct st_buffer *bs;
    int rc = STRATA_OK;

    if (!s || !buffer || size == 0)
        return STRATA_ERR_ARG;
    st_worker_lock(s->worker);
    bs = s->buffer ? NULL : malloc(sizeof(*bs));
    if (s->buffer) {
        rc = STRATA_ERR_STATE;
    } else if (!bs) {
        rc = STRATA_ERR_NOMEM;
    } else {
        if (end < first + sizeof(struct block))
            first = end; /* too small for anything: legal, and every buffered send that must wait fails */
        *bs = (struct st_buffer){buffer, size, (char *)first, (char *)end, 0};
        if (first < end)
            *(struct block *)first = (struct block){NULL, end - first, 0, 0};
        s->buffer = bs;
    }
    st_worker_unlock(s->worker);
    return rc;
}

static bool buffer_is_empty(void *arg)
{
    strata_t *s = arg;
    bool yes;

    st_worker_lock(s->worker);
    yes = !s->buffer || s->buffer->n_used == 0;
    st_worker_unlock(s->worker);
    return yes;
}

int strata_buffer_detach(strata_t *s, void **buffer, size_t *size)
{
    struct st_buffer *bs;

    if (!s || !buffer || !size)
        return STRATA_ERR_ARG;
    st_worker_wait(s->worker, buffer_is_empty, s);
    st_worker_lock(s->worker);
    bs = s->buffer;
    s->buffer = NULL;
    st_worker_unlock(s->worker);
    if (!bs)
        return STRATA_ERR_STATE;
    *buffer = bs->buffer;
    *size = bs->size;
    free(bs);
    return STRATA_OK;
}

int st_pml_buffer_copy(strata_t *s, const strata_data_t *data, void **out, void **copy)
{
    struct st_buffer *bs = s->buffer;
    size_t need = sizeof(struct block) + (data->length + GRAIN - 1) / GRAIN * GRAIN;
    struct st_payload all = {data, 0, data->length};
    struct block *b;
    int rc;

    if (!bs || data->length > bs->size)
        return STRATA_ERR_BUFFER;
    b = bs->first < bs->end ? (struct block *)(void *)bs->first : NULL;
    while (b && (b->used || b->size < need))
        b = buffer_next(bs, b);
    if (!b)
        return STRATA_ERR_BUFFER;
    rc = data->length ? st_payload_gather(&all, b + 1) : STRATA_OK;
    if (rc != STRATA_OK)
        return rc;
    if (b->size - need >= sizeof(struct block) + GRAIN) {
        struct block *rest = (struct block *)(void *)((char *)b + need), *after = buffer_next(bs, b);
        *rest = (struct block){b, b->size - need, 0, 0};
        if (after)
            after->prev = rest;
        b->size = need;
    }
    b->used = 1;
    bs->n_used++;
    *out = b;
    *copy = b + 1;
    return STRATA_OK;
}

static void buffer_join(struct st_buffer *bs, struct block *a, struct block *b)
{
    struct block *after = buffer_next(bs, b);

    a->size += b->size;
    if (after)
        after->prev = a;
}

void st_pml_buffer_put(strata_t *s, void *block)
{
    struct st_buffer *bs = s->buffer;
    struct block *b = block, *after = buffer_next(bs, b);

    b->used = 0;
    bs->n_used--;
    if (after && !after->used)
        buffer_join(bs, b, after);
    if (b->prev && !b->prev->used)
        buffer_join(bs, b->prev, b);
}
