/* A stack of fake components (rte, two btls, bml, pml) that is linked into a test of the core and records what is asked
 * of it. The PML delivers nothing: requests complete when the test, or its progress op, says so.
 *
 * A test program puts FAKE_STACK_TABLE once at file scope; it takes the place of the build's table of linked-in
 * components, so that no real component is needed. */
#ifndef TEST_SUPPORT_FAKE_STACK_H
#define TEST_SUPPORT_FAKE_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <strata/host.h>
#include <strata/sdk/pml.h>

extern const struct st_component fake_rte, fake_rte_low, fake_btl_a, fake_btl_b, fake_rcache, fake_bml, fake_pml;

#define FAKE_STACK_TABLE                                                                                               \
    extern const struct st_component *const st_component_table[];                                                      \
    const struct st_component *const st_component_table[] = {&fake_rte,   &fake_rte_low, &fake_rcache, &fake_btl_a,    \
                                                             &fake_btl_b, &fake_bml,     &fake_pml,    NULL}

enum fake_stage {
    FAKE_NONE,
    FAKE_RTE,
    FAKE_RTE_LOW,
    FAKE_BTL_A,
    FAKE_BTL_B,
    FAKE_COMMIT,
    FAKE_BML,
    FAKE_PML,
    FAKE_COMM
};

struct fake_stack {
    /* what the fakes do; set before strata_init */
    int rank, size;
    unsigned fail;                /* bit (1 << stage): that stage fails */
    bool fence_blocking;          /* no fence_begin */
    bool isend_at_once;           /* isend completes with the static request */
    int fence_polls;              /* progress calls that the fence wants to see before it ends */
    struct st_btl_ops *break_btl; /* NULL, or btl_a opens with these ops */
    int n_paths;                  /* of each peer: 2: by both modules, else 1 */
    int send_rc[2];               /* by module: what its send returns */
    /* what has been asked of them */
    char trace[512]; /* words: "rte+", "btl_a+", "commit", ..., "pml-" in order */
    int open;        /* things open now */
    int progressed, freed, cancelled, started;
    struct st_pml_send last_send;
    struct st_pml_recv last_recv;
    char last_op[16];
    strata_status_t next_status; /* of the request that completes next */
    strata_request_t *pending[16];
    int n_pending;
    bool message_waits; /* iprobe finds one */
    bool message_comes; /* the next progress brings one */
    int taken;          /* messages that improbe handed out */
    int failed_rank;    /* last told to the PML */
    struct st_pml *pml;
    struct st_btl *btl[2];
    struct fake_sent {
        enum st_am am;
        int module; /* index in btl */
        uint32_t hdr_len, len;
        char hdr[ST_BTL_HDR_MAX], data[64]; /* the first bytes */
    } last_sent;
    void (*watch)(void *arg, int rank, const char *reason);
    void *watch_arg;
};

extern struct fake_stack fake; /* a test's own process: one stack at a time */
/* Every fence that was begun has been answered. */
bool fake_fences_over(void);

void fake_reset(int rank, int size);
/* strata_init over the fakes with `settings` ("name=value name=value") on top. */
int fake_init(const char *settings, strata_t **out, char *err, size_t err_size);
int fake_init_config(strata_config_t *config, const char *settings, strata_t **out);
/* For a test's setup and teardown: rank 1 of 4; everything that was opened must be closed. */
strata_t *fake_start(void);
void fake_end(strata_t *s);
/* Completes pending request i with fake.next_status. */
void fake_complete(int i);

/* Among the fakes: a word for the trace; something opens (or fails, if told to) and closes. */
void fake_note(const char *word);
int fake_opens(strata_t *s, const struct st_component *c, enum fake_stage stage);
void fake_closes(const char *word);

#endif
