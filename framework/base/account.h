/* Account of the process' memory since strata_init: what was there before, what is Strata's, what libraries took. */
#ifndef ST_BASE_ACCOUNT_H
#define ST_BASE_ACCOUNT_H

#include <strata/sdk/account.h>
#include <strata/sdk/btl.h>
#include <strata/sdk/process_memory.h>

struct st_account {
    bool known;       /* the kernel has told what was there before */
    bool on;          /* mca_base_account_memory: brackets are measured */
    uint32_t reports; /* memory reports so far, this one included */
    struct {
        size_t private_bytes, images, stack;
    } before;                     /* when strata_init was called */
    int64_t holes;                /* free memory of malloc's that has pages, after strata_init */
    int64_t libraries;            /* bytes that brackets have added, outside images */
    struct st_account_most *most; /* high-water marks, last first */
};

/* strata_init begins. Looks at the process if program, command line or environment name mca_base_account_memory. Where
 * only a file does, which nobody has read yet, st_account_loaded looks, and plugins count as there before strata_init.
 */
void st_account_begin(struct st_account *a, const strata_config_t *config);
/* The plugins are there and the parameters known; on: go on measuring. What the loader has taken is the libraries'. */
void st_account_loaded(struct st_account *a, bool on);
/* strata_init is over. What libraries have given back until now counts as theirs: their brackets took whole pages. */
void st_account_ready(struct st_account *a);
/* The highest value so far of the lines of this name, which a component with several modules reports once for each;
 * those of this report until now are included. */
size_t st_account_most(struct st_account *a, const strata_mem_line_t *line);
void st_account_end(struct st_account *a);
/* The lines of component "process" of a memory report; `ours`: private bytes of all other lines. */
void st_account_report(const struct st_account *a, size_t ours, st_mem_line_fn line, void *arg);

#endif
