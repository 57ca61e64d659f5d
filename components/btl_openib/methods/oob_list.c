/* Lists of out-of-band methods: read, written, and compared with a peer's. */
#include "methods/oob.h"

#include <stdio.h>
#include <string.h>
#include <strata/strata.h>

const struct ib_method *ib_method(uint32_t number)
{
    static const struct ib_method *const all[IB_METHODS + 1] = {
        [IB_METHOD_UD] = &ib_method_ud, [IB_METHOD_TCP] = &ib_method_tcp, [IB_METHOD_RDMACM] = &ib_method_rdmacm};

    return number <= IB_METHODS ? all[number] : NULL;
}

static uint32_t method_number(const char *name, size_t n)
{
    for (uint32_t i = 1; i <= IB_METHODS; i++)
        if (strlen(ib_method(i)->name) == n && strncmp(ib_method(i)->name, name, n) == 0)
            return i;
    return 0;
}

bool ib_methods_parse(const char *text, uint8_t out[IB_METHODS], char *why, size_t why_size)
{
    uint8_t list[IB_METHODS] = {0};
    uint32_t n_list = 0;

    for (const char *at = text;;) {
        size_t n = strcspn(at, ",");
        uint32_t number = method_number(at, n);
        if (!number) {
            snprintf(why, why_size,
                     *at ? "btl_openib_connect: expected ud, tcp or rdmacm at '%.20s'"
                         : "btl_openib_connect: expected ud, tcp or rdmacm at the end",
                     at);
            return false;
        }
        if (memchr(list, (int)number, sizeof list)) {
            snprintf(why, why_size, "btl_openib_connect: %s is there twice", ib_method(number)->name);
            return false;
        }
        list[n_list++] = (uint8_t)number;
        at += n;
        if (!*at)
            break;
        at++;
    }
    memcpy(out, list, sizeof list);
    return true;
}

const char *ib_methods_text(const uint8_t list[IB_METHODS], char *out, size_t size)
{
    size_t at = 0;

    out[0] = 0;
    for (uint32_t i = 0; i < IB_METHODS && at < size; i++) {
        const struct ib_method *method = list[i] ? ib_method(list[i]) : NULL;
        if (method)
            at += (size_t)snprintf(out + at, size - at, "%s%s", at ? "," : "", method->name);
    }
    return out;
}

uint32_t ib_method_choose(const uint8_t mine[IB_METHODS], const uint8_t theirs[IB_METHODS], bool i_lead)
{
    const uint8_t *first = i_lead ? mine : theirs, *second = i_lead ? theirs : mine;

    for (uint32_t i = 0; i < IB_METHODS; i++)
        if (first[i] && first[i] <= IB_METHODS && memchr(second, first[i], IB_METHODS))
            return first[i];
    return 0;
}
