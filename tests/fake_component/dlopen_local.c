/* A program that loads libstrata the way languages and embedders do, with RTLD_LOCAL: plugins must find the library all
 * the same. Several contexts, one after the other and at once. */
#include <dlfcn.h>
#include <stdio.h>
#include <strata/strata.h>

static int fail(const char *what)
{
    fprintf(stderr, "dlopen_local: %s\n", what);
    return 1;
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return fail("usage: dlopen_local LIBRARY");
    void *lib = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!lib)
        return fail(dlerror());
    int (*init)(const strata_config_t *, strata_t **);
    int (*finalize)(strata_t *);
    int (*size)(const strata_t *);
    *(void **)&init = dlsym(lib, "strata_init");
    *(void **)&finalize = dlsym(lib, "strata_finalize");
    *(void **)&size = dlsym(lib, "strata_size");
    if (!init || !finalize || !size)
        return fail("a symbol is missing");
    if (dlsym(RTLD_DEFAULT, "strata_init"))
        return fail("the library is not local, the test tests nothing");
    for (int i = 0; i < 2; i++) {
        char text[1000];
        strata_config_t config = STRATA_CONFIG_INIT;
        config.error_text = text;
        config.error_text_size = sizeof(text);
        strata_t *a, *b;
        if (init(&config, &a) || init(&config, &b))
            return fail(text);
        if (size(a) != 1 || size(b) != 1)
            return fail("not alone");
        if (finalize(a) || finalize(b))
            return fail("finalize failed");
    }
    printf("fine\n");
    return 0;
}
