/* Conformance of message semantics over btl_sm's ways: without rings, with tiny resources, each kind of single copy. */
#include "support/matrix.h"

#define S "btl=sm,self "
static const struct variant variants[] = {
    {"sm-no-rings", S "btl_sm_rings=0", 0, false},
    {"sm-tiny",
     S "btl_sm_rings=1 btl_sm_queue_slots=8 btl_sm_cells=1 btl_sm_ring_slots=8 btl_sm_ring_data=4k "
       "btl_sm_max_send=1k btl_sm_eager_limit=256 btl_sm_pipeline_send=512 btl_sm_stream_limit=2k",
     0, true},
    {"sm-no-copy", S "btl_sm_single_copy=off", 0, true},
    {"sm-one-sided", S "btl_sm_single_copy=one_sided btl_sm_rdma_min=1k btl_sm_stream_limit=1k btl_sm_eager_limit=1k",
     0, true},
    {"sm-cooperative",
     S "btl_sm_single_copy=cooperative btl_sm_rdma_min=4k btl_sm_coop_min=4k btl_sm_coop_chunk=4k "
       "btl_sm_stream_limit=4k btl_sm_eager_limit=1k",
     0, true},
    {"sm-socket", S "btl_sm_attach=socket btl_sm_promote_after=1", 0, true},
    {"sm-churn", S "btl_sm_rings=1 btl_sm_promote_after=1 btl_sm_promote_window=4", 0, true},
    {"sm-and-shuffle", "btl=sm,shuffle,self", 0, true},
};

int main(void)
{
    return matrix_long_main("conformance-sm-long", variants, sizeof variants / sizeof variants[0]);
}
