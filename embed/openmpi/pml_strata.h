/* Private to mca_pml_strata: its state, its request, and what its files offer to each other.
 *
 * A communicator's c_pml_comm is the strata_comm_t itself. */
#ifndef PML_STRATA_H
#define PML_STRATA_H

#include "ompi_config.h"

#include "ompi/communicator/communicator.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/group/group.h"
#include "ompi/mca/pml/base/base.h"
#include "ompi/mca/pml/pml.h"
#include "compat.h"
#include "ompi/message/message.h"
#include "ompi/proc/proc.h"
#include "ompi/request/request.h"
#include "opal/class/opal_free_list.h"
#include "opal/datatype/opal_convertor.h"
#include "opal/util/output.h"

#include <stdatomic.h>
#include <strata/host.h>
#include <strata/sdk/info.h>

/* Open MPI loads one copy of a component and gives its functions no context, so there is one state per process. */
struct pml_strata {
    strata_t *context;     /* NULL until init */
    bool threaded;         /* MPI_THREAD_MULTIPLE */
    size_t request_offset; /* of Strata's part of a request */
    opal_free_list_t requests;
    bool requests_ready;
    uint32_t jobid; /* mine */
    uint32_t place; /* of my job in the launch */
    int *local_ranks;
    int n_local;
    char job_id[64];
    unsigned empty;  /* progress calls in a row that found nothing */
    uint64_t events; /* progress calls that found something; threads may lose some */
};
extern struct pml_strata pml_strata;
extern pml_strata_component_t mca_pml_strata_component;
extern mca_pml_base_module_t pml_strata_module;

enum pml_strata_kind { PML_STRATA_SEND = 1, PML_STRATA_RECV = 2 };

/* Ends of a request's life, in either order; whoever comes second gives the storage back. */
enum { PML_STRATA_DONE = 1, PML_STRATA_FREED = 2 };

/* Data with holes on its way through Open MPI's convertor. */
struct pml_strata_convert {
    opal_convertor_t convertor;
    uint8_t n_rest;                          /* bytes in `rest` */
    char rest[sizeof(long double _Complex)]; /* end of a basic element that was packed beyond what was asked for */
};

/* A request: Open MPI's head, what a persistent one must remember, then Strata's own at pml_strata.request_offset. */
struct pml_strata_request {
    ompi_request_t ompi;
    uint8_t kind;
    uint8_t mode;  /* strata_mode_t */
    bool converts; /* `convert` is in use */
    bool active;   /* Strata has it */
    _Atomic(uint8_t) life;
    int peer, tag;
    size_t count;
    void *buf;
    struct ompi_datatype_t *datatype; /* retained */
    void *bsend;                      /* block of the attached buffer, or NULL */
    struct pml_strata_convert convert;
};
OBJ_CLASS_DECLARATION(pml_strata_request_t);
typedef struct pml_strata_request pml_strata_request_t;

static inline void *pml_strata_storage(struct pml_strata_request *req)
{
    return (char *)req + pml_strata.request_offset;
}
static inline strata_comm_t *pml_strata_comm(struct ompi_communicator_t *comm)
{
    return (strata_comm_t *)(void *)comm->c_pml_comm;
}

/* jobs.c: the jobs of one launch, by mpirun, srun or strata-run */
uint32_t pml_strata_job_place(uint32_t jobid); /* 1 for the first; 0: not of this launch */
uint32_t pml_strata_job_at(uint32_t place);    /* its jobid, or OPAL_JOBID_INVALID */
/* A text that the jobs of a launch have in common, and others on this machine do not. */
void pml_strata_job_family(char *text, size_t size);

/* ranks.c: job ranks are numbers that every process of one launch, spawned jobs included, computes alike. */
int pml_strata_rank_of(const opal_process_name_t *name); /* -1: not of this launch */
opal_process_name_t pml_strata_name_of(int rank);

/* host.c */
int pml_strata_host_init(strata_host_t *host);
void pml_strata_host_fini(void);

/* memory.c */
int pml_strata_memory_watch(void *user); /* strata_host_t's */
void pml_strata_memory_stop(void);       /* after strata_finalize: Open MPI must not call what it may unload */

/* alloc_mem.c: MPI_Alloc_mem by strata_mem_alloc, from the making of the context until before its end. */
void pml_strata_alloc_mem_start(void);
void pml_strata_alloc_mem_stop(void);

/* trouble.c */
/* Ends the job with one message that names this rank and the reason. */
void pml_strata_give_up(const char *why) __attribute__((noreturn));
/* Open MPI 5.0: MPIX_Comm_revoke would return success whatever this returns, and others would wait for ever: it ends
 * the job. coll_only: Open MPI revokes collectives by itself after a process has failed. */
int pml_strata_revoke_comm(struct ompi_communicator_t *comm, bool coll_only);
/* Before an error line: waits a moment unless this process is the first of its job. */
void pml_strata_give_way(void);
int pml_strata_publish_version(void);
/* Does the first process of the job of `name`, which uses this pml, have this version of it? False: why not. */
bool pml_strata_same_version(const opal_process_name_t *name, char *why, size_t size);

/* comm.c */
int pml_strata_add_comm(struct ompi_communicator_t *comm);
int pml_strata_del_comm(struct ompi_communicator_t *comm);

/* request.c */
int pml_strata_requests_init(void);
void pml_strata_requests_fini(void);
struct pml_strata_request *pml_strata_request_get(enum pml_strata_kind kind, struct ompi_communicator_t *comm,
                                                  void *buf, size_t count, struct ompi_datatype_t *datatype, int peer,
                                                  int tag);
void pml_strata_request_put(struct pml_strata_request *req);
/* Strata's completion callback; arg is the request. */
void pml_strata_complete(void *arg, strata_request_t *sreq, const strata_status_t *status);
/* Gives up a request that Strata refused. */
void pml_strata_request_drop(struct pml_strata_request *req);

/* send.c, recv.c, probe.c, persistent.c: as struct mca_pml_base_module_1_0_1_t says */
int pml_strata_send(const void *buf, size_t count, struct ompi_datatype_t *datatype, int dst, int tag,
                    mca_pml_base_send_mode_t mode, struct ompi_communicator_t *comm);
int pml_strata_isend(const void *buf, size_t count, struct ompi_datatype_t *datatype, int dst, int tag,
                     mca_pml_base_send_mode_t mode, struct ompi_communicator_t *comm, struct ompi_request_t **request);
int pml_strata_isend_init(const void *buf, size_t count, struct ompi_datatype_t *datatype, int dst, int tag,
                          mca_pml_base_send_mode_t mode, struct ompi_communicator_t *comm,
                          struct ompi_request_t **request);
int pml_strata_send_start(struct pml_strata_request *req);
int pml_strata_recv(void *buf, size_t count, struct ompi_datatype_t *datatype, int src, int tag,
                    struct ompi_communicator_t *comm, ompi_status_public_t *status);
int pml_strata_irecv(void *buf, size_t count, struct ompi_datatype_t *datatype, int src, int tag,
                     struct ompi_communicator_t *comm, struct ompi_request_t **request);
int pml_strata_irecv_init(void *buf, size_t count, struct ompi_datatype_t *datatype, int src, int tag,
                          struct ompi_communicator_t *comm, struct ompi_request_t **request);
int pml_strata_recv_start(struct pml_strata_request *req);
int pml_strata_imrecv(void *buf, size_t count, struct ompi_datatype_t *datatype, struct ompi_message_t **message,
                      struct ompi_request_t **request);
int pml_strata_mrecv(void *buf, size_t count, struct ompi_datatype_t *datatype, struct ompi_message_t **message,
                     ompi_status_public_t *status);
int pml_strata_iprobe(int src, int tag, struct ompi_communicator_t *comm, int *matched, ompi_status_public_t *status);
int pml_strata_probe(int src, int tag, struct ompi_communicator_t *comm, ompi_status_public_t *status);
int pml_strata_improbe(int src, int tag, struct ompi_communicator_t *comm, int *matched,
                       struct ompi_message_t **message, ompi_status_public_t *status);
int pml_strata_mprobe(int src, int tag, struct ompi_communicator_t *comm, struct ompi_message_t **message,
                      ompi_status_public_t *status);
int pml_strata_start(size_t count, ompi_request_t **requests);

/* vars.c */
int pml_strata_vars_register(void);
/* Settings that the user gave under Open MPI's names: *n of them, valid until the component is closed. */
const strata_setting_t *pml_strata_vars_settings(size_t *n);
bool pml_strata_vars_known(const char *name);
const char *pml_strata_vars_nearest(const char *name); /* NULL: none is like it */
void pml_strata_vars_fini(void);

/* spelling.c */
/* The first pml_strata_* of the environment or of Open MPI's files that names no parameter: into `text` why; false when
 * there is none. */
bool pml_strata_misspelt(char *text, size_t size);

/* pvars.c */
void pml_strata_pvars_register(void);
void pml_strata_pvars_add(void *arg, const struct st_info_counter *c);

/* status.c */
int pml_strata_error(int rc); /* an MPI error class's code for a Strata status */
void pml_strata_status(ompi_status_public_t *to, const strata_status_t *from);

#endif
