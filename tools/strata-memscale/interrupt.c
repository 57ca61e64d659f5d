#define _GNU_SOURCE 1
#include "interrupt.h"

#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
enum { N_SIGNALS = sizeof signals / sizeof *signals };

static struct sigaction before[N_SIGNALS];
static volatile sig_atomic_t came;

static void note(int number)
{
    came = number;
}

void interrupt_hold(void)
{
    const struct sigaction noted = {.sa_handler = note};

    came = 0;
    for (size_t i = 0; i < N_SIGNALS; i++) {
        sigaction(signals[i], NULL, &before[i]);
        if (before[i].sa_handler != SIG_IGN)
            sigaction(signals[i], &noted, NULL);
    }
}

bool interrupt_came(void)
{
    return came != 0;
}

void interrupt_release(void)
{
    for (size_t i = 0; i < N_SIGNALS; i++)
        sigaction(signals[i], &before[i], NULL);
    if (!came)
        return;
    fprintf(stderr, "strata-memscale: %s; what was measured before is kept, and the same command goes on\n",
            strsignal(came));
    raise(came);
}
