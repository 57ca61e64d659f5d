/* The secret that the processes of links share. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "channel/link.h"

enum { SECRET_LEAST = 16 };
static const char secret_variable[] = "STRATA_CHANNEL_SECRET", secret_file[] = "STRATA_CHANNEL_SECRET_FILE";

static int secret_take(strata_channel_link_t *l, const char *text, const char *from)
{
    size_t n = strlen(text);

    if (n < SECRET_LEAST)
        return link_fail(l, STRATA_ERR_ARG, "%s: the secret has %zu bytes; it takes %d or more", from, n, SECRET_LEAST);
    st_hmac(secret_variable, sizeof(secret_variable), text, n, l->secret);
    return STRATA_OK;
}

static int secret_read(strata_channel_link_t *l, const char *name)
{
    char *text = NULL;
    size_t size = 0;
    struct stat st;
    FILE *f = fopen(name, "re");
    int rc;

    if (!f)
        return link_fail(l, STRATA_ERR_SYSTEM, "%s: %s: %s", secret_file, name, strerror(errno));
    if (fstat(fileno(f), &st) != 0 || st.st_mode & (S_IRGRP | S_IROTH | S_IWGRP | S_IWOTH))
        rc = link_fail(l, STRATA_ERR_ARG, "%s: others may read or write %s; chmod 600 it", secret_file, name);
    else if (getline(&text, &size, f) < 0)
        rc = link_fail(l, STRATA_ERR_ARG, "%s: %s is empty", secret_file, name);
    else {
        text[strcspn(text, "\n")] = 0;
        rc = secret_take(l, text, name);
    }
    if (text)
        explicit_bzero(text, size);
    free(text);
    (void)fclose(f);
    return rc;
}

int link_secret(strata_channel_link_t *l)
{
    const char *text = getenv(secret_variable), *file = getenv(secret_file);

    if (text && *text)
        return secret_take(l, text, secret_variable);
    if (file && *file)
        return secret_read(l, file);
    return link_fail(l, STRATA_ERR_ARG, "channels without a job need a secret: set %s, or %s to a file that has it",
                     secret_variable, secret_file);
}
