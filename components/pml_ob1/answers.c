/* See answers.h. */
#include "answers.h"

uint8_t ob1_found_waited(uint32_t us)
{
    return us ? (uint8_t)(OB1_FOUND_WAITED + 31u - (unsigned)__builtin_clz(us)) : OB1_FOUND_WAITED;
}

bool ob1_found_late(uint8_t found, uint64_t length, uint32_t mbs)
{
    uint64_t us = found > OB1_FOUND_WAITED ? UINT64_C(1) << (found - OB1_FOUND_WAITED) : 0;

    return us * mbs > length; /* MB/s are bytes per us */
}

void ob1_answers_add(struct ob1_answers *a, bool late)
{
    uint8_t habit = a->habit;
    unsigned n_late;

    a->late = (uint8_t)(a->late << 1 | (late ? 1 : 0));
    if (a->n < OB1_ANSWERS)
        a->n++;
    n_late = (unsigned)__builtin_popcount(a->late);
    if (a->n < OB1_ANSWERS)
        return;
    if (n_late >= OB1_ANSWERS_LATE)
        a->habit = OB1_HABIT_LATE;
    else if (n_late == 0)
        a->habit = OB1_HABIT_EARLY;
    else if (habit == OB1_HABIT_EARLY || n_late <= OB1_ANSWERS_FEW)
        a->habit = OB1_HABIT_NONE;
    if (a->habit != habit)
        a->power = 0;
}

bool ob1_answers_try(struct ob1_answers *a)
{
    unsigned most = a->habit == OB1_HABIT_EARLY  ? OB1_TRY_EARLY
                    : a->habit == OB1_HABIT_LATE ? OB1_TRY_FIRST
                                                 : OB1_TRY_MIXED;

    if (a->power == 0) {
        a->power = OB1_TRY_FIRST;
        a->left = (1u << OB1_TRY_FIRST) - 1;
    }
    if (--a->left)
        return false;
    if (a->n == OB1_ANSWERS && a->power < most)
        a->power++;
    a->left = (uint16_t)((1u << a->power) - 1);
    return true;
}

const char *ob1_habit_name(const struct ob1_answers *a)
{
    if (a->habit == OB1_HABIT_EARLY)
        return "early";
    if (a->habit == OB1_HABIT_LATE)
        return "late";
    return a->n < OB1_ANSWERS ? "unknown" : "mixed";
}

void ob1_answers_describe(FILE *f, const struct ob1_answers *a)
{
    fprintf(f, ",\"receiver\":{\"habit\":\"%s\",\"answers\":%u,\"answers_late\":%d,\"asks_after\":%u}",
            ob1_habit_name(a), a->n, __builtin_popcount(a->late), a->left);
}
