/* Cells of this process: buffers for messages by a shared queue that do not fit a slot. */
#include "send.h"
#include "sm.h"

#include <errno.h>

/* One more cell of mine, if memory and the parameter allow. */
static int sm_cell_grow(struct sm_module *m)
{
    uint32_t i = m->n_cells_ready;

    if (i >= m->seg.geometry.n_cells)
        return STRATA_ERR_AGAIN;
    if (sm_segment_reserve(&m->seg, m->seg.at.cells + (size_t)i * m->seg.at.cell_stride, m->seg.at.cell_stride) !=
        STRATA_OK) {
        if (i == 0)
            st_help(m->btl.context, m->btl.component, "no shared memory", (unsigned long)m->seg.at.cell_stride,
                    strerror(errno));
        return i == 0 ? STRATA_ERR_NOMEM : STRATA_ERR_AGAIN;
    }
    sm_segment_enter(m->seg.base + m->seg.at.cells + (size_t)i * m->seg.at.cell_stride, m->seg.at.cell_stride);
    m->n_cells_ready++;
    return STRATA_OK;
}

int sm_cells_ready(struct sm_module *m)
{
    return m->n_cells_ready ? STRATA_OK : sm_cell_grow(m);
}

bool sm_cells_idle(struct sm_module *m)
{
    for (uint32_t i = 0; i < m->n_cells_ready; i++) {
        if (atomic_load_explicit(&sm_cell(m->seg.base, &m->seg.at, i)->in_use, memory_order_acquire))
            return false;
    }
    return true;
}

static bool sm_cell_out_to(const struct sm_module *m, uint32_t i, int rank)
{
    return m->cell_to[i] == rank &&
           atomic_load_explicit(&sm_cell(m->seg.base, &m->seg.at, i)->in_use, memory_order_acquire);
}

bool sm_cells_out(const struct sm_module *m, int rank)
{
    for (uint32_t i = 0; i < m->n_cells_ready; i++) {
        if (sm_cell_out_to(m, i, rank))
            return true;
    }
    return false;
}

void sm_cells_recover(struct sm_module *m, int rank)
{
    for (uint32_t i = 0; i < m->n_cells_ready; i++) {
        if (sm_cell_out_to(m, i, rank))
            atomic_store_explicit(&sm_cell(m->seg.base, &m->seg.at, i)->in_use, 0, memory_order_relaxed);
    }
}

struct sm_cell *sm_cell_get(struct sm_module *m, uint32_t *index)
{
    uint32_t n = m->n_cells_ready;

    for (uint32_t k = 0; k < n; k++) {
        uint32_t i = m->cell_hint + k < n ? m->cell_hint + k : m->cell_hint + k - n;
        struct sm_cell *c = sm_cell(m->seg.base, &m->seg.at, i);
        /* Acquire: pairs with the receiver's release; it has read the last contents. */
        if (!atomic_load_explicit(&c->in_use, memory_order_acquire)) {
            m->cell_hint = i + 1 < n ? i + 1 : 0;
            *index = i;
            return c;
        }
    }
    if (sm_cell_grow(m) != STRATA_OK)
        return NULL;
    *index = n;
    return sm_cell(m->seg.base, &m->seg.at, n);
}
