/* Text to typed value, and what to tell the user when it is neither. Pure functions. */
#define _GNU_SOURCE
#include "framework/mca/internal.h"

#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

const char *st_param_type_name(enum st_param_type type)
{
    switch (type) {
    case ST_PARAM_BOOL:
        return "bool";
    case ST_PARAM_INT:
        return "int";
    case ST_PARAM_SIZE:
        return "size";
    case ST_PARAM_DOUBLE:
        return "double";
    case ST_PARAM_STRING:
        return "string";
    case ST_PARAM_ENUM:
        return "enum";
    }
    return "?";
}

size_t st_param_type_size(enum st_param_type type)
{
    union st_value v;
    switch (type) {
    case ST_PARAM_BOOL:
        return sizeof(v.b);
    case ST_PARAM_INT:
        return sizeof(v.i);
    case ST_PARAM_SIZE:
        return sizeof(v.z);
    case ST_PARAM_DOUBLE:
        return sizeof(v.d);
    case ST_PARAM_STRING:
        return sizeof(v.s);
    case ST_PARAM_ENUM:
        return sizeof(v.e);
    }
    return 0;
}

static bool param_has_range(const struct st_param *row)
{
    return row->min < row->max || row->min > row->max || row->min < 0 || row->min > 0;
}

/* 65536 as "64k": the way a user would write it. */
static int param_size_text(double bytes, char *buf, size_t size)
{
    static const char suffix[] = {0, 'k', 'm', 'g'};
    int s = 0;
    while (s < 3 && bytes >= 1024 && bytes < 1e18 && (uint64_t)bytes % 1024 == 0) {
        bytes /= 1024;
        s++;
    }
    return snprintf(buf, size, "%.0f%s", bytes, s ? (char[]){suffix[s], 0} : "");
}

static const char *param_choices_text(const struct st_param *row, char *buf, size_t size)
{
    size_t used = (size_t)snprintf(buf, size, "one of");
    for (size_t i = 0; row->choices && row->choices[i] && used < size; i++)
        used += (size_t)snprintf(buf + used, size - used, "%s %s", i ? "," : "", row->choices[i]);
    return buf;
}

const char *st_param_allowed(const struct st_param *row, char *buf, size_t size)
{
    const char *unit = row->unit ? row->unit : "", *gap = row->unit ? " " : "";
    char lo[40], hi[40];
    buf[0] = '\0';
    switch (row->type) {
    case ST_PARAM_BOOL:
        snprintf(buf, size, "0, 1, true, false, yes, no, on, off");
        break;
    case ST_PARAM_ENUM:
        return param_choices_text(row, buf, size);
    case ST_PARAM_SIZE:
        if (!param_has_range(row)) {
            snprintf(buf, size, "a number of bytes, with k, m or g if you like");
            break;
        }
        param_size_text(row->min, lo, sizeof(lo));
        param_size_text(row->max, hi, sizeof(hi));
        snprintf(buf, size, "%s .. %s%s%s", lo, hi, gap, unit);
        break;
    case ST_PARAM_INT:
    case ST_PARAM_DOUBLE:
        if (param_has_range(row))
            snprintf(buf, size, "%.15g .. %.15g%s%s", row->min, row->max, gap, unit);
        else
            snprintf(buf, size, "%s%s%s", row->type == ST_PARAM_INT ? "a whole number" : "a number",
                     row->unit ? " of " : "", unit);
        break;
    case ST_PARAM_STRING:
        break;
    }
    return buf;
}

static bool param_parse_bool(const char *text, bool *out)
{
    static const char *const yes[] = {"1", "true", "yes", "on"}, *const no[] = {"0", "false", "no", "off"};
    for (size_t i = 0; i < 4; i++) {
        if (!strcasecmp(text, yes[i]) || !strcasecmp(text, no[i])) {
            *out = !strcasecmp(text, yes[i]);
            return true;
        }
    }
    return false;
}

static bool param_parse_int(const char *text, int64_t *out)
{
    const char *digits = text + (*text == '-' || *text == '+');
    bool hex = digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X');
    if (!isdigit((unsigned char)*digits))
        return false;
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, hex ? 16 : 10);
    if (errno || *end || end == text)
        return false;
    *out = v;
    return true;
}

static bool param_parse_size(const char *text, size_t *out)
{
    bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    if (!isdigit((unsigned char)*text))
        return false;
    char *end;
    errno = 0;
    unsigned long long v = strtoull(text, &end, hex ? 16 : 10);
    if (errno)
        return false;
    unsigned shift = 0;
    switch (tolower((unsigned char)*end)) {
    case 'k':
        shift = 10;
        break;
    case 'm':
        shift = 20;
        break;
    case 'g':
        shift = 30;
        break;
    case '\0':
        break;
    default:
        return false;
    }
    if (shift && end[1])
        return false;
    if (v > (SIZE_MAX >> shift))
        return false;
    *out = (size_t)v << shift;
    return true;
}

/* Bytes with k, m or g, where -1 or the like has a meaning of its own. */
static bool param_parse_bytes(const struct st_param *row, const char *text, int64_t *out)
{
    size_t bytes;
    if (!row->unit || strcmp(row->unit, "bytes") != 0 || !param_parse_size(text, &bytes) || bytes > INT64_MAX)
        return false;
    *out = (int64_t)bytes;
    return true;
}

/* With a point, whatever the locale of the program has. */
static bool param_parse_double(const char *text, double *out)
{
    if (!*text || isspace((unsigned char)*text))
        return false;
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!plain)
        return false;
    char *end;
    errno = 0;
    double v = strtod_l(text, &end, plain);
    freelocale(plain);
    if (*end || end == text || !isfinite(v))
        return false;
    *out = v;
    return true;
}

static bool param_parse_enum(const struct st_param *row, const char *text, int *out)
{
    for (int i = 0; row->choices && row->choices[i]; i++) {
        if (!strcasecmp(row->choices[i], text)) {
            *out = i;
            return true;
        }
    }
    return false;
}

int st_param_parse(const struct st_param *row, const char *text, union st_value *out, char *why, size_t why_size)
{
    union st_value v = {0};
    double number = 0;
    bool ok = true, ranged = false;
    switch (row->type) {
    case ST_PARAM_BOOL:
        ok = param_parse_bool(text, &v.b);
        break;
    case ST_PARAM_INT:
        ok = ranged = param_parse_int(text, &v.i) || param_parse_bytes(row, text, &v.i);
        number = (double)v.i;
        break;
    case ST_PARAM_SIZE:
        ok = ranged = param_parse_size(text, &v.z);
        number = (double)v.z;
        break;
    case ST_PARAM_DOUBLE:
        ok = ranged = param_parse_double(text, &v.d);
        number = v.d;
        break;
    case ST_PARAM_STRING:
        v.s = text;
        break;
    case ST_PARAM_ENUM:
        ok = param_parse_enum(row, text, &v.e);
        break;
    default:
        ok = false;
    }
    char allowed[512];
    if (!ok) {
        struct st_suggest sg = {.wanted = text};
        char near[128] = "";
        for (size_t i = 0; row->type == ST_PARAM_ENUM && row->choices && row->choices[i]; i++)
            st_suggest_offer(&sg, row->choices[i]);
        return st_mca_fail(STRATA_ERR_PARAM, why, why_size, "not a valid %s; allowed: %s%s",
                           st_param_type_name(row->type), st_param_allowed(row, allowed, sizeof(allowed)),
                           st_suggest_text(&sg, near, sizeof(near)));
    }
    if (ranged && param_has_range(row) && (number < row->min || number > row->max))
        return st_mca_fail(STRATA_ERR_PARAM, why, why_size, "out of range; allowed: %s",
                           st_param_allowed(row, allowed, sizeof(allowed)));
    *out = v;
    return STRATA_OK;
}

void st_param_store(const struct st_param *row, const union st_value *value, void *config)
{
    /* Every member of the union starts at its address, so the type's size selects the right bytes. */
    memcpy((char *)config + row->offset, value, st_param_type_size(row->type));
}

int st_param_check_row(const struct st_param *row, size_t config_size, char *why, size_t why_size)
{
    if (!row->name || !*row->name)
        return st_mca_fail(STRATA_ERR_PARAM, why, why_size, "a parameter has no name");
    for (const char *p = row->name; *p; p++)
        if (!islower((unsigned char)*p) && !isdigit((unsigned char)*p) && *p != '_')
            return st_mca_fail(STRATA_ERR_PARAM, why, why_size, "parameter \"%s\": a name is made of a-z, 0-9 and _",
                               row->name);
    size_t bytes = st_param_type_size(row->type);
    if (!bytes)
        return st_mca_fail(STRATA_ERR_PARAM, why, why_size, "parameter \"%s\" has no known type", row->name);
    if (bytes > config_size || row->offset > config_size - bytes)
        return st_mca_fail(STRATA_ERR_PARAM, why, why_size, "parameter \"%s\" lies outside its config struct",
                           row->name);
    if (!row->help || !*row->help)
        return st_mca_fail(STRATA_ERR_PARAM, why, why_size, "parameter \"%s\" has no help text", row->name);
    if (row->level < 1 || row->level > 9)
        return st_mca_fail(STRATA_ERR_PARAM, why, why_size, "parameter \"%s\" has level %d, not 1 .. 9", row->name,
                           row->level);
    if (row->min > row->max)
        return st_mca_fail(STRATA_ERR_PARAM, why, why_size, "parameter \"%s\" has an empty range", row->name);
    if (row->type == ST_PARAM_ENUM && (!row->choices || !row->choices[0]))
        return st_mca_fail(STRATA_ERR_PARAM, why, why_size, "parameter \"%s\" has no choices", row->name);
    if (!row->dflt)
        return st_mca_fail(STRATA_ERR_PARAM, why, why_size, "parameter \"%s\" has no default", row->name);
    union st_value v;
    char bad[600];
    if (st_param_parse(row, row->dflt, &v, bad, sizeof(bad)))
        return st_mca_fail(STRATA_ERR_PARAM, why, why_size, "parameter \"%s\", default \"%s\": %s", row->name,
                           row->dflt, bad);
    return STRATA_OK;
}
