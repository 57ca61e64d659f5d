/* The run queue of this process's processor, as its own waits see it: does another thread run when this one yields, and
 * what do a yield and a sleep cost?
 *
 * sched_yield(2) does not tell whether another thread ran. The kernel counts it (getrusage(2), RUSAGE_THREAD,
 * ru_nivcsw), but asking costs two more system calls. So one yield in 256 is asked about, which teaches how long yields
 * of either kind take here; the others are told apart by their time. While yields let others run only one in 16 is
 * timed. Where the two kinds take equally long, each of those is asked about; where the kernel does not count, each
 * yield is taken for one that let another run.
 *
 * Used only where more ranks than processors share the machine and mca_base_spin is not set. All functions may be
 * called by several threads at once: the fields are estimates, and a lost update does no harm. */
#ifndef ST_BASE_RUN_QUEUE_H
#define ST_BASE_RUN_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include <strata/sdk/atomic.h>

/* What is asked of the system; tests put their own in its place. All of the calling thread. */
struct st_run_queue_system {
    uint64_t (*now_ns)(void);
    void (*yield)(void);
    uint64_t (*switches)(void); /* times that another thread ran while this one could have; 0: not counted */
    uint64_t (*used_ns)(void);  /* processor time, its system calls included */
};

struct st_run_queue {
    const struct st_run_queue_system *system;
    ST_ATOMIC(uint64_t) last_ns;   /* end of the last yield */
    ST_ATOMIC(uint32_t) alone_ns;  /* a yield while nobody else wanted the processor takes about this; 0: not known */
    ST_ATOMIC(uint32_t) shared_ns; /* the same for one that let another thread run */
    ST_ATOMIC(uint32_t) turn_ns;   /* processor time of one that let another thread run; 0: not known */
    ST_ATOMIC(uint32_t) sleep_ns;  /* processor time of a sleep; 0: not known */
    ST_ATOMIC(uint32_t) stretch;   /* st_run_queue_stretch */
    ST_ATOMIC(uint32_t) untimed;   /* yields to come that are taken for turns */
    ST_ATOMIC(uint32_t) skipped;   /* polls since the last yield of st_run_queue_pause */
    ST_ATOMIC(uint32_t) n_yields, n_waits;
};

/* The system's own functions. */
extern const struct st_run_queue_system st_run_queue_linux;

void st_run_queue_init(struct st_run_queue *q, const struct st_run_queue_system *system);

/* Yields. True: another thread has run, or has done so at one of the last 15 yields. */
bool st_run_queue_yield(struct st_run_queue *q);

/* Polls from one yield to the next, at least 1. It is 1 while yields let others run. While they do not, it doubles
 * until yields take a sixteenth of the time: so a wait polls nearly as often as if it never yielded, and gives way
 * after sixteen times the cost of a yield once somebody comes. */
uint32_t st_run_queue_stretch(const struct st_run_queue *q);

/* After a poll in vain, the `polls`th in a row, 1 or more, of a loop that is not the worker's: spins or yields as a
 * wait of the worker would, and never says that it is time to sleep. */
void st_run_queue_pause(struct st_run_queue *q, uint32_t polls);

/* Whether the sleep of a wait that begins now is measured: one in 16. */
bool st_run_queue_samples(struct st_run_queue *q);
/* Adds what was measured: processor time of a sleep, in ns. 0 is no measurement. */
void st_run_queue_sleep_cost(struct st_run_queue *q, uint64_t ns);

/* Turns in vain (yields that let another run, after which nothing had come) before a sleep is cheaper: they have cost
 * the processor as much as the sleep and its wake-up will, which is at most twice of what the best choice costs
 * (Karlin, Li, Manasse, Owicki: Empirical studies of competitive spinning for a shared-memory multiprocessor, SOSP
 * 1991). The waker is taken to spend as much as the sleeper. `otherwise` until both costs are known. */
uint32_t st_run_queue_turns(const struct st_run_queue *q, uint32_t otherwise);

#endif
