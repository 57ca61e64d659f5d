/* Known costs: what SOFTHCA_COST says, and charging it. The time is spent in cost_clock.c. */
#include "cost.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct hca_cost hca_cost;

#define BIT(key) (1u << (key))
_Static_assert(HCA_COSTS <= 32, "a bit each");
/* Costs of a send that is carried out. */
#define OF_DATA                                                                                                        \
    (BIT(HCA_COST_SEGMENT) | BIT(HCA_COST_MAX_SGE) | BIT(HCA_COST_PACKET) | BIT(HCA_COST_COLD) |                       \
     BIT(HCA_COST_SWITCH) | BIT(HCA_COST_BYTE) | BIT(HCA_COST_ENGINE))

/* ---- the environment ---- */

#define PS_OF_US 1000000ull
#define PS_OF_MS (1000u * PS_OF_US)

/* What would keep a program busy for hours is a mistake: a second for a call, less for what there are many of. */
static uint64_t most_ps(enum hca_cost_key key)
{
    switch (key) {
    case HCA_COST_BYTE:
        return PS_OF_US;
    case HCA_COST_PAGE:
    case HCA_COST_QP_ENTRY:
    case HCA_COST_CQ_ENTRY:
        return PS_OF_MS;
    default:
        return 1000u * PS_OF_MS;
    }
}

static const struct unit {
    char name[3];
    uint64_t ps;
} units[] = {{"ps", 1}, {"ns", 1000}, {"us", PS_OF_US}, {"ms", PS_OF_MS}};

static uint64_t unit_of(const char *text)
{
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(units[i].name, text) == 0)
            return units[i].ps;
    return 0;
}

static const char *too_much(uint64_t most)
{
    return most == PS_OF_US ? "more than 1us" : most == PS_OF_MS ? "more than 1ms" : "more than 1000ms";
}

/* "12.5ns"; a fraction of a picosecond is dropped. NULL: *ps is the time. Else what is wrong. */
static const char *take_time(const char *text, uint64_t most, uint64_t *ps)
{
    static const char form[] = "expected a number and its unit: ps, ns, us or ms";
    const size_t whole = strspn(text, "0123456789");
    const char *fraction = text + whole + (text[whole] == '.');
    const size_t parts = text[whole] == '.' ? strspn(fraction, "0123456789") : 0;
    const uint64_t unit = unit_of(fraction + parts);

    if (whole == 0 || (text[whole] == '.' && parts == 0) || unit == 0)
        return form;
    if (whole > 12 || parts > 9)
        return "too many digits";
    uint64_t scale = 1;
    for (size_t i = 0; i < parts; i++)
        scale *= 10;
    const uint64_t n = strtoull(text, NULL, 10), rest = parts ? strtoull(fraction, NULL, 10) : 0;
    if (n > most / unit)
        return too_much(most);
    /* At most 10^9 parts of at most 10^9 ps each. */
    *ps = n * unit + rest * unit / scale;
    return *ps > most ? too_much(most) : NULL;
}

static void complain(const char *item, const char *wrong)
{
    fprintf(stderr, "softhca: SOFTHCA_COST: %s: %s; no device is opened\n", item, wrong);
}

static void complain_of_key(const char *item)
{
    char all[256] = "post";
    size_t n = strlen(all);

    for (int key = 0; key < HCA_COSTS && n < sizeof all; key++)
        n += (size_t)snprintf(all + n, sizeof all - n, ", %s", hca_cost_names[key]);
    fprintf(stderr, "softhca: SOFTHCA_COST: %s: no such cost; there are: %s; no device is opened\n", item, all);
}

/* NULL: it has this cost now; else what is wrong. */
static const char *set(enum hca_cost_key key, const char *value)
{
    if (hca_cost_is(key))
        return "given twice";
    if (key == HCA_COST_ENGINE) {
        if (strcmp(value, "1") != 0)
            return "expected engine=1";
    } else {
        const char *wrong = take_time(value, most_ps(key), &hca_cost.ps[key]);
        if (wrong)
            return wrong;
    }
    hca_cost.set |= BIT(key);
    return NULL;
}

/* One "KEY=TIME"; false: said. */
static bool take_item(const char *item)
{
    const char *value = strchr(item, '=');
    const size_t n = value ? (size_t)(value - item) : strlen(item);
    const bool both = n == 4 && strncmp(item, "post", n) == 0;
    const char *wrong = "expected KEY=TIME";
    bool known = both;

    if (both && value) {
        wrong = set(HCA_COST_POST_SEND, value + 1);
        if (!wrong)
            wrong = set(HCA_COST_POST_RECV, value + 1);
    }
    for (int key = 0; !known && key < HCA_COSTS; key++) {
        known = strlen(hca_cost_names[key]) == n && strncmp(hca_cost_names[key], item, n) == 0;
        if (known && value)
            wrong = set((enum hca_cost_key)key, value + 1);
    }
    if (!known)
        complain_of_key(item);
    else if (wrong)
        complain(item, wrong);
    return known && !wrong;
}

static bool take_all(const char *text)
{
    char *copy = strdup(text), *rest = copy, *item;
    bool good = copy != NULL;

    /* Not by strtok: an empty item is a mistake, too. */
    while (good && (item = strsep(&rest, ",")) != NULL)
        good = take_item(item);
    free(copy);
    return good;
}

#define CACHE_ENTRIES 1024u
#define CACHE_MOST    (1u << 20)

static bool take_cache(const char *text)
{
    char *end;

    errno = 0;
    const unsigned long n = strtoul(text, &end, 10);
    if (errno == 0 && *text >= '0' && *text <= '9' && *end == 0 && n >= 1 && n <= CACHE_MOST) {
        hca_cost.cache = (uint32_t)n;
        return true;
    }
    fprintf(stderr, "softhca: SOFTHCA_COST_CACHE=%s: expected a number from 1 to %u; no device is opened\n", text,
            CACHE_MOST);
    return false;
}

#define SAMPLE_PS 300000u

static void sample(void)
{
    hca_cost_pay(HCA_COST_POLL, 1, HCA_COST_POLL, 0);
}

static void calibrate(void)
{
    const struct hca_cost asked = hca_cost;

    hca_cost.set = BIT(HCA_COST_POLL);
    hca_cost.ps[HCA_COST_POLL] = SAMPLE_PS;
    hca_cost_calibrate(sample, SAMPLE_PS);
    hca_cost = asked;
}

/* 0, or EINVAL: then there are no costs. */
static int read_environment(void)
{
    const char *text = getenv("SOFTHCA_COST"), *cache = getenv("SOFTHCA_COST_CACHE");

    hca_cost.cache = CACHE_ENTRIES;
    const bool good = !(text && *text && !take_all(text)) && !(cache && *cache && !take_cache(cache));
    if (!good)
        hca_cost.set = 0;
    hca_cost.data = (hca_cost.set & OF_DATA) != 0;
    if (hca_cost.set)
        calibrate();
    return good ? 0 : EINVAL;
}

int hca_costs_read(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static int error = -1; /* not read yet */

    pthread_mutex_lock(&lock);
    if (error < 0)
        error = read_environment();
    const int result = error;
    pthread_mutex_unlock(&lock);
    return result;
}

void hca_costs_publish(void)
{
    struct hca_header *h = hca.header;

    for (int key = 0; key < HCA_COSTS; key++)
        atomic_store_explicit(&h->cost_ps[key], hca_cost.ps[key], memory_order_relaxed);
    atomic_store_explicit(&h->costs, hca_cost.set, memory_order_relaxed);
}

void hca_costs_in_child(void)
{
    hca_cost_cache_in_child();
    hca_serial_in_child();
}

/* ---- charging ---- */

void hca_charge_add(struct hca_charge *c, enum hca_cost_key key, uint64_t n)
{
    struct hca_header *h;

    if (n == 0 || !hca_cost_is(key))
        return;
    if (c->begin == 0)
        c->begin = hca_cost_ticks();
    c->ps += n * hca_cost.ps[key];
    h = hca.header;
    if (h) /* none: a child that uses its parent's objects */
        atomic_fetch_add_explicit(&h->cost_times[key], n, memory_order_relaxed);
}

void hca_charge_spend(const struct hca_charge *c)
{
    if (c->begin)
        hca_cost_spin(c->begin, c->ps);
}

void hca_cost_pay(enum hca_cost_key a, uint64_t n_a, enum hca_cost_key b, uint64_t n_b)
{
    struct hca_charge c = {0};

    if (!hca_cost.set)
        return;
    hca_charge_add(&c, a, n_a);
    hca_charge_add(&c, b, n_b);
    hca_charge_spend(&c);
}
