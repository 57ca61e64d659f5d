/* The session's folder for files of the PMIx server. */
#ifndef RUN_TMPDIR_H
#define RUN_TMPDIR_H

struct tmpdir {
    char path[4096];
    int lock; /* the folder, flock'ed as long as somebody will remove it */
};

/* Makes it below $TMPDIR or /tmp, and removes those that dead strata-runs of this user left. -1 and a message. */
int tmpdir_create(struct tmpdir *out);
void tmpdir_remove(struct tmpdir *dir);

#endif
