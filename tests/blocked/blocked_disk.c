/* A disk that stops answering: `LD_PRELOAD` this, and name the disk's folder in BLOCKED_DISK.
 *
 * While the file `<folder>.blocked` exists, every call that names a path in the folder waits, as it
 * does on a network mount whose server is gone. It goes on when the file is removed.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { POLL_US = 10000 };

static void wait_for_disk(const char *path) {
    const char *folder = getenv("BLOCKED_DISK");
    char flag[4096];
    if (!folder || !path || strncmp(path, folder, strlen(folder))) return;
    snprintf(flag, sizeof flag, "%s.blocked", folder);
    if (!strcmp(path, flag)) return;
    while (syscall(SYS_faccessat, AT_FDCWD, flag, F_OK) == 0) usleep(POLL_US);
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

int stat64(const char *path, struct stat64 *out) {
    wait_for_disk(path);
    return NEXT(stat64)(path, out);
}
int lstat64(const char *path, struct stat64 *out) {
    wait_for_disk(path);
    return NEXT(lstat64)(path, out);
}
int fstatat64(int folder, const char *path, struct stat64 *out, int flags) {
    wait_for_disk(path);
    return NEXT(fstatat64)(folder, path, out, flags);
}
int statvfs64(const char *path, struct statvfs64 *out) {
    wait_for_disk(path);
    return NEXT(statvfs64)(path, out);
}
DIR *opendir(const char *path) {
    wait_for_disk(path);
    return NEXT(opendir)(path);
}
int open64(const char *path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    int mode = va_arg(more, int);
    va_end(more);
    wait_for_disk(path);
    return NEXT(open64)(path, flags, mode);
}
int openat64(int folder, const char *path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    int mode = va_arg(more, int);
    va_end(more);
    wait_for_disk(path);
    return NEXT(openat64)(folder, path, flags, mode);
}
