// output.c - write beside the place, then rename.
//
// The names of the unfinished files are in `unfinished`, where the signal handler finds them. A
// place in it is written with the signals blocked, so the handler never sees half a name; threads
// beside the one that opens files keep those signals blocked.
#include "output.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_UNFINISHED 8

struct wr_output {
    FILE *file;    // NULL once closed
    bool in_place; // written to as it is: no renaming
    int place;     // in `unfinished`; -1: in none
    mode_t mode;   // of the file to come
    char path[PATH_MAX];
};

static char unfinished[MAX_UNFINISHED][PATH_MAX]; // "": a free place

static const int ending_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGXCPU, SIGXFSZ};
#define ENDING_COUNT (sizeof(ending_signals) / sizeof(ending_signals[0]))

static void remove_unfinished(int number) {
    for (int i = 0; i < MAX_UNFINISHED; i++)
        if (unfinished[i][0] != '\0') unlink(unfinished[i]);
    signal(number, SIG_DFL);
    raise(number);
}

// A signal that is ignored stays so.
static void handle_signals(void) {
    static bool done;
    for (size_t i = 0; !done && i < ENDING_COUNT; i++) {
        struct sigaction action;
        if (sigaction(ending_signals[i], NULL, &action) != 0 || action.sa_handler != SIG_DFL)
            continue;
        action.sa_handler = remove_unfinished;
        sigfillset(&action.sa_mask);
        sigaction(ending_signals[i], &action, NULL);
    }
    done = true;
}

static void block_signals(sigset_t *before) {
    sigset_t ending;
    sigemptyset(&ending);
    for (size_t i = 0; i < ENDING_COUNT; i++) sigaddset(&ending, ending_signals[i]);
    pthread_sigmask(SIG_BLOCK, &ending, before);
}

static int free_place(void) {
    for (int i = 0; i < MAX_UNFINISHED; i++)
        if (unfinished[i][0] == '\0') return i;
    return -1;
}

// Makes the temporary file and notes its name.
static int create_unfinished(struct wr_output *output) {
    const char *slash = strrchr(output->path, '/');
    int folder = slash != NULL ? (int)(slash + 1 - output->path) : 0;
    int place = free_place();
    char name[PATH_MAX];
    sigset_t before;
    int fd;
    if (place < 0 || snprintf(name, sizeof(name), "%.*s.%s.XXXXXX", folder, output->path,
                              output->path + folder) >= (int)sizeof(name)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    block_signals(&before);
    fd = mkstemp(name);
    if (fd >= 0) strcpy(unfinished[place], name);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    output->place = fd >= 0 ? place : -1;
    return fd;
}

static FILE *open_beside(struct wr_output *output) {
    int fd = create_unfinished(output);
    if (fd < 0) return NULL;
    FILE *file = fchmod(fd, output->mode) == 0 ? fdopen(fd, "w") : NULL;
    if (file == NULL) close(fd);
    return file;
}

static mode_t usual_mode(void) {
    mode_t mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
}

static FILE *open_output(struct wr_output *output, const char *path) {
    struct stat status;
    bool exists = stat(path, &status) == 0;
    output->in_place = strcmp(path, "-") == 0 || (exists && !S_ISREG(status.st_mode));
    if (strcmp(path, "-") == 0) return stdout;
    if (output->in_place) return fopen(path, "w");
    output->mode = exists ? status.st_mode & 07777 : usual_mode();
    // Through a symbolic link, so that the file is replaced and not the link.
    if (exists && realpath(path, output->path) == NULL) return NULL;
    return open_beside(output);
}

bool wr_output_open(struct wr_output **output, const char *path, struct wr_fault *fault) {
    struct wr_output *made = calloc(1, sizeof(*made));
    *output = NULL;
    if (made == NULL) return wr_fault(fault, "%s: no memory to write it", path);
    made->place = -1;
    handle_signals();
    if (strlen(path) < sizeof(made->path)) {
        strcpy(made->path, path);
        made->file = open_output(made, path);
    } else {
        errno = ENAMETOOLONG;
    }
    if (made->file == NULL) {
        wr_fault(fault, "%s: cannot be written: %s; name a file in a folder that you may write to",
                 path, strerror(errno));
        wr_output_destroy(made);
        return false;
    }
    *output = made;
    return true;
}

FILE *wr_output_file(const struct wr_output *output) {
    return output->file;
}

bool wr_output_close(struct wr_output *output, struct wr_fault *fault) {
    FILE *file = output->file;
    if (file == NULL) return true;
    bool failed = ferror(file) != 0;
    errno = 0;
    failed |= fflush(file) != 0;
    if (!output->in_place) failed |= fsync(fileno(file)) != 0;
    if (file != stdout) failed |= fclose(file) != 0;
    output->file = NULL;
    if (!failed) return true;
    const char *name = file == stdout ? "standard output" : output->path;
    return wr_fault(fault, "%s: cannot be written: %s", name,
                    errno != 0 ? strerror(errno) : "an earlier write failed");
}

static void forget(struct wr_output *output) {
    sigset_t before;
    block_signals(&before);
    unfinished[output->place][0] = '\0';
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    output->place = -1;
}

bool wr_output_publish(struct wr_output *output, struct wr_fault *fault) {
    if (!wr_output_close(output, fault)) return false;
    if (output->in_place) return true;
    if (rename(unfinished[output->place], output->path) != 0)
        return wr_fault(fault, "%s: cannot be written: %s", output->path, strerror(errno));
    forget(output);
    return true;
}

void wr_output_destroy(struct wr_output *output) {
    if (output == NULL) return;
    if (output->file != NULL && output->file != stdout) fclose(output->file);
    if (output->place >= 0) {
        unlink(unfinished[output->place]);
        forget(output);
    }
    free(output);
}
