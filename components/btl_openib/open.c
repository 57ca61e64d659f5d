/* Opens a module for each port that is to be used. */
#include <stdio.h>
#include <stdlib.h>
#include <strata/sdk/account.h>
#include <strata/sdk/component_body.h>
#include "device/distance.h"
#include "module.h"

struct opening {
    strata_t *s;
    const struct st_component *c;
    struct ib_device port[IB_MAX_RAILS]; /* verbs NULL: a module has it */
    size_t n_ports;
    struct ib_module *open[IB_MAX_RAILS];
    size_t n_open;
    char left_out[IB_MAX_RAILS][512]; /* why these ports were not opened */
    char why[512];
};

static int opening_port(struct opening *o, struct ib_device *port, char *reason, size_t size)
{
    struct ib_module *m = calloc(1, sizeof *m);
    int rc = STRATA_ERR_NOMEM;

    if (m) {
        m->dev = *port;
        rc = ib_module_open(m, o->s, o->c, reason, size);
    }
    if (rc == STRATA_OK) {
        o->open[o->n_open++] = m;
        port->verbs = NULL;
        return rc;
    }
    free(m);
    if (!*reason)
        snprintf(reason, size, "%s: %s", port->name, strata_strerror(rc));
    return rc;
}

/* A port that cannot be opened is left out while there are others, unless it was asked for by name, or the parameters
 * ask for what it does not have. */
static int opening_all(struct opening *o)
{
    int rc = STRATA_OK, first = STRATA_OK;

    for (size_t i = 0; i < o->n_ports && rc == STRATA_OK; i++) {
        char *reason = o->left_out[i];
        int one = opening_port(o, &o->port[i], reason, sizeof o->left_out[i]);
        if (one == STRATA_ERR_PARAM || (one != STRATA_OK && ib_port_named(&o->port[i])))
            rc = one;
        if (one != STRATA_OK && (rc != STRATA_OK || first == STRATA_OK))
            snprintf(o->why, sizeof o->why, "%s", reason);
        first = first == STRATA_OK ? one : first;
    }
    if (rc != STRATA_OK || o->n_open == 0)
        return rc != STRATA_OK ? rc : first;
    for (size_t i = 0; i < o->n_ports; i++)
        if (o->left_out[i][0])
            st_log(o->s, ST_LOG_WARN, "btl_openib", "%s (%s is left out)", o->left_out[i], o->port[i].name);
    return STRATA_OK;
}

/* When all are open: whoever reads a card counts on it. */
static int opening_publish(struct opening *o)
{
    uint64_t rails = 0;
    int rc = STRATA_OK;

    for (size_t i = 0; i < o->n_open; i++)
        rails |= (uint64_t)1 << o->open[i]->dev.place;
    for (size_t i = 0; i < o->n_open && rc == STRATA_OK; i++)
        rc = ib_module_publish(o->open[i], rails);
    return rc;
}

static int opening_modules(struct opening *o, const struct ib_params *par)
{
    struct st_account_mark mark;

    st_account_enter(o->s, ST_ACCOUNT_PAGES, &mark);
    int rc = ib_ports_open(par, o->port, &o->n_ports, o->why, sizeof o->why);
    st_account_leave(o->s, &mark);

    if (o->n_ports > 0) {
        int error = ib_fork_prepare(par->fork_support);
        if (error != 0)
            st_log(o->s, ST_LOG_INFO, "btl_openib", "fork() in this process makes transfers go wrong: %s",
                   ib_fork_why(error));
    }
    ib_distances(o->port, o->n_ports);
    if (rc != STRATA_OK || o->n_ports == 0)
        return rc != STRATA_OK ? rc : STRATA_ERR_UNSUPPORTED;
    if (o->why[0])
        st_log(o->s, ST_LOG_WARN, "btl_openib", "%s", o->why);
    o->why[0] = 0;
    rc = opening_all(o);
    return rc == STRATA_OK ? opening_publish(o) : rc;
}

static int open_modules(strata_t *s, const struct st_component *c, const void *config, struct st_btl ***mods, size_t *n)
{
    struct opening *o = calloc(1, sizeof *o);
    int rc = STRATA_ERR_NOMEM;

    *n = 0;
    *mods = calloc(IB_MAX_RAILS, sizeof **mods);
    if (o && *mods) {
        o->s = s;
        o->c = c;
        rc = opening_modules(o, config);
        if (rc != STRATA_OK && o->why[0])
            st_reject(s, c, "%s", o->why);
    }
    for (size_t i = 0; o && i < o->n_ports; i++)
        if (o->port[i].verbs)
            (void)ibv_close_device(o->port[i].verbs);
    for (size_t i = 0; o && i < o->n_open; i++)
        if (rc == STRATA_OK)
            (*mods)[(*n)++] = &o->open[i]->btl;
        else
            ib_close(&o->open[i]->btl);
    free(o);
    return rc;
}

ST_BODY(btl, openib, struct st_btl_component_ops) = {.open = open_modules};
