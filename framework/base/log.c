/* Lines for people: where they come from (host, rank, component) and where they go (embedder or stderr). Each line
 * leaves in one write(), so that lines of many ranks that share a terminal do not mix. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <strata/sdk/rte.h>
#include "framework/base/context.h"
#include "framework/base/log.h"

#define LINE_MAX_BYTES 2048

static size_t log_prefix(const strata_t *s, enum st_log_level level, const char *component, char *out, size_t size)
{
    static const char *const names[] = {"error: ", "warning: ", "", ""};
    char host[64];
    const char *h = s && s->rte ? s->rte->host : s && s->host ? s->host->host_name : NULL;
    if (!h) {
        if (gethostname(host, sizeof(host)) != 0)
            strcpy(host, "?");
        host[sizeof(host) - 1] = '\0';
        h = host;
    }
    const char *dot = strchr(h, '.');
    int h_len = dot ? (int)(dot - h) : (int)strlen(h);
    char rank[16] = "-";
    if (s && s->rte)
        snprintf(rank, sizeof(rank), "%d", s->rte->rank);
    int n = snprintf(out, size, "strata[%.*s:%s]%s%s: %s", h_len > 63 ? 63 : h_len, h, rank, component ? " " : "",
                     component ? component : "", level <= ST_LOG_DEBUG ? names[level] : "");
    return n < 0 ? 0 : (size_t)n < size ? (size_t)n : size - 1;
}

static void log_emit(const strata_t *s, enum st_log_level level, char *text, size_t n)
{
    if (s && s->host && s->host->log) {
        s->host->log(s->host->user, (int)level, text);
        return;
    }
    text[n++] = '\n'; /* takes the place of the terminator */
    for (size_t done = 0; done < n;) {
        ssize_t w = write(STDERR_FILENO, text + done, n - done);
        if (w <= 0)
            return;
        done += (size_t)w;
    }
}

void st_log_plain(const strata_t *s, const char *text)
{
    size_t n = strlen(text);
    char *line = malloc(n + 2); /* of any length, and room for the line's end */
    if (!line)
        return;
    memcpy(line, text, n + 1);
    log_emit(s, ST_LOG_INFO, line, n);
    free(line);
}

bool st_log_wanted(const strata_t *s, enum st_log_level level)
{
    int64_t verbose = s && s->base ? s->base->verbose : ST_LOG_WARN;
    return (int64_t)level <= verbose;
}

void st_vlog(const strata_t *s, enum st_log_level level, const char *component, const char *format, va_list args)
{
    if (!st_log_wanted(s, level))
        return;
    char text[LINE_MAX_BYTES];
    size_t n = log_prefix(s, level, component, text, sizeof(text));
    int m = vsnprintf(text + n, sizeof(text) - n, format, args);
    if (m > 0)
        n = n + (size_t)m < sizeof(text) ? n + (size_t)m : sizeof(text) - 1;
    while (n > 0 && text[n - 1] == '\n')
        text[--n] = '\0';
    log_emit(s, level, text, n);
}

void st_log(const strata_t *s, enum st_log_level level, const char *component, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    st_vlog(s, level, component, format, args);
    va_end(args);
}

void st_component_label(const struct st_component *c, char *out, size_t size)
{
    if (c)
        snprintf(out, size, "%s_%s", c->framework, c->name);
    else
        snprintf(out, size, "base");
}

void st_help(const strata_t *s, const struct st_component *c, const char *topic, ...)
{
    char label[64];
    st_component_label(c, label, sizeof(label));
    for (size_t i = 0; c && i < c->n_help; i++) {
        if (strcmp(c->help[i].topic, topic) != 0)
            continue;
        va_list args;
        va_start(args, topic);
        st_vlog(s, ST_LOG_ERROR, label, c->help[i].text, args);
        va_end(args);
        return;
    }
    st_log(s, ST_LOG_ERROR, label, "%s (no help text of that name)", topic);
}

void st_reject(strata_t *s, const struct st_component *c, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (s && s->mca) /* a component may be opened by itself, in a test */
        st_mca_fate(s->mca, c, ST_FATE_REJECTED, text);
}
