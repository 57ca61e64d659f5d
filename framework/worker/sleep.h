/* Private to the worker: one thread of a context sleeps in its transports; the others wait for that one. */
#ifndef ST_WORKER_SLEEP_H
#define ST_WORKER_SLEEP_H

#include <poll.h>
#include <pthread.h>
#include <strata/sdk/btl.h>
#include <strata/sdk/list.h>

struct worker;

/* A sleep in the transports. */
struct worker_sleep {
    _Atomic(bool) armed;        /* somebody sleeps, or is about to: st_worker_wake */
    pthread_mutex_t mutex;      /* guards the next two against st_worker_wake; the last lock that is taken */
    _Atomic(uint32_t) *word;    /* what is slept on; NULL: descriptors */
    int event_fd;               /* one of these, or -1: none was needed or could be had */
    uint32_t expect;            /* value of *word that means that nothing has happened */
    _Atomic(uint32_t) own_word; /* slept on where no transport has anything to wait for */
    struct pollfd *fds;         /* room for all modules and event_fd */
    nfds_t n_fds;               /* to wait for, without event_fd */
    uint32_t n_words, n_armed;  /* modules with a word; that are armed: the first of the polled ones */
    bool by_fd;                 /* several transports are waited for: from then on by descriptors */
    bool deaf;                  /* some module cannot wake this sleep, which is therefore short */
};

/* A thread that sleeps at STRATA_THREAD_MULTIPLE; on its stack. */
struct worker_sleeper {
    struct st_node node;
    bool (*done)(void *arg);
    void *arg;
    bool
        acts; /* `done` does something: nobody else may ask it, and it is asked again whenever something has happened */
    _Atomic(uint32_t) woken; /* it is to get up; the futex of a follower */
};

/* The threads that wait in a context. The leader sleeps in the transports, followers on words of their own. */
struct worker_crowd {
    pthread_mutex_t mutex; /* guards list and leader; taken before the context's lock */
    struct st_node asleep; /* struct worker_sleeper */
    struct worker_sleeper *leader;
    _Atomic(uint32_t) n_asleep, n_awake;
};

/* sleep.c */
int worker_sleep_create(struct worker *w);
void worker_sleep_destroy(struct worker *w);
/* Prepares; with the lock held. False: something is pending, and nothing is armed. */
bool worker_sleep_arm(struct worker *w);
/* Until a transport or st_worker_wake ends it, or the time is over; without the lock. */
void worker_sleep(struct worker *w, uint32_t us);
/* Ends the sleep, if there is one; any thread. */
void worker_sleep_wake(struct worker *w);
/* Ends what arm has prepared; with the lock held. */
void worker_sleep_disarm(struct worker *w);

/* crowd.c */
void worker_crowd_create(struct worker *w);
void worker_crowd_destroy(struct worker *w);
/* A thread begins to wait, and ends it: one that was last awake leaves a leader behind. */
void worker_crowd_enter(struct worker *w);
void worker_crowd_leave(struct worker *w);
/* Sleeps as leader or follower. */
void worker_crowd_sleep(struct worker *w, struct worker_sleeper *self, uint32_t us);
/* Something has happened: wakes those whose wait it ends. Outside every lock. */
void worker_crowd_tell(struct worker *w);

#endif
