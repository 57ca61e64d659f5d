/* See watchdog.h. Each thread prints its own stack from a signal handler: async-signal-safe enough for a process that
 * is about to end, and it needs no debugger. */
#include "support/watchdog.h"
#include "support/world.h"

#include <dirent.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct watchdog {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t stop;
    bool stopped;
    int seconds;
};

static _Thread_local int my_rank = -1;

static void print_stack(int sig)
{
    (void)sig;
    void *frames[48];
    char head[64];
    int n = backtrace(frames, 48);
    int len = snprintf(head, sizeof head, "---- rank %d, thread %d\n", my_rank, (int)syscall(SYS_gettid));
    if (write(2, head, (size_t)len) == len)
        backtrace_symbols_fd(frames, n, 2);
}

static void dump_all(void)
{
    DIR *d = opendir("/proc/self/task");
    struct dirent *e;
    pid_t me = (pid_t)syscall(SYS_gettid);
    while (d && (e = readdir(d))) {
        pid_t tid = (pid_t)atoi(e->d_name);
        if (tid <= 0 || tid == me)
            continue;
        syscall(SYS_tgkill, getpid(), tid, SIGUSR2);
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL); /* one stack at a time */
    }
    if (d)
        closedir(d);
}

static void (*on_failure)(const char *text);

void test_on_failure(void (*fn)(const char *text))
{
    on_failure = fn;
}

static void report(const char *text)
{
    if (on_failure)
        on_failure(text);
}

static void *watch(void *arg)
{
    struct watchdog *dog = arg;
    struct timespec end;
    char text[64];
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += dog->seconds;
    pthread_mutex_lock(&dog->lock);
    int rc = 0;
    while (!dog->stopped && rc == 0)
        rc = pthread_cond_timedwait(&dog->stop, &dog->lock, &end);
    bool expired = !dog->stopped;
    pthread_mutex_unlock(&dog->lock);
    if (expired) {
        fprintf(stderr, "watchdog: not done after %d s; stacks follow\n", dog->seconds);
        dump_all();
        snprintf(text, sizeof text, "not done after %d s", dog->seconds);
        report(text);
        _exit(1);
    }
    return NULL;
}

struct watchdog *watchdog_start(int seconds, int n_ranks)
{
    (void)n_ranks;
    void *warm[2];
    backtrace(warm, 2); /* loads what it needs outside the handler */
    struct sigaction sa = {.sa_handler = print_stack, .sa_flags = SA_RESTART};
    sigaction(SIGUSR2, &sa, NULL);
    struct watchdog *dog = calloc(1, sizeof *dog);
    CHECK(dog);
    dog->seconds = seconds;
    pthread_mutex_init(&dog->lock, NULL);
    pthread_cond_init(&dog->stop, NULL);
    CHECK_EQ(pthread_create(&dog->thread, NULL, watch, dog), 0);
    return dog;
}

void watchdog_stop(struct watchdog *dog)
{
    pthread_mutex_lock(&dog->lock);
    dog->stopped = true;
    pthread_cond_signal(&dog->stop);
    pthread_mutex_unlock(&dog->lock);
    pthread_join(dog->thread, NULL);
    pthread_mutex_destroy(&dog->lock);
    pthread_cond_destroy(&dog->stop);
    free(dog);
}

void watchdog_name_thread(int rank)
{
    my_rank = rank;
}

void test_fail(const char *file, int line, const char *format, ...)
{
    va_list ap;
    char text[1024], whole[1400];
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    fprintf(stderr, "%s:%d: rank %d: %s\n", file, line, my_rank, text);
    snprintf(whole, sizeof whole, "%s:%d: rank %d: %s", file, line, my_rank, text);
    report(whole);
    if (getenv("STRATA_TEST_ABORT"))
        abort(); /* for a debugger */
    _exit(1);
}

bool test_sanitized(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return true;
#elif defined(__has_feature)
    return __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
    return false;
#endif
}

int test_timeout(int seconds)
{
    enum { SAFETY_NET_S = 300 }; /* a busy machine may stop a process for a minute */
    const char *scale = getenv("STRATA_TEST_TIMEOUT_SCALE");
    int n = scale ? atoi(scale) : 1, limit = seconds * (n > 0 ? n : 1) * (test_sanitized() ? 5 : 1);
    return limit < SAFETY_NET_S ? SAFETY_NET_S : limit;
}
