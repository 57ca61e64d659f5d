/* Thresholds: parsing, and comparison with medians. */
#include "config.h"
#include "thresholds.h"

#include <stdlib.h>
#include <string.h>
#include "test.h"

static const struct {
    const char *name;
    double scale;
    enum unit unit;
} limits[] = {
    {"ns", 1, UNIT_NS},     {"us", 1e3, UNIT_NS},     {"ms", 1e6, UNIT_NS}, {"s", 1e9, UNIT_NS},
    {"MB/s", 1, UNIT_MB_S}, {"GB/s", 1e3, UNIT_MB_S}, {"", 1, UNIT_COUNT},
};

static bool take_value(const char *text, size_t n, uint64_t *x)
{
    char digits[24], *end;

    if (n == 0 || n >= sizeof digits || *text < '0' || *text > '9')
        return false;
    memcpy(digits, text, n);
    digits[n] = 0;
    *x = strtoull(digits, &end, 10);
    const unsigned shift = *end == 'k' ? 10 : *end == 'm' ? 20 : *end == 'g' ? 30 : 0;
    *x <<= shift;
    return end[shift > 0] == 0;
}

const char *threshold_take(struct threshold *t, const char *text, bool most)
{
    const char *equals = strchr(text, '=');
    char *end;

    *t = (struct threshold){.most = most, .text = text, .any = true};
    if (!equals)
        return "expected NAME.VALUE=LIMIT, such as latency.8=2us";
    const char *dot = memchr(text, '.', (size_t)(equals - text));
    const size_t n = (size_t)((dot ? dot : equals) - text);
    if (n == 0 || n >= sizeof t->name)
        return "expected the name of a test or figure first";
    memcpy(t->name, text, n);
    if (dot) {
        t->any = false;
        if (!take_value(dot + 1, (size_t)(equals - dot - 1), &t->x))
            return "expected a number after the dot, such as 64k";
    }
    t->limit = strtod(equals + 1, &end);
    if (end == equals + 1 || !(t->limit >= 0))
        return "expected a number after \"=\"";
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        if (strcmp(end, limits[i].name) == 0) {
            t->limit *= limits[i].scale;
            t->unit = limits[i].unit;
            return NULL;
        }
    return "expected a unit: ns, us, ms, s, MB/s or GB/s";
}

static bool applies(const struct threshold *t, const struct result *r)
{
    return !r->status && (strcmp(t->name, r->figure) == 0 || strcmp(t->name, r->c.test->name) == 0) &&
           (t->any || t->x == r->c.x) && (t->unit == UNIT_COUNT || t->unit == r->unit);
}

unsigned thresholds_check(const struct threshold *t, unsigned n, const struct results *r)
{
    unsigned beyond = 0;
    char text[160], median[32], limit[32];

    for (unsigned i = 0; i < n; i++) {
        unsigned met = 0;
        for (size_t k = 0; k < r->n; k++) {
            const struct result *one = &r->all[k];
            if (!applies(&t[i], one))
                continue;
            met++;
            if (one->marked) {
                case_text(&one->c, text, sizeof text);
                fprintf(stderr, "strata-miba: %s: %s %s cannot be judged: %s\n", text, t[i].most ? "--max" : "--min",
                        t[i].text, one->why.text);
                beyond++;
                continue;
            }
            if (t[i].most ? one->sum.median <= t[i].limit : one->sum.median >= t[i].limit)
                continue;
            case_text(&one->c, text, sizeof text);
            print_value(one->sum.median, one->unit, median, sizeof median);
            print_value(t[i].limit, one->unit, limit, sizeof limit);
            fprintf(stderr, "strata-miba: %s: %s is %s, %s than %s\n", text, one->figure, median,
                    t[i].most ? "more" : "less", limit);
            beyond++;
        }
        if (met == 0) {
            fprintf(stderr, "strata-miba: %s %s: nothing of that name, value and unit was measured\n",
                    t[i].most ? "--max" : "--min", t[i].text);
            beyond++;
        }
    }
    return beyond;
}
