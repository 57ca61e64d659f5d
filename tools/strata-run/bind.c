/* Processors for the ranks, found with hwloc. Only strata-run loads the topology: the ranks inherit a mask.
 *
 * A place is a core, or a hardware thread with --bind-to hwthread. Ranks take the places in order, or go round the
 * objects of --map-by and take the next place of each; a rank is bound to the object of --bind-to that its place
 * belongs to. */
#define _GNU_SOURCE
#include "bind.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <hwloc.h>
#include <hwloc/glibc-sched.h>
#include "job.h"
#include "option_values.h"
#include "report.h"

static const hwloc_obj_type_t map_types[] = {HWLOC_OBJ_MACHINE, HWLOC_OBJ_CORE, HWLOC_OBJ_NUMANODE, HWLOC_OBJ_PACKAGE};
static const hwloc_obj_type_t bind_types[] = {HWLOC_OBJ_CORE, HWLOC_OBJ_CORE,     HWLOC_OBJ_PU,
                                              HWLOC_OBJ_CORE, HWLOC_OBJ_NUMANODE, HWLOC_OBJ_PACKAGE};

struct search {
    hwloc_topology_t topology;
    const cpu_set_t *allowed;
    hwloc_obj_type_t place, to; /* what places are, and what ranks are bound to */
};

/* The kind of --bind-to, or the one that follows from --map-by. */
static enum run_bind bind_kind(const struct run_options *o)
{
    static const enum run_bind same[] = {RUN_BIND_CORE, RUN_BIND_CORE, RUN_BIND_NUMA, RUN_BIND_SOCKET};
    return o->bind == RUN_BIND_AUTO ? same[o->map] : o->bind;
}

/* The processors of an object that we may use; false: none. */
static bool usable(const struct search *s, hwloc_obj_t object, cpu_set_t *set)
{
    if (!object || hwloc_cpuset_to_glibc_sched_affinity(s->topology, object->cpuset, set, sizeof(*set)) != 0)
        return false;
    CPU_AND(set, set, s->allowed);
    return CPU_COUNT(set) > 0;
}

/* Place number `index` of those that are in `room`, which counts usable places only. */
static hwloc_obj_t place_in(const struct search *s, hwloc_obj_t room, int index)
{
    cpu_set_t set;
    hwloc_obj_t place = NULL;
    while ((place = hwloc_get_next_obj_inside_cpuset_by_type(s->topology, room->cpuset, s->place, place)) != NULL)
        if (usable(s, place, &set) && index-- == 0)
            return place;
    return NULL;
}

static bool add_place(const struct search *s, hwloc_obj_t place, struct binding *out)
{
    hwloc_obj_t to = place;
    if (s->to != s->place)
        to = hwloc_get_next_obj_covering_cpuset_by_type(s->topology, place->cpuset, s->to, NULL);
    if (!usable(s, to, &out->sets[out->n_sets]))
        return false;
    out->n_sets++;
    return true;
}

static bool fill(const struct search *s, hwloc_obj_type_t rooms, struct binding *out)
{
    int n_places = hwloc_get_nbobjs_by_type(s->topology, s->place);
    int n_rooms = hwloc_get_nbobjs_by_type(s->topology, rooms);
    if (n_places <= 0 || !(out->sets = calloc((size_t)n_places, sizeof(*out->sets))))
        return false;
    for (int k = 0, found = 1; found && n_rooms > 0; k++) {
        found = 0;
        for (int i = 0; i < n_rooms && out->n_sets < n_places; i++) {
            hwloc_obj_t place = place_in(s, hwloc_get_obj_by_type(s->topology, rooms, (unsigned)i), k);
            if (place && !add_place(s, place, out))
                return false;
            found |= place != NULL;
        }
    }
    return out->n_sets > 0;
}

static bool find(const struct run_options *options, const cpu_set_t *allowed, struct binding *out)
{
    struct search s = {.allowed = allowed, .place = HWLOC_OBJ_CORE, .to = bind_types[bind_kind(options)]};
    hwloc_obj_type_t rooms = map_types[options->map];
    if (hwloc_topology_init(&s.topology) != 0)
        return false;
    hwloc_topology_set_all_types_filter(s.topology, HWLOC_TYPE_FILTER_KEEP_NONE);
    hwloc_topology_set_type_filter(s.topology, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL);
    hwloc_topology_set_type_filter(s.topology, HWLOC_OBJ_PACKAGE, HWLOC_TYPE_FILTER_KEEP_ALL);
    hwloc_topology_set_flags(s.topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
    bool found = hwloc_topology_load(s.topology) == 0;
    if (found) {
        /* A machine that does not show its cores: a processor counts as one. */
        bool cores = hwloc_get_nbobjs_by_type(s.topology, HWLOC_OBJ_CORE) > 0;
        if (!cores || s.to == HWLOC_OBJ_PU)
            s.place = HWLOC_OBJ_PU;
        if (!cores && s.to == HWLOC_OBJ_CORE)
            s.to = HWLOC_OBJ_PU;
        if (!cores && rooms == HWLOC_OBJ_CORE)
            rooms = HWLOC_OBJ_PU;
        found = fill(&s, rooms, out);
    }
    hwloc_topology_destroy(s.topology);
    return found;
}

int binding_create(const struct run_options *options, struct binding *out)
{
    cpu_set_t allowed;
    enum run_bind kind = bind_kind(options);
    *out = (struct binding){NULL, 0};
    if (kind == RUN_BIND_NONE)
        return 0;
    CPU_ZERO(&allowed);
    bool known = sched_getaffinity(0, sizeof(allowed), &allowed) == 0, chosen = options->bind != RUN_BIND_AUTO;
    if (!chosen && (!known || options->n > CPU_COUNT(&allowed)))
        return 0; /* fewer processors than ranks: no need to look for cores */
    bool found = known && find(options, &allowed, out);
    if (chosen && !found) {
        report_error("--bind-to %s: this machine does not show what that is", option_bind_name(kind));
        binding_destroy(out);
        return -1;
    }
    if (!chosen && (!found || options->n > out->n_sets))
        binding_destroy(out);
    return 0;
}

void binding_show(const struct binding *binding, const struct job *job)
{
    hwloc_bitmap_t list = hwloc_bitmap_alloc();
    for (int rank = 0; rank < job->options->n; rank++) {
        const cpu_set_t *set = binding->sets ? &binding->sets[rank % binding->n_sets] : NULL;
        char *text = NULL;
        if (list)
            hwloc_bitmap_zero(list);
        for (unsigned i = 0; set && list && i < CPU_SETSIZE; i++)
            if (CPU_ISSET(i, set))
                hwloc_bitmap_set(list, i);
        if (!set)
            report_error("rank %d on %s is not bound", rank, job->host);
        else if (list && hwloc_bitmap_list_asprintf(&text, list) >= 0)
            report_error("rank %d on %s is bound to processors %s", rank, job->host, text);
        free(text);
    }
    hwloc_bitmap_free(list);
}

void binding_destroy(struct binding *binding)
{
    free(binding->sets);
    *binding = (struct binding){NULL, 0};
}
