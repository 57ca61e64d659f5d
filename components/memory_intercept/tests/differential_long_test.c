/* 10^6 steps: see differential.h. The short form has other seeds than the quick test. */
#include "differential.h"

int main(void)
{
    const unsigned long full = 1000000, steps = test_form(200000, full);
    first_seed = test_seed(test_form(101, 1));
    test_form_print(first_seed, steps, full, "steps");
    return differential_main(steps, 3);
}
