/* One result as text, as a row of CSV, and as JSON. */
#include "config.h"
#include "results.h"

#include <math.h>
#include "test.h"

const char *unit_name(enum unit u)
{
    static const char *const names[] = {"ns", "MB/s", "fraction", "count"};

    return names[u];
}

/* Four significant digits. */
static int digits(double v)
{
    const double a = fabs(v);

    return a >= 1000 ? 0 : a >= 100 ? 1 : a >= 10 ? 2 : 3;
}

void print_value(double value, enum unit unit, char *text, size_t size)
{
    const char *name = unit == UNIT_NS ? "ns" : unit == UNIT_MB_S ? " MB/s" : "";

    if (unit == UNIT_NS && fabs(value) >= 1e6) {
        value /= 1e6;
        name = "ms";
    } else if (unit == UNIT_NS && fabs(value) >= 1e3) {
        value /= 1e3;
        name = "us";
    }
    snprintf(text, size, "%.*f%s%s", digits(value), value, unit == UNIT_NS ? " " : "", name);
}

void print_text(FILE *f, const struct result *r)
{
    char what[160], of[16] = "", median[32], q1[32], q3[32];
    const char *variant = case_variant(&r->c);
    const bool data = r->c.op != OP_NONE;

    if (r->c.size)
        snprintf(of, sizeof of, " %u B", r->c.size);
    snprintf(what, sizeof what, "%-18s%s%s%s%s%s%s%s", r->figure, data ? " " : "", data ? miba_op_name(r->c.op) : "",
             data ? " " : "", data ? miba_transport_name(r->c.transport) : "", *variant ? " " : "", variant, of);
    fprintf(f, "%-44s %s %-11llu", what, r->c.test->x_name, (unsigned long long)r->c.x);
    if (r->status) {
        fprintf(f, " %s: %s\n", miba_status_name(r->status), r->why.text);
        return;
    }
    print_value(r->sum.median, r->unit, median, sizeof median);
    print_value(r->sum.q1, r->unit, q1, sizeof q1);
    print_value(r->sum.q3, r->unit, q3, sizeof q3);
    fprintf(f, " %12s  (%s to %s, %u)", median, q1, q3, r->sum.n);
    if (r->marked)
        fprintf(f, "  [%s]", r->why.text);
    fputc('\n', f);
}

void print_csv_header(FILE *f)
{
    fprintf(f,
            "test,figure,op,transport,variant,parameter,value,unit,median,q1,q3,min,max,samples,status,reason,size\n");
}

/* A field in quotes, in which a quote is doubled. */
static void quoted(FILE *f, const char *text)
{
    fputc('"', f);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', f);
        fputc(*text, f);
    }
    fputc('"', f);
}

void print_csv(FILE *f, const struct result *r)
{
    fprintf(f, "%s,%s,%s,%s,%s,%s,%llu,%s,", r->c.test->name, r->figure, miba_op_name(r->c.op),
            miba_transport_name(r->c.transport), case_variant(&r->c), r->c.test->x_name, (unsigned long long)r->c.x,
            unit_name(r->unit));
    if (r->status)
        fprintf(f, ",,,,,0,");
    else
        fprintf(f, "%.9g,%.9g,%.9g,%.9g,%.9g,%u,", r->sum.median, r->sum.q1, r->sum.q3, r->sum.min, r->sum.max,
                r->sum.n);
    fprintf(f, "%s,", r->marked ? "marked" : miba_status_name(r->status));
    quoted(f, r->why.text);
    fprintf(f, ",%u\n", r->c.size);
}

json_t *result_json(const struct result *r)
{
    json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:s, s:s}", "test", r->c.test->name, "figure", r->figure,
                          "op", miba_op_name(r->c.op), "transport", miba_transport_name(r->c.transport), "variant",
                          case_variant(&r->c), "parameter", r->c.test->x_name, "value", (json_int_t)r->c.x, "unit",
                          unit_name(r->unit), "status", r->marked ? "marked" : miba_status_name(r->status));

    if (r->c.size)
        json_object_set_new(o, "size", json_integer(r->c.size));
    if (!r->status) {
        json_object_set_new(o, "median", json_real(r->sum.median));
        json_object_set_new(o, "q1", json_real(r->sum.q1));
        json_object_set_new(o, "q3", json_real(r->sum.q3));
        json_object_set_new(o, "min", json_real(r->sum.min));
        json_object_set_new(o, "max", json_real(r->sum.max));
        json_object_set_new(o, "samples", json_integer(r->sum.n));
    }
    if (r->status || r->marked)
        json_object_set_new(o, "reason", json_string(r->why.text));
    return o;
}
