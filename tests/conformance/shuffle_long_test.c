/* The same as shuffle_test over every kind of transport that the BTL contract allows. */
#include "support/matrix.h"

#define S "btl=shuffle,self "
static const struct variant variants[] = {
    {"ordered", S "btl_shuffle_window=1 btl_shuffle_delay=0", 0, true},
    {"wild", S "btl_shuffle_window=1000 btl_shuffle_delay=20 btl_shuffle_again_percent=60 btl_shuffle_seed=3", 0, true},
    {"get-only", S "btl_shuffle_put=0 btl_shuffle_seed=4", 0, true},
    {"put-only", S "btl_shuffle_get=0 btl_shuffle_seed=5", 0, true},
    {"send-only", S "btl_shuffle_get=0 btl_shuffle_put=0 btl_shuffle_seed=6", 0, true},
    {"send-only-rails", S "btl_shuffle_get=0 btl_shuffle_put=0 btl_shuffle_rails=4", 0, true},
    {"losing-rdma", S "btl_shuffle_unsupported_percent=30 btl_shuffle_seed=7", 0, true},
    {"losing-rdma-reg-rails",
     S "btl_shuffle_unsupported_percent=30 btl_shuffle_needs_reg=1 btl_shuffle_rails=2 btl_shuffle_seed=8", 0, true},
    {"reg-get-only", S "btl_shuffle_needs_reg=1 btl_shuffle_put=0 btl_shuffle_rdma_pipeline=3k", 0, true},
    {"reg-put-only", S "btl_shuffle_needs_reg=1 btl_shuffle_get=0 btl_shuffle_rdma_pipeline=3k", 0, true},
    {"no-gather", S "btl_shuffle_gather=0", 0, true},
    {"never-again", S "btl_shuffle_again_percent=0", 0, true},
    {"tiny", S "btl_shuffle_max_send=64 btl_shuffle_eager_limit=16 btl_shuffle_stream_limit=256", 0, true},
};

int main(void)
{
    return matrix_long_main("conformance-shuffle-long", variants, sizeof variants / sizeof variants[0]);
}
