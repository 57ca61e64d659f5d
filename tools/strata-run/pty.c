/* The C library of a rank writes lines at once to a terminal and holds kilobytes back from a pipe, which are lost when
 * the rank is killed. The terminal controls no process: both ends are opened with O_NOCTTY. */
#define _GNU_SOURCE
#include "pty.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

int pty_open(int *our_end, int *rank_end)
{
    struct termios mode;
    int ours = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), theirs = -1;
    if (ours < 0)
        return -1;
    if (grantpt(ours) != 0 || unlockpt(ours) != 0)
        goto close_ours;
    theirs = ioctl(ours, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (theirs < 0 || tcgetattr(theirs, &mode) != 0)
        goto close_theirs;
    cfmakeraw(&mode);
    if (tcsetattr(theirs, TCSANOW, &mode) != 0)
        goto close_theirs;
    *our_end = ours;
    *rank_end = theirs;
    return 0;
close_theirs:
    if (theirs >= 0)
        close(theirs);
close_ours:
    close(ours);
    return -1;
}
