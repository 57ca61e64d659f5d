/* Conformance of message semantics over the transport that shuffles, splits, delays, refuses and spares fragments. */
/* starts first */
#include "support/matrix.h"

static const struct variant variants[] = {
    {"shuffle", "btl=shuffle,self", 0, false},
    {"shuffle-alone", "btl=shuffle,self pml_ob1_alone_min=500", 0, true},
    {"shuffle-reg-rails", "btl=shuffle,self btl_shuffle_needs_reg=1 btl_shuffle_rails=3 btl_shuffle_seed=2", 0, true},
};

int main(void)
{
    test_form_quick();
    matrix_add(&variants[0]);
    for (size_t i = 1; i < sizeof variants / sizeof variants[0]; i++)
        matrix_add_turn(&variants[i], i - 1, sizeof variants / sizeof variants[0] - 1);
    return matrix_main("conformance-shuffle");
}
