/* 10^5 steps: see differential.h. */
#include "differential.h"

int main(void)
{
    return differential_main(100000, 2);
}
