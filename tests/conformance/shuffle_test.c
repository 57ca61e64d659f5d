/* Conformance of message semantics over the transport that shuffles, splits, delays, refuses and spares fragments. */
/* starts first */
#include "support/matrix.h"

static struct variant variants[] = {
    {"shuffle", "btl=shuffle,self", 0, false},
    {"shuffle-alone", "btl=shuffle,self pml_ob1_alone_min=500", 0, true},
    {"shuffle-reg-rails", "btl=shuffle,self btl_shuffle_needs_reg=1 btl_shuffle_rails=3 btl_shuffle_seed=2", 0, true},
};

int main(void)
{
    const size_t n = sizeof variants / sizeof variants[0];
    /* Variants that every case runs over: none with a sanitizer, under which each case runs over one variant, and slow
     * cases in pml_test. */
    size_t whole = test_sanitized() ? 0 : 1;
    test_form_quick();
    variants[0].quick_only = whole == 0 && test_form(true, false);
    for (size_t i = 0; i < whole; i++)
        matrix_add(&variants[i]);
    for (size_t i = whole; i < n; i++)
        matrix_add_turn(&variants[i], i - whole, n - whole);
    return matrix_main("conformance-shuffle");
}
