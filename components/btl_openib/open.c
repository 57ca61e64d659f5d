/* Opens a module for each port that is to be used. */
#include <strata/sdk/account.h>
#include <strata/sdk/component_body.h>
#include "device/distance.h"
#include "device/fork.h"
#include "module.h"

#include <stdio.h>
#include <stdlib.h>

static void opening_prepare_forks(const strata_t *s, const struct ib_params *par)
{
    int rc = ib_fork_prepare(par->fork_support);

    if (rc != 0)
        st_log(s, ST_LOG_INFO, "btl_openib", "fork() in this process makes transfers go wrong: %s", ib_fork_why(rc));
}

struct opening {
    strata_t *s;
    const struct st_component *c;
    struct ib_device port[IB_MAX_RAILS];
    size_t n_ports;
    struct ib_module *open[IB_MAX_RAILS];
    size_t n_open;
    char left_out[IB_MAX_RAILS][512]; /* why these ports were not opened */
    char why[512];
};

static int opening_port(struct opening *o, const struct ib_device *port, char *reason, size_t size)
{
    struct ib_module *m = calloc(1, sizeof *m);
    int rc = STRATA_ERR_NOMEM;

    if (m) {
        m->dev = *port;
        rc = ib_module_open(m, o->s, o->c, reason, size);
    }
    if (rc == STRATA_OK) {
        o->open[o->n_open++] = m;
        return rc;
    }
    (void)ibv_close_device(port->verbs);
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

    for (size_t i = 0; i < o->n_ports; i++) {
        char *reason = o->left_out[i];
        int one;
        if (rc != STRATA_OK) {
            (void)ibv_close_device(o->port[i].verbs);
            continue;
        }
        one = opening_port(o, &o->port[i], reason, sizeof o->left_out[i]);
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

    if (o->n_ports > 0)
        opening_prepare_forks(o->s, par);
    ib_distances(o->port, o->n_ports);
    if (rc != STRATA_OK || o->n_ports == 0) {
        for (size_t i = 0; i < o->n_ports; i++)
            (void)ibv_close_device(o->port[i].verbs);
        return rc;
    }
    if (o->why[0])
        st_log(o->s, ST_LOG_WARN, "btl_openib", "%s", o->why);
    o->why[0] = 0;
    rc = opening_all(o);
    return rc == STRATA_OK ? opening_publish(o) : rc;
}

static int open_modules(strata_t *s, const struct st_component *c, const void *config, struct st_btl ***mods, size_t *n)
{
    struct opening *o = calloc(1, sizeof *o);
    struct st_btl **list = o ? calloc(IB_MAX_RAILS, sizeof *list) : NULL;
    int rc = STRATA_ERR_NOMEM;

    *n = 0;
    if (list) {
        o->s = s;
        o->c = c;
        rc = opening_modules(o, config);
    }
    if (rc != STRATA_OK || o->n_open == 0) {
        if (o && o->why[0])
            st_reject(s, c, "%s", o->why);
        for (size_t i = 0; o && i < o->n_open; i++)
            ib_close(&o->open[i]->btl);
        free(list);
        free(o);
        return rc != STRATA_OK ? rc : STRATA_ERR_UNSUPPORTED;
    }
    *n = o->n_open;
    for (size_t i = 0; i < *n; i++)
        list[i] = &o->open[i]->btl;
    *mods = list;
    free(o);
    return STRATA_OK;
}

ST_BODY(btl, openib, struct st_btl_component_ops) = {.open = open_modules};
