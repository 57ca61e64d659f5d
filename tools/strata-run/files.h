/* --output-filename: what each rank writes, in files of its own. */
#ifndef RUN_FILES_H
#define RUN_FILES_H

#include <stdbool.h>
#include <stddef.h>

/* Makes the folder, and those above it. 0, or -1 with the message printed. */
int files_prepare(const char *folder);
/* Opens FOLDER/rank.N/stdout and stderr for writing, empty. 0, or -1 with the message printed. */
int files_open(const char *folder, int rank, int fds[2]);
/* Writes all of it; false, with the message printed, when that fails. */
bool files_write(const char *folder, int rank, bool is_stderr, int fd, const char *data, size_t n);

#endif
