/* Account of the process' memory: brackets round libraries' calls, and the lines of the report. */
#define _GNU_SOURCE 1
#include "framework/base/account.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "framework/base/context.h"

static size_t account_heap(void)
{
    struct mallinfo2 m = mallinfo2();

    return m.uordblks + m.hblkhd;
}

/* Freed memory between pieces that are in use, and of the free end of the heap what has pages: libraries have used it
 * and given it back. */
static int64_t account_holes(void)
{
    struct mallinfo2 m = mallinfo2();
    uintptr_t end = (uintptr_t)sbrk(0), page = st_page_size();
    uintptr_t from = (end - m.keepcost + page - 1) & ~(page - 1);

    return (int64_t)m.fordblks - (int64_t)m.keepcost +
           (int64_t)(m.keepcost && from < end ? st_resident_bytes((void *)from, end - from) : 0);
}

static size_t account_pages(void)
{
    struct st_process_memory m;

    return st_process_memory(0, &m) == STRATA_OK ? m.private_bytes - m.images - m.stack : 0;
}

#define ACCOUNT_PARAMETER "mca_base_account_memory"

static bool account_named(const strata_setting_t *settings, size_t n)
{
    for (size_t i = 0; settings && i < n; i++)
        if (settings[i].name && strcmp(settings[i].name, ACCOUNT_PARAMETER) == 0)
            return true;
    return false;
}

static void account_look(struct st_account *a)
{
    struct st_process_memory m;

    a->known = st_process_memory(0, &m) == STRATA_OK;
    if (!a->known)
        return;
    a->before.private_bytes = m.private_bytes;
    a->before.images = m.images;
    a->before.stack = m.stack;
}

void st_account_begin(struct st_account *a, const strata_config_t *config)
{
    if (getenv("STRATA_MCA_" ACCOUNT_PARAMETER) || account_named(config->settings, config->n_settings) ||
        account_named(config->command_line, config->n_command_line))
        account_look(a);
}

void st_account_loaded(struct st_account *a, bool on)
{
    bool early = a->known;

    if (on && !early)
        account_look(a);
    a->on = a->known && on;
    if (a->on && early)
        a->libraries =
            (int64_t)account_pages() - (int64_t)(a->before.private_bytes - a->before.images - a->before.stack);
}

void st_account_ready(struct st_account *a)
{
    a->holes = a->on ? account_holes() : 0;
}

void st_account_enter(strata_t *s, enum st_account_by by, struct st_account_mark *mark)
{
    *mark = (struct st_account_mark){.on = s->account.on, .by = by};
    if (mark->on)
        mark->bytes = by == ST_ACCOUNT_HEAP ? account_heap() : account_pages();
}

void st_account_leave(strata_t *s, const struct st_account_mark *mark)
{
    if (mark->on)
        s->account.libraries +=
            (int64_t)(mark->by == ST_ACCOUNT_HEAP ? account_heap() : account_pages()) - (int64_t)mark->bytes;
}

/* High-water mark of the lines of one name. */
struct st_account_most {
    struct st_account_most *next;
    size_t bytes;
    size_t now; /* sum of these lines in `report` */
    uint32_t report;
    char name[]; /* COMPONENT: CATEGORY */
};

size_t st_account_most(struct st_account *a, const strata_mem_line_t *line)
{
    struct st_account_most *m = a->most;
    char name[128];

    snprintf(name, sizeof name, "%s: %s", line->component, line->category);
    while (m && strcmp(m->name, name) != 0)
        m = m->next;
    if (!m && (m = calloc(1, sizeof *m + strlen(name) + 1)) != NULL) {
        strcpy(m->name, name);
        m->next = a->most;
        a->most = m;
    }
    if (!m)
        return line->bytes;
    m->now = (m->report == a->reports ? m->now : 0) + line->bytes;
    m->report = a->reports;
    if (m->now > m->bytes)
        m->bytes = m->now;
    return m->bytes;
}

void st_account_end(struct st_account *a)
{
    for (struct st_account_most *m = a->most, *next; m; m = next) {
        next = m->next;
        free(m);
    }
    a->most = NULL;
}

static int64_t account_positive(int64_t bytes)
{
    return bytes > 0 ? bytes : 0;
}

static void account_line(st_mem_line_fn line, void *arg, const char *category, int64_t bytes)
{
    strata_mem_line_t l = {
        .component = "process", .category = category, .bytes = (size_t)account_positive(bytes), .user = 1};

    line(arg, &l);
}

void st_account_report(const struct st_account *a, size_t ours, st_mem_line_fn line, void *arg)
{
    struct st_process_memory now;

    if (!a->on || st_process_memory(0, &now) != STRATA_OK)
        return;
    int64_t grown = (int64_t)now.private_bytes - (int64_t)a->before.private_bytes;
    int64_t libraries = a->libraries + (int64_t)now.images - (int64_t)a->before.images;
    int64_t holes = account_holes() - a->holes;
    if (holes < 0) /* others use now what libraries gave back during the start */
        libraries += holes;
    /* A line has no sign: what has shrunk is part of the remainder. */
    libraries = account_positive(libraries);
    int64_t stack = account_positive((int64_t)now.stack - (int64_t)a->before.stack);
    int64_t rest = grown - libraries - stack - (int64_t)ours - account_positive(holes);

    account_line(line, arg, "private", (int64_t)now.private_bytes);
    account_line(line, arg, "before strata_init", (int64_t)a->before.private_bytes);
    account_line(line, arg, "libraries", libraries);
    account_line(line, arg, "free in malloc", holes);
    account_line(line, arg, "stack", stack);
    account_line(line, arg, "not accounted for", rest);
    account_line(line, arg, "accounted twice", -rest);
    account_line(line, arg, "proportional", (int64_t)now.proportional);
    account_line(line, arg, "device mappings", (int64_t)now.device);
    account_line(line, arg, "device mappings, proportional", (int64_t)now.device_share);
    account_line(line, arg, "page tables", (int64_t)now.page_tables);
    account_line(line, arg, "resident at most", (int64_t)now.resident_most);
}
