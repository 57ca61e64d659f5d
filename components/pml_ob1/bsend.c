/* The attached buffer of buffered sends: a list of blocks in address order, first fit, neighbours joined when freed. */
#include <stdlib.h>
#include "ob1.h"
#include "ob1_inl.h"
#include "send.h"

#define GRAIN 16u

struct block {
    struct block *prev;
    size_t size; /* with this header, multiple of GRAIN */
    size_t used; /* 0: free */
    size_t spare;
};
_Static_assert(sizeof(struct block) % GRAIN == 0, "data begins aligned");
_Static_assert(sizeof(struct block) + 2 * GRAIN <= STRATA_BSEND_OVERHEAD, "what users reckon with");

struct ob1_bsend {
    void *buffer; /* as attached */
    size_t size;
    char *first, *end; /* aligned */
    size_t n_used;
};

static struct block *ob1_bsend_next(const struct ob1_bsend *bs, struct block *b)
{
    char *at = (char *)b + b->size;

    return at < bs->end ? (struct block *)(void *)at : NULL;
}

int ob1_buffer_attach(struct st_pml *head, void *buffer, size_t size)
{
    struct ob1 *pml = (struct ob1 *)head;
    uintptr_t first = ((uintptr_t)buffer + GRAIN - 1) & ~(uintptr_t)(GRAIN - 1);
    uintptr_t end = ((uintptr_t)buffer + size) & ~(uintptr_t)(GRAIN - 1);
    struct ob1_bsend *bs;
    int rc = STRATA_OK;

    ob1_lock(pml);
    bs = pml->bsend ? NULL : malloc(sizeof(*bs));
    if (pml->bsend) {
        rc = STRATA_ERR_STATE;
    } else if (!bs) {
        rc = STRATA_ERR_NOMEM;
    } else {
        if (end < first + sizeof(struct block))
            first = end; /* too small for anything: legal, and every buffered send that must wait fails */
        *bs = (struct ob1_bsend){buffer, size, (char *)first, (char *)end, 0};
        if (first < end)
            *(struct block *)first = (struct block){NULL, end - first, 0, 0};
        pml->bsend = bs;
    }
    ob1_unlock(pml);
    return rc;
}

static bool ob1_bsend_empty(void *arg)
{
    struct ob1 *pml = arg;
    bool yes;

    ob1_lock(pml);
    yes = !pml->bsend || pml->bsend->n_used == 0;
    ob1_unlock(pml);
    return yes;
}

int ob1_buffer_detach(struct st_pml *head, void **buffer, size_t *size)
{
    struct ob1 *pml = (struct ob1 *)head;
    struct ob1_bsend *bs;

    st_worker_wait(head->worker, ob1_bsend_empty, pml);
    ob1_lock(pml);
    bs = pml->bsend;
    pml->bsend = NULL;
    ob1_unlock(pml);
    if (!bs)
        return STRATA_ERR_STATE;
    if (buffer)
        *buffer = bs->buffer;
    if (size)
        *size = bs->size;
    free(bs);
    return STRATA_OK;
}

int ob1_bsend_copy(struct ob1 *pml, const strata_data_t *data, void **out, void **copy)
{
    struct ob1_bsend *bs = pml->bsend;
    size_t need = sizeof(struct block) + (data->length + GRAIN - 1) / GRAIN * GRAIN;
    struct st_payload all = {data, 0, data->length};
    struct block *b;
    int rc;

    if (!bs || data->length > bs->size)
        return STRATA_ERR_BUFFER;
    b = bs->first < bs->end ? (struct block *)(void *)bs->first : NULL;
    while (b && (b->used || b->size < need))
        b = ob1_bsend_next(bs, b);
    if (!b)
        return STRATA_ERR_BUFFER;
    rc = data->length ? st_payload_gather(&all, b + 1) : STRATA_OK;
    if (rc != STRATA_OK)
        return rc;
    if (b->size - need >= sizeof(struct block) + GRAIN) {
        struct block *rest = (struct block *)(void *)((char *)b + need), *after = ob1_bsend_next(bs, b);
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

static void ob1_bsend_join(struct ob1_bsend *bs, struct block *a, struct block *b)
{
    struct block *after = ob1_bsend_next(bs, b);

    a->size += b->size;
    if (after)
        after->prev = a;
}

void ob1_bsend_put(struct ob1 *pml, void *block)
{
    struct ob1_bsend *bs = pml->bsend;
    struct block *b = block, *after = ob1_bsend_next(bs, b);

    b->used = 0;
    bs->n_used--;
    if (after && !after->used)
        ob1_bsend_join(bs, b, after);
    if (b->prev && !b->prev->used)
        ob1_bsend_join(bs, b->prev, b);
}
