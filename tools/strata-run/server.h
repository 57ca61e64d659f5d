/* The PMIx server that the ranks talk to. Its callbacks run on PMIx's thread; what the main thread must act on comes
 * through a pipe. */
#ifndef RUN_SERVER_H
#define RUN_SERVER_H

#include "job.h"

/* Starts the server with its files below `dir`, describes the job to it and admits all ranks. -1 and a message on
 * failure. One server per process: the callbacks find the job through the server objects of its ranks. It serves until
 * strata-run exits, so that the job must live as long: PMIx_server_finalize of libpmix 4.2 may lock up when clients
 * have died, and all that it would clean up is memory and files that go away with us. */
int server_start(struct job *job, const char *dir);
/* Environment that lets a rank find the server: NULL-terminated "NAME=VALUE"s in *env, free with server_env_free. */
int server_env(const struct job *job, char ***env);
void server_env_free(char **env);

/* Readable when a rank has asked for the end of the job; server_poll then calls job_aborted. */
int server_fd(void);
int server_output_fd(void);    /* readable when libpmix has printed something; -1: it does so by itself */
void server_output_pass(void); /* prints that, but for what is no news */
void server_poll(struct job *job);

/* Tells the other ranks that this one is dead. */
void server_tell_failed(const struct job *job, int rank);

#endif
