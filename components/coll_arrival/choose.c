/* The choice of a call's form. */
#include "choose.h"

unsigned arrival_skew_class(uint64_t ns)
{
    unsigned digits = 0;
    for (uint64_t us = ns / 1000; us > 0 && digits < SKEW_CLASSES - 1; us >>= 1)
        digits++;
    return digits;
}

bool arrival_is_aware(enum arrival_form form)
{
    return form != FORM_DIRECT && form != FORM_SHM_DIRECT && form != FORM_BRUCK && form != FORM_DOUBLING;
}

static bool choose_fits(const struct arrival_rule *r, const struct arrival_question *q, bool by_size)
{
    return r->kind == q->kind && q->ranks <= r->ranks && (!by_size || q->bytes <= r->bytes);
}

static bool choose_skew(uint64_t most_us, unsigned skew)
{
    return most_us == UINT64_MAX || skew <= arrival_skew_class(most_us * 1000);
}

/* The first rule that fits, or NULL. */
static const struct arrival_rule *choose_rule(const struct arrival_choice *c, const struct arrival_question *q,
                                              bool by_size)
{
    for (size_t i = 0; i < c->n_rules; i++) {
        const struct arrival_rule *r = &c->rules[i];
        if (choose_fits(r, q, by_size) && r->form != FORM_NEXT && q->nodes <= r->nodes &&
            choose_skew(r->skew_us, q->skew))
            return r;
    }
    return NULL;
}

bool arrival_choose_next(const struct arrival_choice *c, const struct arrival_question *q)
{
    for (size_t i = 0; c->form == FORM_AUTO && i < c->n_rules; i++)
        if (choose_fits(&c->rules[i], q, true))
            return c->rules[i].form == FORM_NEXT;
    return false;
}

enum arrival_form arrival_choose_rounds(const struct arrival_choice *c, const struct arrival_question *q)
{
    if (c->form != FORM_AUTO)
        return arrival_form_has_rounds(c->form) ? c->form : FORM_NEXT;
    for (size_t i = 0; i < c->n_rules; i++)
        if (choose_fits(&c->rules[i], q, true) && arrival_form_has_rounds(c->rules[i].form))
            return c->rules[i].form;
    return FORM_NEXT;
}

/* Longest block that goes by the leaders of nodes without a rule. */
static size_t choose_auto(const struct arrival_choice *c, strata_coll_kind_t kind)
{
    if (kind == STRATA_BCAST)
        return c->bcast_auto;
    return kind == STRATA_ALLGATHER || kind == STRATA_ALLGATHERV ? c->allgather_auto : c->shm_auto;
}

enum arrival_form arrival_choose(const struct arrival_choice *c, const struct arrival_question *q)
{
    if (c->form != FORM_AUTO)
        return c->form;
    const struct arrival_rule *r = choose_rule(c, q, true);
    if (r)
        return r->form;
    bool leaders = q->nodes < q->ranks && q->bytes <= choose_auto(c, q->kind) && choose_skew(c->skew_max, q->skew);
    return leaders ? FORM_PAP_SHM_DIRECT : FORM_PAP_DIRECT;
}

size_t arrival_choose_limit(const struct arrival_choice *c, const struct arrival_question *q, size_t agreed)
{
    bool differs = q->kind == STRATA_ALLTOALLV || q->kind == STRATA_ALLGATHERV;
    if (!differs || c->form != FORM_AUTO)
        return arrival_form_by_leaders(arrival_choose(c, q)) ? agreed : 0;
    const struct arrival_rule *r = choose_rule(c, q, false);
    size_t most = r ? (arrival_form_by_leaders(r->form) ? r->bytes : 0) : choose_auto(c, q->kind);
    if (!r && !arrival_form_by_leaders(arrival_choose(c, q)))
        return 0;
    return agreed < most ? agreed : most;
}
