/* Programs that cannot join the job, told by the libraries that they load. */
#ifndef RUN_LIBRARIES_H
#define RUN_LIBRARIES_H

/* Warns when the program at `path` uses an MPI library that would make each rank a job of its own. */
void libraries_warn(const char *path);

#endif
