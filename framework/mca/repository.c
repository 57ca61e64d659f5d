/* The repository of opened plugins: the one piece of process-wide mutable state of the component system, by nature (the
 * dynamic loader is process-wide), guarded by one mutex and counted by context.
 *
 * A plugin is opened once and shared by all contexts. Its code stays mapped until the process ends, even when the last
 * context has gone: fork handlers and thread-specific destructors of libraries that it pulled in may still point into
 * it. What the count frees is the repository's own bookkeeping. A plugin that fails a check is closed at once. */
#define _GNU_SOURCE
#include "framework/mca/internal.h"
#include "framework/mca/component_table.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <ltdl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct opened {
    struct opened *next;
    dev_t dev;
    ino_t ino;
    const struct st_component *component;
    char symbol[300];
};

static struct {
    pthread_mutex_t lock;
    unsigned users;
    bool ltdl_ready;
    struct opened *opened;
} repository = {.lock = PTHREAD_MUTEX_INITIALIZER};

#define FILE_PREFIX "strata_"

/* ---- the list that a context gets ---------------------------------------------------------------------------- */

static struct st_plugin *repository_find(struct st_plugin_list *list, const char *framework, const char *name)
{
    for (size_t i = 0; i < list->n; i++)
        if (!strcmp(list->v[i].framework, framework) && !strcmp(list->v[i].name, name))
            return &list->v[i];
    return NULL;
}

static void repository_free_plugin(struct st_plugin *p)
{
    free(p->framework);
    free(p->name);
    free(p->path);
    free(p->reason);
}

static int repository_append(struct st_plugin_list *list, const char *framework, size_t framework_length,
                             const char *name, size_t name_length, const char *path, const struct st_component *c,
                             const char *reason)
{
    if (list->n == list->room && list->fixed)
        return STRATA_OK; /* came into a folder while the job ran */
    if (list->n == list->room) {
        size_t room = list->room ? 2 * list->room : 16;
        struct st_plugin *v = realloc(list->v, room * sizeof(*v));
        if (!v)
            return STRATA_ERR_NOMEM;
        list->v = v;
        list->room = room;
    }
    struct st_plugin p = {
        strndup(framework, framework_length), strndup(name, name_length), strdup(path), c, strdup(reason), false};
    if (!p.framework || !p.name || !p.path || !p.reason) {
        repository_free_plugin(&p);
        return STRATA_ERR_NOMEM;
    }
    list->v[list->n++] = p;
    return STRATA_OK;
}

static int repository_by_name(const void *a, const void *b)
{
    const struct st_plugin *x = a, *y = b;
    int d = strcmp(x->framework, y->framework);
    return d ? d : strcmp(x->name, y->name);
}

/* ---- opening one file ------------------------------------------------------------------------------------------ */

static const char *repository_ltdl_reason(void)
{
    const char *text = lt_dlerror();
    return text && *text ? text : "no reason given";
}

/* Opens through libltdl, privately: two plugins may use the same names, and nothing of ours leaks into an embedding
 * process. The loader itself is asked first, for two things that libltdl does not do: it binds every function now (a
 * missing one would else end the process at its first call) and it says why it fails (libltdl says "file not found").
 */
static lt_dlhandle repository_load(const char *path, char *why, size_t why_size)
{
    void *bound = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!bound) {
        const char *text = dlerror();
        size_t n = strlen(path);
        if (text && !strncmp(text, path, n) && text[n] == ':') /* the path is shown beside the reason anyway */
            text += n + 1 + (text[n + 1] == ' ');
        st_mca_fail(0, why, why_size, "cannot be loaded: %s", text ? text : "the loader gives no reason");
        return NULL;
    }
    lt_dladvise advise = NULL;
    lt_dlhandle h = NULL;
    if (!lt_dladvise_init(&advise) && !lt_dladvise_local(&advise))
        h = lt_dlopenadvise(path, advise);
    if (!h)
        st_mca_fail(0, why, why_size, "cannot be loaded: %s", repository_ltdl_reason());
    if (advise)
        lt_dladvise_destroy(&advise);
    dlclose(bound); /* the handle of libltdl keeps it */
    return h;
}

static const struct st_component *repository_open_file(const char *path, const char *framework, const char *name,
                                                       char *why, size_t why_size)
{
    struct stat st;
    char symbol[300];
    if (st_elf_check(path, why, why_size))
        return NULL;
    if (stat(path, &st)) {
        st_mca_fail(0, why, why_size, "cannot be examined: %s", strerror(errno));
        return NULL;
    }
    snprintf(symbol, sizeof(symbol), "st_component_%s_%s", framework, name);
    for (struct opened *o = repository.opened; o; o = o->next)
        if (o->dev == st.st_dev && o->ino == st.st_ino && !strcmp(o->symbol, symbol))
            return o->component;

    lt_dlhandle handle = repository_load(path, why, why_size);
    if (!handle)
        return NULL;
    const struct st_component *c = lt_dlsym(handle, symbol);
    if (!c) {
        st_mca_fail(0, why, why_size, "has no symbol %s", symbol);
        lt_dlclose(handle);
        return NULL;
    }
    struct opened *o = calloc(1, sizeof(*o));
    if (!o || st_component_check(c, framework, name, why, why_size)) {
        if (!o)
            st_mca_fail(0, why, why_size, "out of memory");
        free(o);
        lt_dlclose(handle);
        return NULL;
    }
    lt_dlmakeresident(handle);
    *o = (struct opened){.next = repository.opened, .dev = st.st_dev, .ino = st.st_ino, .component = c};
    memcpy(o->symbol, symbol, sizeof(symbol));
    repository.opened = o;
    return c;
}

/* ---- searching folders ------------------------------------------------------------------------------------------ */

/* Splits "strata_<framework>_<name>.so" or ".la". */
static bool repository_split_file_name(const char *file, const char **framework, size_t *framework_length,
                                       const char **name, size_t *name_length, bool *libtool_file)
{
    size_t prefix = strlen(FILE_PREFIX), n = strlen(file);
    if (n < prefix + 6 || strncmp(file, FILE_PREFIX, prefix))
        return false;
    const char *suffix = file + n - 3;
    if (strcmp(suffix, ".so") && strcmp(suffix, ".la"))
        return false;
    *libtool_file = suffix[1] == 'l';
    *framework = file + prefix;
    const char *line = strchr(*framework, '_');
    if (!line || line == *framework || line + 1 >= suffix)
        return false;
    *framework_length = (size_t)(line - *framework);
    *name = line + 1;
    *name_length = (size_t)(suffix - *name);
    return *framework_length + *name_length < 96;
}

/* The object behind a file: libtool's .la text of a build tree stands for .libs/X.so, of an installation for X.so. */
static char *repository_object_path(const char *folder, const char *file, bool libtool_file)
{
    char *path = NULL;
    struct stat st;
    int stem = (int)strlen(file) - 3;
    if (!libtool_file)
        return asprintf(&path, "%s/%s", folder, file) < 0 ? NULL : path;
    if (asprintf(&path, "%s/.libs/%.*s.so", folder, stem, file) < 0)
        return NULL;
    if (!stat(path, &st))
        return path;
    free(path);
    return asprintf(&path, "%s/%.*s.so", folder, stem, file) < 0 ? NULL : path;
}

/* An entry without a component gets that of another file, or the reason why the file that was left out has none. Takes
 * the path. */
static int repository_renew(struct st_plugin *known, char *path, const struct st_component *c, const char *why)
{
    char *reason = known->left_out ? strdup(why) : NULL;
    int rc = known->left_out && !reason ? STRATA_ERR_NOMEM : STRATA_OK;
    if (reason) {
        free(known->reason);
        known->reason = reason;
        known->left_out = false;
    } else if (!c) {
        free(path); /* the first reason stays */
        return rc;
    }
    free(known->path);
    known->path = path;
    known->component = c;
    return rc;
}

static int repository_add_file(struct st_plugin_list *list, const struct st_wanted *wanted, const char *folder,
                               const char *file)
{
    const char *framework, *name;
    size_t nf, nn;
    bool la;
    if (!repository_split_file_name(file, &framework, &nf, &name, &nn, &la))
        return STRATA_OK;
    char fw[128], nm[128], why[768] = "";
    snprintf(fw, sizeof(fw), "%.*s", (int)nf, framework);
    snprintf(nm, sizeof(nm), "%.*s", (int)nn, name);
    enum st_want want = wanted->want(wanted, fw, nm);
    if (want == ST_WANT_LATER) {
        list->n_left++;
        return STRATA_OK;
    }
    struct st_plugin *known = repository_find(list, fw, nm);
    if (known && (known->component || want == ST_WANT_NAME))
        return STRATA_OK; /* an earlier folder has it */
    char *path = repository_object_path(folder, file, la);
    if (!path)
        return STRATA_ERR_NOMEM;
    bool same = known && !known->left_out && !strcmp(known->path, path); /* .la and .so of the same object */
    const struct st_component *c =
        same || want == ST_WANT_NAME ? NULL : repository_open_file(path, fw, nm, why, sizeof(why));
    if (known)
        return same ? (free(path), STRATA_OK) : repository_renew(known, path, c, why);
    size_t n = list->n;
    int rc = repository_append(list, fw, nf, nm, nn, path, c, why);
    if (list->n > n)
        list->v[n].left_out = want == ST_WANT_NAME;
    free(path);
    return rc;
}

static int repository_add_folder(struct st_plugin_list *list, const struct st_wanted *wanted, const char *folder)
{
    struct dirent **entries;
    int n = scandir(folder, &entries, NULL, alphasort);
    int rc = STRATA_OK;
    if (n < 0)
        return errno == ENOMEM ? STRATA_ERR_NOMEM : STRATA_OK; /* a folder need not exist */
    for (int i = 0; i < n; i++) {
        if (!rc)
            rc = repository_add_file(list, wanted, folder, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return rc;
}

static int repository_add_folders(struct st_plugin_list *list, const struct st_wanted *wanted, const char *folders)
{
    int rc = STRATA_OK;
    while (!rc && *folders) {
        size_t n = strcspn(folders, ":");
        if (n) {
            char *folder = strndup(folders, n);
            rc = folder ? repository_add_folder(list, wanted, folder) : STRATA_ERR_NOMEM;
            free(folder);
        }
        folders += n + (folders[n] == ':');
    }
    return rc;
}

static int repository_add_linked(struct st_plugin_list *list, const struct st_wanted *wanted)
{
    int rc = STRATA_OK;
    char why[768];
    for (const struct st_component *const *c = st_component_table; *c && !rc; c++) {
        why[0] = '\0';
        if (wanted->want(wanted, (*c)->framework, (*c)->name) == ST_WANT_LATER) {
            list->n_left++;
            continue;
        }
        bool ok = !st_component_check(*c, (*c)->framework, (*c)->name, why, sizeof(why));
        rc = repository_append(list, (*c)->framework, strlen((*c)->framework), (*c)->name, strlen((*c)->name),
                               ST_LINKED_IN, ok ? *c : NULL, why);
    }
    return rc;
}

/* ---- users ------------------------------------------------------------------------------------------------------ */

static void repository_drop_user(void)
{
    if (--repository.users)
        return;
    while (repository.opened) {
        struct opened *o = repository.opened;
        repository.opened = o->next;
        free(o);
    }
}

static int repository_add_all(struct st_plugin_list *list, const struct st_wanted *wanted, const char *folders)
{
    int rc = repository_add_linked(list, wanted);
    return rc ? rc : repository_add_folders(list, wanted, folders);
}

/* Room for what was left out, so that no entry moves when it is added. */
static int repository_keep_room(struct st_plugin_list *list)
{
    struct st_plugin *v = realloc(list->v, (list->n + list->n_left + 1) * sizeof(*v));
    if (!v)
        return STRATA_ERR_NOMEM;
    list->v = v;
    list->room = list->n + list->n_left;
    list->fixed = true;
    return STRATA_OK;
}

int st_repository_open(const char *folders, const struct st_wanted *wanted, struct st_plugin_list *out, char *err,
                       size_t err_size)
{
    struct st_plugin_list list = {0};
    int rc = STRATA_OK;
    pthread_mutex_lock(&repository.lock);
    repository.users++;
    if (!repository.ltdl_ready && lt_dlinit())
        rc = st_mca_fail(STRATA_ERR_SYSTEM, err, err_size, "libltdl cannot be started: %s", repository_ltdl_reason());
    else
        repository.ltdl_ready = true;
    if (!rc) {
        rc = repository_add_all(&list, wanted, folders);
        if (!rc)
            rc = repository_keep_room(&list);
        if (rc)
            st_mca_fail(rc, err, err_size, "out of memory while searching for components in %s", folders);
    }
    if (rc)
        repository_drop_user();
    pthread_mutex_unlock(&repository.lock);
    if (rc) {
        for (size_t i = 0; i < list.n; i++)
            repository_free_plugin(&list.v[i]);
        free(list.v);
        return rc;
    }
    if (list.n)
        qsort(list.v, list.n, sizeof(*list.v), repository_by_name);
    *out = list;
    return STRATA_OK;
}

int st_repository_add(const char *folders, const struct st_wanted *wanted, struct st_plugin_list *list)
{
    size_t n = list->n, n_left = list->n_left;
    pthread_mutex_lock(&repository.lock);
    int rc = repository_add_all(list, wanted, folders);
    pthread_mutex_unlock(&repository.lock);
    list->n_left = n_left;
    if (list->n > n)
        qsort(list->v + n, list->n - n, sizeof(*list->v), repository_by_name);
    return rc;
}

void st_repository_close(struct st_plugin_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        repository_free_plugin(&list->v[i]);
    free(list->v);
    *list = (struct st_plugin_list){0};
    pthread_mutex_lock(&repository.lock);
    repository_drop_user();
    pthread_mutex_unlock(&repository.lock);
}
