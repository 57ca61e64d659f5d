/* Prints the one-way time of the bare exchange of a cache line between two processors, us.
 * usage: exchange PROCESSOR PROCESSOR. Exit status 1 if it cannot be measured, 2 for wrong usage. */
#include <stdio.h>
#include <stdlib.h>
#include "exchange.h"

int main(int argc, char **argv)
{
    double us;

    if (argc != 3) {
        fprintf(stderr, "usage: exchange PROCESSOR PROCESSOR\n");
        return 2;
    }
    us = perf_exchange((const int[]){atoi(argv[1]), atoi(argv[2])}, 800);
    if (us <= 0)
        return 1;
    printf("%.4f\n", us);
    return 0;
}
