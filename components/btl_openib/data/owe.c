/* Which peers are to get a credit message. */
#include "module.h"

void ib_owe_list(struct ib_module *m, struct ib_peer *p)
{
    p->owing = true;
    p->next_owing = m->credits.owing;
    m->credits.owing = p;
}

void ib_owe(struct ib_peer *p)
{
    struct ib_module *m = ib_module_of(p);

    if (p->owing)
        return;
    ib_owe_list(m, p);
    ib_attend(&m->poll);
}
