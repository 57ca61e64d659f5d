/* Pseudo-terminals for the output of ranks. */
#ifndef RUN_PTY_H
#define RUN_PTY_H

/* Opens one in raw mode, which changes no byte. 0; or -1 when there is none to be had: no /dev/ptmx, all in use. */
int pty_open(int *our_end, int *rank_end);

#endif
