/* The PMIx server: libpmix does the protocol, here is what it asks of its host. All ranks are on this machine, so the
 * library resolves look-ups by itself; fences complete as soon as it has seen every rank. */
#define _GNU_SOURCE
#include "server.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <pmix.h>
#include <pmix_server.h>
#include "filter.h"
#include "jobinfo.h"
#include "report.h"

/* PMIx's server is process-wide and its callbacks carry no pointer of ours: hence the one static object. */
static struct {
    int events[2]; /* pipe of struct abort_event */
    int output[2]; /* pipe of what libpmix prints */
    struct job *job;
    _Atomic(bool) look; /* an event that asks to look is in the pipe */
} server = {{-1, -1}, {-1, -1}, NULL, false};

struct abort_event {  /* smaller than PIPE_BUF: written and read whole */
    int rank, status; /* rank < 0: look at all ranks again */
    char reason[512];
};

/* Wakes the main thread, by one event at a time: ranks that end together leave room in the pipe for one that aborts. */
static void look_again(void)
{
    const struct abort_event e = {.rank = -1};
    if (!atomic_exchange(&server.look, true) && write(server.events[1], &e, sizeof(e)) != (ssize_t)sizeof(e))
        server.look = false; /* full of aborts, which wake it as well */
}

/* ---- callbacks, on PMIx's thread ---- */

static pmix_status_t on_connected(const pmix_proc_t *proc, void *object, pmix_info_t info[], size_t n_info,
                                  pmix_op_cbfunc_t done, void *arg)
{
    (void)proc, (void)info, (void)n_info, (void)done, (void)arg;
    struct rank *r = object;
    if (r) {
        r->joined = true;
        r->finalized = false; /* it may leave and join again */
    }
    return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t on_finalized(const pmix_proc_t *proc, void *object, pmix_op_cbfunc_t done, void *arg)
{
    (void)proc;
    struct rank *r = object;
    if (r) {
        r->finalized = true;
        look_again();
    }
    if (done)
        done(PMIX_SUCCESS, arg);
    return PMIX_SUCCESS;
}

static pmix_status_t on_abort(const pmix_proc_t *proc, void *object, int status, const char text[], pmix_proc_t procs[],
                              size_t n_procs, pmix_op_cbfunc_t done, void *arg)
{
    (void)object, (void)procs, (void)n_procs;
    struct abort_event e = {.rank = (int)proc->rank, .status = status};
    snprintf(e.reason, sizeof(e.reason), "%s", text ? text : "");
    if (write(server.events[1], &e, sizeof(e)) != (ssize_t)sizeof(e) && errno != EAGAIN)
        return PMIX_ERROR;
    if (done)
        done(PMIX_SUCCESS, arg);
    return PMIX_SUCCESS;
}

static pmix_status_t on_fence(const pmix_proc_t procs[], size_t n_procs, const pmix_info_t info[], size_t n_info,
                              char *data, size_t n_data, pmix_modex_cbfunc_t done, void *arg)
{
    (void)procs, (void)n_procs, (void)info, (void)n_info;
    if (done)
        done(PMIX_SUCCESS, data, n_data, arg, free, data);
    return PMIX_SUCCESS;
}

/* Every rank is a local client, which the library serves itself; who asks for another asks in vain. */
static pmix_status_t on_modex(const pmix_proc_t *proc, const pmix_info_t info[], size_t n_info,
                              pmix_modex_cbfunc_t done, void *arg)
{
    (void)proc, (void)info, (void)n_info, (void)done, (void)arg;
    return PMIX_ERR_NOT_FOUND;
}

static pmix_status_t on_connect(const pmix_proc_t procs[], size_t n_procs, const pmix_info_t info[], size_t n_info,
                                pmix_op_cbfunc_t done, void *arg)
{
    (void)procs, (void)n_procs, (void)info, (void)n_info;
    if (done)
        done(PMIX_SUCCESS, arg);
    return PMIX_SUCCESS;
}

static pmix_status_t on_register_events(pmix_status_t *codes, size_t n_codes, const pmix_info_t info[], size_t n_info,
                                        pmix_op_cbfunc_t done, void *arg)
{
    (void)codes, (void)n_codes, (void)info, (void)n_info, (void)done, (void)arg;
    return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t on_deregister_events(pmix_status_t *codes, size_t n_codes, pmix_op_cbfunc_t done, void *arg)
{
    (void)codes, (void)n_codes, (void)done, (void)arg;
    return PMIX_OPERATION_SUCCEEDED;
}

/* The library has told our own clients; there is nobody else. */
static pmix_status_t on_notify(pmix_status_t code, const pmix_proc_t *source, pmix_data_range_t range,
                               pmix_info_t info[], size_t n_info, pmix_op_cbfunc_t done, void *arg)
{
    (void)code, (void)source, (void)range, (void)info, (void)n_info, (void)done, (void)arg;
    return PMIX_OPERATION_SUCCEEDED;
}

static pmix_server_module_t callbacks = {
    .client_connected2 = on_connected,
    .client_finalized = on_finalized,
    .abort = on_abort,
    .fence_nb = on_fence,
    .direct_modex = on_modex,
    .connect = on_connect,
    .disconnect = on_connect,
    .register_events = on_register_events,
    .deregister_events = on_deregister_events,
    .notify_event = on_notify,
};

/* The connection of a rank has ended, with or without PMIx_Finalize. */
static void on_lost(size_t handler, pmix_status_t code, const pmix_proc_t *source, pmix_info_t info[], size_t n_info,
                    pmix_info_t results[], size_t n_results, pmix_event_notification_cbfunc_fn_t done, void *arg)
{
    (void)handler, (void)code, (void)info, (void)n_info, (void)results, (void)n_results;
    if (PMIX_CHECK_NSPACE(source->nspace, server.job->nspace) && source->rank < (pmix_rank_t)server.job->options->n) {
        server.job->ranks[source->rank].lost = true;
        look_again();
    }
    if (done)
        done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, arg);
}

/* ---- waiting for PMIx's thread ---- */

struct pending {
    pthread_mutex_t lock;
    pthread_cond_t cond;
    int left;
    pmix_status_t rc;
};

static void op_done(pmix_status_t rc, void *arg)
{
    struct pending *p = arg;
    pthread_mutex_lock(&p->lock);
    if (rc != PMIX_SUCCESS && rc != PMIX_OPERATION_SUCCEEDED)
        p->rc = rc;
    p->left--;
    pthread_cond_signal(&p->cond);
    pthread_mutex_unlock(&p->lock);
}

static pmix_status_t wait_all(struct pending *p)
{
    pthread_mutex_lock(&p->lock);
    while (p->left > 0)
        pthread_cond_wait(&p->cond, &p->lock);
    pmix_status_t rc = p->rc;
    pthread_mutex_unlock(&p->lock);
    return rc;
}

/* An operation that did not start, or was done on the spot, calls nobody back. */
static void started(struct pending *p, pmix_status_t rc)
{
    if (rc != PMIX_SUCCESS)
        op_done(rc, p);
}

static pmix_status_t admit(struct job *job)
{
    struct pending p = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 1 + job->options->n, PMIX_SUCCESS};
    struct jobinfo info;
    if (jobinfo_create(job, &info) != 0)
        return PMIX_ERR_NOMEM;
    started(&p, PMIx_server_register_nspace(job->nspace, job->options->n, info.items, info.n, op_done, &p));
    for (int i = 0; i < job->options->n; i++) {
        pmix_proc_t proc;
        PMIX_LOAD_PROCID(&proc, job->nspace, (pmix_rank_t)i);
        started(&p, PMIx_server_register_client(&proc, getuid(), getgid(), &job->ranks[i], op_done, &p));
    }
    pmix_status_t rc = wait_all(&p);
    jobinfo_destroy(&info);
    return rc;
}

/* By default libpmix hands the job's description over in files that it maps, which saves each rank memory. Without room
 * for them, or where files may not become so long, it is told to send messages instead: the setting reaches the ranks
 * through the environment. */
static void choose_store(const char *dir)
{
    const uint64_t need = (uint64_t)64 << 20;
    struct statvfs fs;
    struct rlimit length;
    if ((statvfs(dir, &fs) == 0 && (uint64_t)fs.f_bavail * fs.f_frsize < need) ||
        (getrlimit(RLIMIT_FSIZE, &length) == 0 && length.rlim_cur < need))
        (void)setenv("PMIX_MCA_gds", "hash", 0);
}

/* libpmix lets hwloc look at everything, which includes asking ten X displays at "localhost" for graphics cards:
 * seconds where that name does not resolve. Of a lost connection it tells a second later, to gather others. Who set a
 * variable meant it, and the ranks do not inherit ours. */
static pmix_status_t init_server(pmix_info_t info[], size_t n)
{
    static const char *const settings[][2] = {{"HWLOC_COMPONENTS", "-gl,-opencl,-cuda,-nvml,-rsmi,-levelzero"},
                                              {"PMIX_MCA_pmix_event_caching_window", "0"}};
    bool ours[2];
    if (filter_begin(server.output) != 0)
        report_error("libpmix's messages go to standard error unseen: %s", strerror(errno));
    for (int i = 0; i < 2; i++)
        ours[i] = !getenv(settings[i][0]) && setenv(settings[i][0], settings[i][1], 0) == 0;
    pmix_status_t rc = PMIx_server_init(&callbacks, info, n);
    filter_started();
    for (int i = 0; i < 2; i++)
        if (ours[i])
            (void)unsetenv(settings[i][0]);
    return rc;
}

int server_start(struct job *job, const char *dir)
{
    choose_store(dir);
    if (pipe2(server.events, O_CLOEXEC | O_NONBLOCK) != 0) {
        report_error("cannot make a pipe: %s", strerror(errno));
        return -1;
    }
    pmix_info_t info[3];
    PMIX_INFO_LOAD(&info[0], PMIX_SERVER_TMPDIR, dir, PMIX_STRING);
    PMIX_INFO_LOAD(&info[1], PMIX_SYSTEM_TMPDIR, dir, PMIX_STRING);
    PMIX_INFO_LOAD(&info[2], PMIX_HOSTNAME, job->host, PMIX_STRING);
    pmix_status_t rc = init_server(info, 3);
    for (int i = 0; i < 3; i++)
        PMIX_INFO_DESTRUCT(&info[i]);
    if (rc != PMIX_SUCCESS) {
        report_error("cannot start the PMIx server: %s", PMIx_Error_string(rc));
        return -1;
    }
    server.job = job;
    pmix_status_t lost = PMIX_ERR_LOST_CONNECTION;
    (void)PMIx_Register_event_handler(&lost, 1, NULL, 0, on_lost, NULL, NULL);
    rc = admit(job);
    if (rc != PMIX_SUCCESS) {
        report_error("cannot describe the job to the PMIx server: %s", PMIx_Error_string(rc));
        return -1;
    }
    return 0;
}

int server_env(const struct job *job, char ***env)
{
    pmix_proc_t proc;
    PMIX_LOAD_PROCID(&proc, job->nspace, 0);
    *env = NULL;
    pmix_status_t rc = PMIx_server_setup_fork(&proc, env);
    if (rc != PMIX_SUCCESS) {
        report_error("cannot prepare the ranks' environment: %s", PMIx_Error_string(rc));
        return -1;
    }
    return 0;
}

void server_env_free(char **env)
{
    for (char **e = env; e && *e; e++)
        free(*e);
    free(env);
}

int server_fd(void)
{
    return server.events[0];
}

int server_output_fd(void)
{
    return server.output[0];
}

void server_output_pass(void)
{
    if (server.output[0] >= 0)
        filter_pass(server.output[0], report_text);
}

void server_poll(struct job *job)
{
    struct abort_event e;
    while (read(server.events[0], &e, sizeof(e)) == (ssize_t)sizeof(e)) {
        if (e.rank < 0)
            server.look = false; /* before ranks are looked at */
        else if (e.rank < job->options->n)
            job_aborted(job, e.rank, e.status, e.reason);
    }
}

void server_tell_failed(const struct job *job, int rank)
{
    pmix_proc_t who;
    pmix_info_t info[2];
    char cause[128];
    report_cause(&job->ranks[rank], cause, sizeof(cause));
    PMIX_LOAD_PROCID(&who, job->nspace, (pmix_rank_t)rank);
    PMIX_INFO_LOAD(&info[0], PMIX_EVENT_AFFECTED_PROC, &who, PMIX_PROC);
    PMIX_INFO_LOAD(&info[1], PMIX_EVENT_TEXT_MESSAGE, cause, PMIX_STRING);
    /* Without a callback PMIx is done with the arrays when it returns; this is not a path to be fast on. */
    (void)PMIx_Notify_event(PMIX_ERR_PROC_ABORTED, &who, PMIX_RANGE_NAMESPACE, info, 2, NULL, NULL);
    PMIX_INFO_DESTRUCT(&info[0]);
    PMIX_INFO_DESTRUCT(&info[1]);
}
