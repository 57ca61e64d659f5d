/* Table III of Secco et al. (PDP 2014): a farm. Rank 0 scatters simulations over the others and takes their samples
 * from any. `tasks` instead hands out tasks of 10 us on demand, one answer each; `sleep` tasks in which workers sleep,
 * the first one ten times as long, the next task for each answer. */
#ifndef TWIN_FARM_H
#define TWIN_FARM_H

#include <stdbool.h>
#include <sys/prctl.h>

#include "farm_compute.h"

enum { SIMULATIONS = 192, SAMPLES = 1000, TASKS = 20000, TASKS_AHEAD = 8 };
static const double task_time = 10e-6;
/* `sleep`: 8 workers at their best take 2.025 s, 405 sleeps of seven and 40 of the slow one. */
enum { SLEEPS = 2875, SLEEP_US = 5000, SLEEP_SLOWER = 10 };
enum farm_kind { FARM_SIMULATE, FARM_TASKS, FARM_SLEEP };
static const char *const farm_names[] = {"farm", "tasks", "sleep"};

/* A task, or a worker's answer; index -1: none follows. */
struct item {
    long worker, number, index, value;
};

static void farm_task(const struct port *p, enum farm_kind kind)
{
    long us = p->rank == 1 ? SLEEP_US * SLEEP_SLOWER : SLEEP_US;

    if (kind == FARM_TASKS)
        work_for(task_time);
    else
        nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
}

static void farm_work(struct port *p, enum farm_kind kind)
{
    struct item t;

    for (;;) {
        port_recv(p, &t, sizeof(t));
        t.worker = p->rank;
        if (t.index < 0 || kind != FARM_SIMULATE) {
            if (t.index >= 0)
                farm_task(p, kind);
            port_send(p, 0, &t, sizeof(t));
            if (t.index < 0)
                return;
            continue;
        }
        struct simulation s = simulation_start(t.number);
        for (t.index = 0; t.index < SAMPLES; t.index++) {
            t.value = simulation_sample(&s);
            port_send(p, 0, &t, sizeof(t));
        }
    }
}

static void farm_end(struct port *p)
{
    struct item end = {.index = -1};

    for (int i = 1; i < p->n; i++)
        port_send(p, i, &end, sizeof(end));
}

static void wrong(const char *what)
{
    fprintf(stderr, "farm: %s\n", what);
    exit(1);
}

static void farm_scatter(struct port *p)
{
    long next[SIMULATIONS] = {0}, n = 0;
    int ended = 0;
    struct item t = {0};

    for (long i = 0; i < SIMULATIONS; i++) {
        t.number = i;
        port_send(p, 1 + (int)(i % (p->n - 1)), &t, sizeof(t));
    }
    farm_end(p);
    while (ended < p->n - 1) {
        port_recv(p, &t, sizeof(t));
        if (t.index < 0)
            ended++;
        else if (t.number < 0 || t.number >= SIMULATIONS || t.index != next[t.number]++)
            wrong("samples out of order");
        else
            n++;
    }
    if (n != (long)SIMULATIONS * SAMPLES)
        wrong("samples are missing");
}

/* `at_once`: tasks that a worker has, at most. */
static void farm_demand(struct port *p, long tasks, int at_once)
{
    struct item t = {0};
    long given = 0;
    int ended = 0;

    for (int ahead = 0; ahead < at_once; ahead++)
        for (int i = 1; i < p->n; i++, given++)
            port_send(p, i, &t, sizeof(t));
    for (long done = 0; done < tasks; done++) {
        port_recv(p, &t, sizeof(t));
        if (given < tasks) {
            port_send(p, (int)t.worker, &t, sizeof(t));
            given++;
        }
    }
    farm_end(p);
    for (; ended < p->n - 1; ended++)
        port_recv(p, &t, sizeof(t));
}

/* Everybody is there and has been talked to. */
static void farm_meet(struct port *p)
{
    struct item t = {0};

    if (p->rank == 0) {
        for (int i = 1; i < p->n; i++)
            port_send(p, i, &t, sizeof(t));
        for (int i = 1; i < p->n; i++)
            port_recv(p, &t, sizeof(t));
        return;
    }
    port_recv(p, &t, sizeof(t));
    port_send(p, 0, &t, sizeof(t));
}

static void farm_table(struct port *p, enum farm_kind kind)
{
    (void)prctl(PR_SET_TIMERSLACK, 1ul); /* a sleep ends when it is over, and not 50 us later */
    farm_meet(p);
    if (p->rank != 0) {
        farm_work(p, kind);
        return;
    }
    double begin = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    if (kind == FARM_SIMULATE)
        farm_scatter(p);
    else if (kind == FARM_TASKS)
        farm_demand(p, TASKS, TASKS_AHEAD);
    else
        farm_demand(p, SLEEPS, 1);
    printf("%s %d %.6f\n", farm_names[kind], p->n - 1, seconds(CLOCK_MONOTONIC) - begin);
    printf("%s-cpu %d %.6f\n", farm_names[kind], p->n - 1, seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu);
}

#endif
