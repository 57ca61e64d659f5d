/* --softhca: the ranks get verbs devices in user space. */
#ifndef RUN_SOFTHCA_H
#define RUN_SOFTHCA_H

#include "environment.h"

/* Has the ranks load libsofthca.so, and keeps them apart from other jobs. -1, said on stderr: it was not found. */
int softhca_enable(struct environment *env);

#endif
