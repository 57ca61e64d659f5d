/* 10^6 steps: see differential.h. */
#include "differential.h"

int main(void)
{
    return differential_main(1000000, 3);
}
