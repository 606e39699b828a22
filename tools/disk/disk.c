/* A disk that fails as it is told to, between a process and its files.
 *
 *     cc -shared -fPIC -O2 -o disk.so disk.c
 *     LD_PRELOAD=./disk.so DISK_ROOT=/tmp/x/work DISK_PLAN=eio::3 DISK_FIRED=/tmp/x/fired tacit ...
 *
 * The system calls themselves are caught (seccomp sends SIGSYS), whoever makes them: the programs under test hold no
 * code for this, and libraries that do without the C library are caught too. What is watched is a folder, a MACHINE:
 * DISK_ROOT, or whatever a test names from inside by opening MACHINE/@... for writing, which never succeeds:
 *
 *     @plan:KIND:PART:N   a fault at the Nth call, from 1, on files with PART in their path below MACHINE
 *     @cut:SEED           the folder becomes what a power cut may leave; a dead machine lives again
 *     @forget             watched no more
 *     @fired              the error is "exists" where the plan's fault has come
 *
 *     KIND    counts                    what comes
 *     eio     all calls that change     EIO; at a sync the unsynced bytes are gone
 *     sync    fsync, fdatasync          the same
 *     full    calls that take room      half of a write, and from then on ENOSPC
 *     short   writes                    half of it
 *     crash   all                       a power cut with seed N, another one for each DISK_SEED, and exit code 99; at
 *                                       the process's end if it comes to less than N calls
 *     dead    all                       EIO for every call of this machine until @cut
 *
 * A power cut keeps what was synced: of a file its content at its last sync, of a folder its names at its own. Of the
 * rest a seed chooses: of a file the old bytes, the new ones, the new up to a point, or zeros from there on; of a
 * folder's names the first so many changes. What was there before the process began counts as synced.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

/* The one place from which calls are not caught. */
long disk_raw(long number, long a, long b, long c, long d, long e, long f);
#define RAW 64
#if defined(__x86_64__)
__asm__(".text\n.balign 64\n.globl disk_raw\ndisk_raw:\n"
        "mov %rdi,%rax\nmov %rsi,%rdi\nmov %rdx,%rsi\nmov %rcx,%rdx\nmov %r8,%r10\nmov %r9,%r8\nmov 8(%rsp),%r9\n"
        "syscall\nret\n.balign 64\n");
#define ARGUMENTS(c) {c[REG_RDI], c[REG_RSI], c[REG_RDX], c[REG_R10], c[REG_R8], c[REG_R9]}
#define REGISTERS(u) ((ucontext_t *)u)->uc_mcontext.gregs
#define RESULT REG_RAX
#elif defined(__aarch64__)
__asm__(".text\n.balign 64\n.globl disk_raw\ndisk_raw:\n"
        "mov x8,x0\nmov x0,x1\nmov x1,x2\nmov x2,x3\nmov x3,x4\nmov x4,x5\nmov x5,x6\nsvc 0\nret\n.balign 64\n");
#define ARGUMENTS(c) {c[0], c[1], c[2], c[3], c[4], c[5]}
#define REGISTERS(u) ((ucontext_t *)u)->uc_mcontext.regs
#define RESULT 0
#else
#error "no processor that this knows"
#endif

enum kind { NONE, EIO_, SYNC, FULL, SHORT, CRASH, DEAD };
static const char *const KINDS[] = {"none", "eio", "sync", "full", "short", "crash", "dead"};
/* What a call does: takes room, forces to the disk, or changes names alone. */
enum what { WRITE, ROOM, FORCE, NAMES };

#define MACHINES 256
#define LONGEST 1024
static struct machine {
    char folder[LONGEST], part[64];
    enum kind kind;
    long n, seen;
    int fired;
} machines[MACHINES];

/* A file with bytes that were not synced, and what it held when it was. */
struct file {
    struct file *next;
    struct machine *of;
    ino_t inode;
    int fd;
    char *old;
    size_t length;
};
/* A change of a name that was not synced, the latest first; `grave` is another name of what it removed. */
struct name {
    struct name *next;
    struct machine *of;
    enum { MADE, REMOVED, MOVED } how;
    int is_folder;
    char *folder, *path, *from, *grave;
};
static struct file *files;
static struct name *names;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static __thread int inside;
static long graves;

static struct machine *machine_of(const char *path) {
    for (struct machine *m = machines; m < machines + MACHINES; m++) {
        size_t length = strlen(m->folder);
        if (length && !strncmp(path, m->folder, length) && (path[length] == '/' || !path[length])) return m;
    }
    return NULL;
}

static char *path_of(int fd) {
    static __thread char path[LONGEST];
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    path[length < 0 ? 0 : length] = 0;
    return path;
}

/* The absolute path of `path` in the folder `at`, without steps that lead nowhere. */
static char *absolute(int at, const char *path) {
    char here[LONGEST] = "", *out, *step;
    if (path[0] != '/' && at != AT_FDCWD) snprintf(here, sizeof here, "%s/", path_of(at));
    else if (path[0] != '/' && getcwd(here, sizeof here - 1)) strcat(here, "/");
    if (asprintf(&out, "%s%s", here, path) < 0) abort();
    while ((step = strstr(out, "/./"))) memmove(step, step + 2, strlen(step + 2) + 1);
    while ((step = strstr(out, "//"))) memmove(step, step + 1, strlen(step + 1) + 1);
    return out;
}

static char *parent_of(const char *path) {
    return strndup(path, strrchr(path, '/') - path);
}

/* -- What was not synced ---------------------------------------------------------------------------------------- */

static struct file **find(ino_t inode) {
    struct file **at = &files;
    while (*at && (*at)->inode != inode) at = &(*at)->next;
    return at;
}

static void drop(struct file **at) {
    struct file *gone = *at;
    *at = gone->next;
    close(gone->fd), free(gone->old), free(gone);
}

/* The file is about to change: remembers what it holds, if that was synced. */
static void touch(struct machine *m, const char *path) {
    struct stat now;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &now) || !S_ISREG(now.st_mode) || *find(now.st_ino)) { if (fd >= 0) close(fd); return; }
    struct file *new = calloc(1, sizeof *new);
    *new = (struct file){files, m, now.st_ino, fd, malloc(now.st_size + 1), now.st_size};
    if (pread(fd, new->old, now.st_size, 0) != now.st_size) abort();
    files = new;
}

static void put(struct file *file, const char *bytes, size_t length) {
    if (ftruncate(file->fd, length) || pwrite(file->fd, bytes, length, 0) != (ssize_t)length) abort();
}

static void note(struct machine *m, int how, const char *path, const char *from, char *grave, int is_folder) {
    struct name *new = malloc(sizeof *new);
    char *folder = parent_of(path);
    *new = (struct name){names, m, how, is_folder, folder, strdup(path), from ? strdup(from) : NULL, grave};
    names = new;
}

static char *bury(struct machine *m, const char *path) {
    char *grave;
    if (asprintf(&grave, "%s.graves", m->folder) < 0) abort();
    mkdir(grave, 0700), free(grave);
    if (asprintf(&grave, "%s.graves/%ld", m->folder, ++graves) < 0) abort();
    if (!link(path, grave)) return grave;
    free(grave);
    return NULL;
}

static void let_go(struct name **at) {
    struct name *gone = *at;
    *at = gone->next;
    if (gone->grave) unlink(gone->grave);
    free(gone->folder), free(gone->path), free(gone->from), free(gone->grave), free(gone);
}

static void synced(int fd, int failed) {
    struct stat now;
    if (fstat(fd, &now)) return;
    if (S_ISREG(now.st_mode)) {
        struct file **at = find(now.st_ino);
        if (!*at) return;
        if (failed) put(*at, (*at)->old, (*at)->length);
        drop(at);
    } else if (!failed) {
        const char *folder = path_of(fd);
        for (struct name **at = &names; *at;) if (!strcmp((*at)->folder, folder)) let_go(at); else at = &(*at)->next;
    }
}

/* -- A power cut ------------------------------------------------------------------------------------------------ */

static uint64_t state;
static uint64_t below(uint64_t end) {
    uint64_t z = (state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9, z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return end ? (z ^ (z >> 31)) % end : 0;
}

static void remove_all(const char *path) {
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        char inner[2 * LONGEST];
        snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") && unlink(inner)) remove_all(inner);
    }
    if (folder) closedir(folder);
    rmdir(path);
}

static void undo(struct name *name) {
    if (name->how == MADE) name->is_folder ? remove_all(name->path) : (void)unlink(name->path);
    else if (name->how == MOVED) rename(name->path, name->from);
    if (name->grave) link(name->grave, name->path);
    else if (name->how == REMOVED && name->is_folder) mkdir(name->path, 0700);
}

static void cut(struct machine *m, uint64_t seed) {
    state = seed;
    /* The first `kept` changes of a folder stay, so those that come first from here on are undone. */
    while (1) {
        struct name *one = names;
        while (one && one->of != m) one = one->next;
        if (!one) break;
        char *folder = strdup(one->folder);
        long all = 0;
        for (struct name *other = names; other; other = other->next) all += other->of == m && !strcmp(other->folder, folder);
        long undone = (long)(below(3) ? below(all + 1) : (uint64_t)all);
        for (struct name **at = &names; *at;) {
            if ((*at)->of != m || strcmp((*at)->folder, folder)) { at = &(*at)->next; continue; }
            if (undone-- > 0) undo(*at);
            let_go(at);
        }
        free(folder);
    }
    for (struct file **at = &files; *at;) {
        struct file *file = *at;
        struct stat now;
        if (file->of != m) { at = &file->next; continue; }
        if (fstat(file->fd, &now)) abort();
        size_t size = now.st_size, until = below(size + 1);
        char *mixed = calloc(1, (size > file->length ? size : file->length) + 1);
        if (pread(file->fd, mixed, size, 0) != (ssize_t)size) abort();
        switch (below(5)) {
        case 0: case 1: put(file, file->old, file->length); break;
        case 2: break;
        case 3: /* New up to a point, and old behind it. */
            if (until < file->length) memcpy(mixed + until, file->old + until, file->length - until);
            put(file, mixed, until > file->length ? until : file->length);
            break;
        case 4: /* The length is new, and bytes that the old content did not have are zeros. */
            if (until < file->length) until = file->length;
            if (until < size) memset(mixed + until, 0, size - until);
            put(file, mixed, size);
        }
        free(mixed);
        drop(at);
    }
}

/* -- Calls ------------------------------------------------------------------------------------------------------ */

static void fire(struct machine *m, const char *what, const char *path) {
    const char *told = getenv("DISK_FIRED");
    m->fired = 1;
    if (!told) return;
    int fd = open(told, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dprintf(fd, "%s %s\n", what, path + strlen(m->folder));
    close(fd);
}

static uint64_t seed_of(long n) {
    const char *other = getenv("DISK_SEED");
    return n + (other ? strtoull(other, NULL, 10) << 32 : 0);
}

/* Whether a fault comes instead of the call: its error, negative; 1 for half of a write. */
static long fault(struct machine *m, enum what what, const char *call, const char *path, const char *other) {
    int is_part = strstr(path + strlen(m->folder), m->part) || (other && strstr(other, m->part));
    int takes_room = what == WRITE || what == ROOM;
    if (m->kind == DEAD && m->fired) return -EIO;
    if (m->kind == NONE || !is_part) return 0;
    if (m->kind == FULL && m->fired) return takes_room ? -ENOSPC : 0;
    if ((m->kind == SYNC && what != FORCE) || (m->kind == FULL && !takes_room) || (m->kind == SHORT && what != WRITE)) return 0;
    if (++m->seen != m->n) return 0;
    fire(m, call, path);
    if (m->kind == CRASH) cut(m, seed_of(m->n)), _exit(99);
    if (m->kind == SHORT || (m->kind == FULL && what == WRITE)) return 1;
    return m->kind == FULL ? -ENOSPC : -EIO;
}

/* A name below a machine that tells us something; returns what the caller gets. */
static long told(const char *path) {
    char *folder = parent_of(path), kind[16] = "", part[64] = "";
    const char *word = path + strlen(folder) + 2;
    struct machine *m = machine_of(folder);
    long n = 0, result = -ENOENT;
    if (!strncmp(word, "plan:", 5)) {
        for (m = m ? m : machines; m->folder[0] && strcmp(m->folder, folder); m++) if (m == machines + MACHINES - 1) abort();
        if (sscanf(word + 5, "%15[a-z]:%63[^:]:%ld", kind, part, &n) != 3) part[0] = 0, sscanf(word + 5, "%15[a-z]::%ld", kind, &n);
        snprintf(m->folder, sizeof m->folder, "%s", folder), strcpy(m->part, part);
        m->n = n, m->seen = m->fired = 0, m->kind = NONE;
        for (int k = NONE; k <= DEAD; k++) if (!strcmp(kind, KINDS[k])) m->kind = k;
    } else if (m && sscanf(word, "cut:%ld", &n) == 1) {
        cut(m, n), m->kind = NONE;
    } else if (m && !strcmp(word, "forget")) {
        for (struct file **at = &files; *at;) if ((*at)->of == m) drop(at); else at = &(*at)->next;
        for (struct name **at = &names; *at;) if ((*at)->of == m) let_go(at); else at = &(*at)->next;
        memset(m, 0, sizeof *m);
    } else if (m && !strcmp(word, "fired") && m->fired) result = -EEXIST;
    free(folder);
    return result;
}

static int exists(const char *path) {
    struct stat found;
    return !lstat(path, &found);
}

static long opened(long number, long *a, int at, const char *name, int flags) {
    char *path = absolute(at, name), *last = strrchr(path, '/');
    struct machine *m = machine_of(path);
    long result = last && last[1] == '@' ? told(path) : 0;
    int is_new = !result && m && (flags & O_CREAT) && !exists(path);
    if (!result && m && (is_new || (flags & O_TRUNC))) result = fault(m, ROOM, "open", path, NULL);
    if (!result) {
        if (m && (flags & O_TRUNC)) touch(m, path);
        result = disk_raw(number, a[0], a[1], a[2], a[3], a[4], a[5]);
        if (result >= 0 && is_new) note(m, MADE, path, NULL, NULL, 0), touch(m, path);
    }
    free(path);
    return result;
}

/* A call on an open file; `length` is where its number of bytes stands, if it has one. */
static long on_file(long number, long *a, int fd, enum what what, const char *call, long *length) {
    char path[LONGEST];
    snprintf(path, sizeof path, "%s", path_of(fd));
    struct machine *m = machine_of(path);
    long result = m ? fault(m, what, call, path, NULL) : 0;
    struct iovec one;
    if (result < 0) {
        if (what == FORCE && m->kind != DEAD) synced(fd, 1);
        return result;
    }
    if (m && what != FORCE) touch(m, path);
    if (result == 1 && !length) one = *(struct iovec *)a[1], one.iov_len /= 2, a[1] = (long)&one, a[2] = 1;
    else if (result == 1 && *length > 1) *length /= 2;
    else if (result == 1 && m->kind == FULL) return -ENOSPC;
    /* What is on the disk is what we remember: nothing has to wait for the real one. */
    if (m && what == FORCE) return synced(fd, 0), 0;
    return disk_raw(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* Whether a file of this length is longer than now: a full disk makes files shorter. */
static int grows(int fd, long length) {
    struct stat found;
    return !fstat(fd, &found) && length > found.st_size;
}

static long made(long number, long *a, int at, const char *name, int is_folder) {
    char *path = absolute(at, name);
    struct machine *m = machine_of(path);
    long result = m ? fault(m, ROOM, is_folder ? "mkdir" : "link", path, NULL) : 0;
    if (!result) {
        result = disk_raw(number, a[0], a[1], a[2], a[3], a[4], a[5]);
        if (m && !result) note(m, MADE, path, NULL, NULL, is_folder);
    }
    free(path);
    return result;
}

static long removed(long number, long *a, int at, const char *name, int is_folder) {
    char *path = absolute(at, name), *grave = NULL;
    struct machine *m = machine_of(path);
    long result = m ? fault(m, NAMES, is_folder ? "rmdir" : "unlink", path, NULL) : 0;
    if (!result) {
        if (m && !is_folder) grave = bury(m, path);
        result = disk_raw(number, a[0], a[1], a[2], a[3], a[4], a[5]);
        if (m && !result) note(m, REMOVED, path, NULL, grave, is_folder);
        else if (grave) unlink(grave), free(grave);
    }
    free(path);
    return result;
}

static long moved(long number, long *a, int from_at, const char *from_name, int at, const char *name) {
    char *from = absolute(from_at, from_name), *path = absolute(at, name), *grave = NULL;
    struct machine *m = machine_of(path);
    long result = m ? fault(m, NAMES, "rename", path, from) : 0;
    if (!result) {
        if (m && exists(path)) grave = bury(m, path);
        result = disk_raw(number, a[0], a[1], a[2], a[3], a[4], a[5]);
        if (m && !result) note(m, MOVED, path, from, grave, 0);
        else if (grave) unlink(grave), free(grave);
    }
    free(from), free(path);
    return result;
}

static long called(long number, long *a) {
    #define TEXT(i) ((const char *)a[i])
    switch (number) {
    case SYS_openat: return opened(number, a, a[0], TEXT(1), a[2]);
    case SYS_write: return on_file(number, a, a[0], WRITE, "write", &a[2]);
    case SYS_pwrite64: return on_file(number, a, a[0], WRITE, "pwrite", &a[2]);
    case SYS_writev: return on_file(number, a, a[0], WRITE, "writev", NULL);
    case SYS_copy_file_range: return on_file(number, a, a[2], WRITE, "copy_file_range", &a[4]);
    case SYS_sendfile: return on_file(number, a, a[0], WRITE, "sendfile", &a[3]);
    case SYS_ftruncate: return on_file(number, a, a[0], grows(a[0], a[1]) ? ROOM : NAMES, "ftruncate", NULL);
    case SYS_fallocate: return on_file(number, a, a[0], ROOM, "fallocate", NULL);
    case SYS_fsync: return on_file(number, a, a[0], FORCE, "fsync", NULL);
    case SYS_fdatasync: return on_file(number, a, a[0], FORCE, "fdatasync", NULL);
    case SYS_mkdirat: return made(number, a, a[0], TEXT(1), 1);
    case SYS_linkat: return made(number, a, a[2], TEXT(3), 0);
    case SYS_unlinkat: return removed(number, a, a[0], TEXT(1), a[2] & AT_REMOVEDIR);
    case SYS_renameat2: return moved(number, a, a[0], TEXT(1), a[2], TEXT(3));
#ifdef SYS_renameat
    case SYS_renameat: return moved(number, a, a[0], TEXT(1), a[2], TEXT(3));
#endif
#ifdef SYS_open
    case SYS_open: return opened(number, a, AT_FDCWD, TEXT(0), a[1]);
    case SYS_rename: return moved(number, a, AT_FDCWD, TEXT(0), AT_FDCWD, TEXT(1));
    case SYS_unlink: return removed(number, a, AT_FDCWD, TEXT(0), 0);
    case SYS_rmdir: return removed(number, a, AT_FDCWD, TEXT(0), 1);
    case SYS_mkdir: return made(number, a, AT_FDCWD, TEXT(0), 1);
    case SYS_link: return made(number, a, AT_FDCWD, TEXT(1), 0);
#endif
    default: return disk_raw(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    }
}

static void caught(int signal, siginfo_t *info, void *context) {
    (void)signal;
    long a[6] = ARGUMENTS(REGISTERS(context)), number = info->si_syscall, result;
    /* Our own calls through the C library come here too. */
    if (inside) result = disk_raw(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    else {
        int kept = errno;
        inside = 1, pthread_mutex_lock(&turn);
        result = called(number, a);
        pthread_mutex_unlock(&turn), inside = 0;
        errno = kept;
    }
    REGISTERS(context)[RESULT] = result;
}

static const int CAUGHT[] = {
    SYS_write, SYS_pwrite64, SYS_writev, SYS_copy_file_range, SYS_sendfile, SYS_ftruncate, SYS_fallocate, SYS_fsync,
    SYS_fdatasync, SYS_mkdirat, SYS_linkat, SYS_unlinkat, SYS_renameat2,
#ifdef SYS_renameat
    SYS_renameat,
#endif
#ifdef SYS_open
    SYS_rename, SYS_unlink, SYS_rmdir, SYS_mkdir, SYS_link,
#endif
};

__attribute__((constructor)) static void begin(void) {
    const char *root = getenv("DISK_ROOT"), *plan = getenv("DISK_PLAN");
    if (root && plan) {
        char word[LONGEST];
        snprintf(word, sizeof word, "%s/@plan:%s", root, plan), told(word);
    }
    struct sigaction action = {.sa_sigaction = caught, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGSYS, &action, NULL);
    struct sock_filter code[3 * 32 + 16];
    unsigned short at = 0;
    #define LOAD(field) code[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, field)
    #define IF(test, value, yes, no) code[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | test | BPF_K, value, yes, no)
    #define RETURN(value) code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, value)
    const unsigned changes = O_CREAT | O_TRUNC | O_WRONLY | O_RDWR;
    LOAD(offsetof(struct seccomp_data, instruction_pointer));
    IF(BPF_JGE, (uint32_t)(uintptr_t)disk_raw, 0, 2);
    IF(BPF_JGE, (uint32_t)(uintptr_t)disk_raw + RAW, 1, 0);
    RETURN(SECCOMP_RET_ALLOW);
    LOAD(offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < sizeof CAUGHT / sizeof *CAUGHT; i++) { IF(BPF_JEQ, CAUGHT[i], 0, 1); RETURN(SECCOMP_RET_TRAP); }
    IF(BPF_JEQ, SYS_openat, 0, 3); LOAD(offsetof(struct seccomp_data, args[2])); IF(BPF_JSET, changes, 0, 1); RETURN(SECCOMP_RET_TRAP);
#ifdef SYS_open
    LOAD(offsetof(struct seccomp_data, nr));
    IF(BPF_JEQ, SYS_open, 0, 3); LOAD(offsetof(struct seccomp_data, args[1])); IF(BPF_JSET, changes, 0, 1); RETURN(SECCOMP_RET_TRAP);
#endif
    RETURN(SECCOMP_RET_ALLOW);
    struct sock_fprog program = {at, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
        perror("disk: calls cannot be caught here"), _exit(98);
    }
}

__attribute__((destructor)) static void end(void) {
    inside = 1;
    for (struct machine *m = machines; m < machines + MACHINES; m++) if (m->kind == CRASH && !m->fired) cut(m, seed_of(m->n));
}
