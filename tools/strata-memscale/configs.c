/* Configurations: presets, and those of the command line. */
#define _GNU_SOURCE 1
#include "memscale.h"

#include <stdio.h>
#include <string.h>

static const char *const presets[] = {
    "srq:softhca",
    "srq-short:softhca;btl_openib_receive_queues=S,8448,16,4,32:S,33024,16,1,6",
    "per-peer:softhca;btl_openib_receive_queues=P,8448,72,1,64:P,33024,7,1,6",
    "few-connections:softhca;btl_openib_max_connected_peers=8",
    "sm:sm",
    "tcp:tcp",
};
enum { N_PRESETS = sizeof presets / sizeof *presets };

void configs_print(void)
{
    for (size_t i = 0; i < N_PRESETS; i++)
        printf("  %s\n", presets[i]);
}

static bool known_transport(struct config *c, const char *name)
{
    static const char *const names[] = {"softhca", "sm", "tcp"};

    for (size_t i = 0; i < 3; i++)
        if (strcmp(name, names[i]) == 0)
            c->transport = names[i];
    return c->transport != NULL;
}

/* "PARAMETER=VALUE" */
static bool take_setting(struct config *c, const char *item, char *why, size_t why_size)
{
    const char *eq = strchr(item, '=');

    if (!eq || eq == item || (size_t)(eq - item) >= sizeof c->set->name || strlen(eq + 1) >= sizeof c->set->value) {
        snprintf(why, why_size, "configuration %s: \"%s\" is not PARAMETER=VALUE", c->name, item);
        return false;
    }
    if (c->n == MOST_SETTINGS) {
        snprintf(why, why_size, "configuration %s: more than %d parameters", c->name, MOST_SETTINGS);
        return false;
    }
    memcpy(c->set[c->n].name, item, (size_t)(eq - item));
    strcpy(c->set[c->n++].value, eq + 1);
    return true;
}

static bool config_parse(struct config *c, const char *text, char *why, size_t why_size)
{
    char copy[1024], *rest = copy;
    const char *colon = strchr(text, ':');

    if (!colon || colon == text || (size_t)(colon - text) >= sizeof c->name || strlen(text) >= sizeof copy) {
        snprintf(why, why_size, "configuration \"%s\": neither a preset nor NAME:TRANSPORT[;PARAMETER=VALUE]...", text);
        return false;
    }
    memcpy(c->name, text, (size_t)(colon - text));
    strcpy(copy, colon + 1);
    const char *transport = strsep(&rest, ";");
    if (!known_transport(c, transport)) {
        snprintf(why, why_size, "configuration %s: no transport \"%s\"; there are softhca, sm, tcp", c->name,
                 transport);
        return false;
    }
    for (const char *item; (item = strsep(&rest, ";")) != NULL;)
        if (!take_setting(c, item, why, why_size))
            return false;
    return true;
}

bool config_add(struct plan *p, const char *text, char *why, size_t why_size)
{
    struct config c = {.transport = NULL};

    if (p->n_configs == MOST_CONFIGS) {
        snprintf(why, why_size, "more than %d configurations", MOST_CONFIGS);
        return false;
    }
    for (size_t i = 0; i < N_PRESETS; i++) {
        size_t length = strcspn(presets[i], ":");
        if (strlen(text) == length && strncmp(text, presets[i], length) == 0)
            text = presets[i];
    }
    if (!config_parse(&c, text, why, why_size))
        return false;
    p->configs[p->n_configs++] = c;
    return true;
}
