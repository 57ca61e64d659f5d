/* Which components the user's lists admit: "a,b" only these, "^a,b" all but these, "" all. */
#include "framework/mca/internal.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static int selection_add_name(struct st_selection *sel, const char *start, size_t n)
{
    char **names = realloc(sel->names, (sel->n + 1) * sizeof(*names));
    if (!names)
        return STRATA_ERR_NOMEM;
    sel->names = names;
    sel->names[sel->n] = strndup(start, n);
    if (!sel->names[sel->n])
        return STRATA_ERR_NOMEM;
    sel->n++;
    return STRATA_OK;
}

int st_selection_parse(const char *text, struct st_selection *out, char *why, size_t why_size)
{
    struct st_selection sel = {0};
    int rc = STRATA_OK;
    while (isspace((unsigned char)*text))
        text++;
    if (*text == '^') {
        sel.exclude = true;
        text++;
    }
    bool given = sel.exclude || *text;
    while (*text && !rc) {
        size_t n = strcspn(text, ",");
        const char *start = text, *end = text + n;
        text += n + (text[n] == ',');
        while (start < end && isspace((unsigned char)*start))
            start++;
        while (start < end && isspace((unsigned char)end[-1]))
            end--;
        if (start == end)
            continue;
        if (*start == '^')
            rc = st_mca_fail(
                STRATA_ERR_PARAM, why, why_size,
                "a list either names components (a,b) or excludes them (^a,b: one ^ at the very beginning)");
        else
            rc = selection_add_name(&sel, start, (size_t)(end - start));
    }
    if (!rc && given && !sel.n)
        rc = st_mca_fail(STRATA_ERR_PARAM, why, why_size, "the list names no component");
    if (rc == STRATA_ERR_NOMEM)
        st_mca_fail(rc, why, why_size, "out of memory");
    if (rc) {
        st_selection_free(&sel);
        return rc;
    }
    *out = sel;
    return STRATA_OK;
}

void st_selection_free(struct st_selection *sel)
{
    for (size_t i = 0; i < sel->n; i++)
        free(sel->names[i]);
    free(sel->names);
    *sel = (struct st_selection){0};
}

bool st_selection_admits(const struct st_selection *sel, const char *name, bool *by_name)
{
    bool listed = false;
    for (size_t i = 0; i < sel->n && !listed; i++)
        listed = !strcmp(sel->names[i], name);
    *by_name = listed && !sel->exclude;
    return sel->n == 0 || listed != sel->exclude;
}

bool st_settings_configure(const struct st_settings *settings, const char *framework, const char *name)
{
    size_t nf = strlen(framework), nn = strlen(name);
    for (size_t i = 0; i < settings->n; i++) {
        const char *s = settings->v[i].name;
        if (!strncmp(s, framework, nf) && s[nf] == '_' && !strncmp(s + nf + 1, name, nn) && s[nf + 1 + nn] == '_')
            return true;
    }
    return false;
}

bool st_selection_passes_over(const struct st_settings *settings, const char *framework, const char *name)
{
    const struct st_setting *list = st_settings_find(settings, framework);
    struct st_selection sel;
    bool by_name;
    if (!list || st_selection_parse(list->value, &sel, NULL, 0))
        return false;
    bool admitted = st_selection_admits(&sel, name, &by_name);
    st_selection_free(&sel);
    return !admitted && !st_settings_configure(settings, framework, name);
}

/* ---- applied to the components of a context --------------------------------------------------------------------- */

static const struct st_var *selection_list_of(const struct st_mca *mca, const char *framework)
{
    for (size_t i = 0; i < mca->n_vars; i++)
        if (!strcmp(mca->vars[i].name, framework))
            return &mca->vars[i];
    return NULL;
}

/* "; there are: self, sm": for a name that resembles none of them. */
static const char *selection_all_names(const struct st_mca *mca, const char *framework, char *buf, size_t size)
{
    size_t used = 0;
    buf[0] = '\0';
    for (size_t i = 0; i < mca->n_items && used < size; i++) {
        const struct st_plugin *p = mca->items[i].plugin;
        if (!strcmp(p->framework, framework))
            used += (size_t)snprintf(buf + used, size - used, "%s%s", used ? ", " : "; there are: ", p->name);
    }
    return used ? buf : "; none of that framework was found";
}

/* Every name in a list must exist; one that was asked for must also have loaded. */
static int selection_check_names(const struct st_mca *mca, const struct st_framework *f, char *err, size_t err_size)
{
    const struct st_var *var = selection_list_of(mca, f->name);
    const char *where = var ? var->where : "?";
    for (size_t i = 0; i < f->selection.n; i++) {
        const char *wanted = f->selection.names[i];
        const struct st_item *found = NULL;
        struct st_suggest sg = {.wanted = wanted};
        for (size_t j = 0; j < mca->n_items; j++) {
            const struct st_plugin *p = mca->items[j].plugin;
            if (strcmp(p->framework, f->name))
                continue;
            st_suggest_offer(&sg, p->name);
            if (!strcmp(p->name, wanted))
                found = &mca->items[j];
        }
        char hint[300];
        if (!found)
            return st_mca_fail(STRATA_ERR_PARAM, err, err_size, "%s = \"%s\" (%s): there is no %s component \"%s\"%s",
                               f->name, f->list, where, f->name, wanted,
                               sg.best ? st_suggest_text(&sg, hint, sizeof(hint))
                                       : selection_all_names(mca, f->name, hint, sizeof(hint)));
        if (!found->plugin->component && !f->selection.exclude)
            return st_mca_fail(STRATA_ERR_NOT_FOUND, err, err_size,
                               "%s = \"%s\" (%s): component \"%s\" cannot be used: %s: %s", f->name, f->list, where,
                               wanted, found->plugin->path, found->plugin->reason);
    }
    return STRATA_OK;
}

void st_selection_apply_to(struct st_item *item, const struct st_framework *f)
{
    item->admitted = st_selection_admits(&f->selection, item->plugin->name, &item->by_name);
    if (!item->plugin->component && !item->plugin->left_out)
        return;
    char reason[200];
    if (!item->admitted) {
        snprintf(reason, sizeof(reason), "%s = %.150s does not admit it", f->name, f->list);
        st_item_set(item, ST_INFO_EXCLUDED, reason);
    } else if (item->priority < 0 && !item->by_name) {
        item->admitted = false;
        st_item_set(item, ST_INFO_EXCLUDED, "its priority is negative: it is only used when named");
    }
}

int st_selection_apply(struct st_mca *mca, char *err, size_t err_size)
{
    for (size_t i = 0; i < mca->n_frameworks; i++) {
        struct st_framework *f = &mca->frameworks[i];
        char why[256];
        int rc = st_selection_parse(f->list, &f->selection, why, sizeof(why));
        if (rc) {
            const struct st_var *var = selection_list_of(mca, f->name);
            return st_mca_fail(rc, err, err_size, "%s = \"%s\" (%s): %s", f->name, f->list, var ? var->where : "?",
                               why);
        }
        rc = selection_check_names(mca, f, err, err_size);
        if (rc)
            return rc;
        for (size_t j = 0; j < mca->n_items; j++)
            if (!strcmp(mca->items[j].plugin->framework, f->name))
                st_selection_apply_to(&mca->items[j], f);
    }
    return STRATA_OK;
}
