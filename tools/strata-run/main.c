/* strata-run: starts the ranks of a job on this machine, serves them PMIx, passes their output on, and ends the job
 * when one of them fails. One thread does all that; PMIx has its own. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "bind.h"
#include "guard.h"
#include "io.h"
#include "job.h"
#include "launch.h"
#include "libraries.h"
#include "options.h"
#include "report.h"
#include "reports.h"
#include "server.h"
#include "signals.h"
#include "tmpdir.h"
#include "validate.h"

/* How long the output of processes that the ranks left behind is waited for, once all ranks have ended. */
static const double linger_s = 0.5;

enum { OWN_FDS = 4 }; /* signals, aborts, failed execs, libpmix: polled before the streams */

struct run {
    struct run_options options;
    struct job job;
    struct signals signals;
    struct tmpdir dir;
    struct guard guard;
    struct binding binding;
    struct launch launch;
    struct io io;
    struct reports reports;
};

/* A socket and two pipes per rank, and two files with --output-filename. */
static int check_files(const struct run_options *options)
{
    int n = options->n;
    struct rlimit limit;
    rlim_t need = (rlim_t)n * (options->output_folder ? 5 : 3) + 64;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= need)
        return 0;
    if (limit.rlim_max < need) {
        report_error("-n %d needs %llu open files, but the limit is %llu (ulimit -n)", n, (unsigned long long)need,
                     (unsigned long long)limit.rlim_max);
        return -1;
    }
    limit.rlim_cur = limit.rlim_max;
    return setrlimit(RLIMIT_NOFILE, &limit);
}

/* One turn of the main loop; at most until `until` (0: as long as it takes). */
static void turn(struct run *run, struct pollfd *fds, double until)
{
    int timeout = job_tick(&run->job);
    double held = io_tick(&run->io), look = reports_tick(&run->reports, &run->io);
    if (held > 0 && (until <= 0 || held < until))
        until = held;
    if (look > 0 && (until <= 0 || look < until))
        until = look;
    if (until > 0) {
        int ms = (int)((until - run_now()) * 1e3) + 1;
        timeout = timeout < 0 || ms < timeout ? (ms > 0 ? ms : 0) : timeout;
    }
    fds[0] = (struct pollfd){run->signals.fd, POLLIN, 0};
    fds[1] = (struct pollfd){server_fd(), POLLIN, 0};
    fds[2] = (struct pollfd){run->launch.errors[0], POLLIN, 0};
    fds[3] = (struct pollfd){server_output_fd(), POLLIN, 0};
    int n = io_poll_prepare(&run->io, fds + OWN_FDS);
    if (poll(fds, (nfds_t)(n + OWN_FDS), timeout) < 0)
        return;
    if (fds[3].revents)
        server_output_pass();
    if (fds[1].revents) /* before the death that may follow */
        server_poll(&run->job);
    if (fds[2].revents)
        launch_poll(&run->launch, &run->job);
    io_poll_handle(&run->io, fds + OWN_FDS, n);
    if (io_failed(&run->io)) {
        job_fail(&run->job, RUN_FAILED);
        job_end(&run->job);
    }
    if (fds[0].revents) {
        server_poll(&run->job);
        launch_poll(&run->launch, &run->job);
        signals_poll(&run->signals, &run->job, &run->guard);
        if (run->signals.asked)
            reports_ask(&run->reports);
        run->signals.asked = false;
    }
}

/* Waits for the reader of our output, however slow, unless we are asked to end: no rank is left to decide. */
static void pass_rest(struct run *run, struct pollfd *fds)
{
    while (io_pending(&run->io) && run->signals.endings < 2 && !run->signals.late)
        turn(run, fds, run_now() + linger_s); /* it may write all before it polls */
    if (io_pending(&run->io))
        job_fail(&run->job, RUN_SIGNAL_BASE + run->job.forwarded);
}

static void wait_for_job(struct run *run)
{
    struct pollfd *fds = calloc((size_t)io_poll_room(&run->io) + OWN_FDS, sizeof(*fds));
    if (!fds) {
        job_fail(&run->job, RUN_FAILED);
        job_signal(&run->job, SIGKILL);
        return;
    }
    report_by(&run->io.sinks[1]);
    while (run->job.n_ended < run->job.n_started)
        turn(run, fds, 0);
    /* What the ranks wrote is in their pipes. A process that they left behind may still add to it, for a moment. */
    double until = run_now() + (run->job.ending ? 0 : linger_s);
    while (io_streams_open(&run->io) && run_now() < until)
        turn(run, fds, until);
    job_sweep(&run->job);
    until = run_now() + linger_s;
    while (io_streams_open(&run->io) && run_now() < until)
        turn(run, fds, until);
    io_close_streams(&run->io);
    reports_end(&run->reports, &run->io);
    run->job.end_at = run->job.kill_at = 0;
    pass_rest(run, fds);
    report_by(NULL);
    free(fds);
}

/* Everything from the server's start to the last rank's end. */
static void run_job(struct run *run, char *path)
{
    const char *reports = run->reports.ask ? run->reports.folder : NULL;
    run->signals.reports = reports != NULL;
    if (server_start(&run->job, run->dir.path) != 0 || launch_prepare(&run->job, path, reports, &run->launch) != 0) {
        job_fail(&run->job, RUN_FAILED);
    } else {
        if (launch_ranks(&run->launch, &run->job, &run->io, &run->binding, &run->guard) != 0) {
            job_fail(&run->job, RUN_FAILED);
            job_end(&run->job);
        }
        wait_for_job(run);
    }
    server_output_pass();
    launch_destroy(&run->launch);
}

/* Before anything is looked for: PROGRAM may be named relative to the folder. */
static int enter_folder(const struct run_options *options)
{
    if (!options->folder || chdir(options->folder) == 0)
        return 0;
    report_error("--wdir %s: %s", options->folder, strerror(errno));
    return RUN_USAGE;
}

static int prepare(struct run *run, char **path)
{
    int rc = enter_folder(&run->options);
    if (rc)
        return rc;
    rc = launch_find(run->options.program[0], path);
    if (rc)
        return rc;
    if (validate_parameters(&run->options) != 0 || check_files(&run->options) != 0)
        return RUN_USAGE;
    if (signals_create(&run->signals) != 0 || tmpdir_create(&run->dir) != 0)
        return RUN_FAILED;
    if (guard_create(&run->dir, &run->guard) != 0) {
        tmpdir_remove(&run->dir);
        return RUN_FAILED;
    }
    return 0;
}

/* One of the first three descriptors that the caller has closed would become one of our own, and output would go there.
 * Reading and writing still fail, since the file is open for the other of both. */
static void hold_standard_files(void)
{
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
}

int main(int argc, char **argv)
{
    static struct run run; /* large, and all zero */
    char *path = NULL;
    hold_standard_files();
    run_options_parse(argc, argv, &run.options);
    int rc = prepare(&run, &path);
    if (rc) {
        free(path);
        run_options_free(&run.options);
        return rc;
    }
    if (job_create(&run.options, &run.job) != 0) {
        report_error("out of memory");
        rc = RUN_FAILED;
    } else if (io_create(&run.io, &run.job) != 0 || reports_create(&run.reports, &run.job, run.dir.path) != 0) {
        rc = RUN_FAILED;
    } else if (binding_create(&run.options, &run.binding) != 0) {
        rc = RUN_USAGE;
    } else {
        if (run.options.n > 1)
            libraries_warn(path);
        if (run.options.show_map)
            binding_show(&run.binding, &run.job);
        run_job(&run, path);
        rc = run.job.exit_status;
    }
    reports_destroy(&run.reports);
    tmpdir_remove(&run.dir);
    guard_dismiss(&run.guard);
    io_destroy(&run.io);
    binding_destroy(&run.binding);
    signals_destroy(&run.signals);
    run_options_free(&run.options);
    return rc;
}
