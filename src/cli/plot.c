// plot.c - gnuplot reads its script from an unnamed file and writes the picture to standard output,
// which is the file to come: no pipe that could fill up or break, no name to quote.
#include "plot.h"

#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "output.h"

struct wr_plot {
    struct wr_output *output;
    FILE *script;
    FILE *complaints; // gnuplot's standard error
    const char *path; // the caller's
};

static const char *terminal_of(const char *path) {
    const char *dot = strrchr(path, '.');
    if (dot != NULL && strcmp(dot, ".svg") == 0) return "svg noenhanced background 'white'";
    if (dot != NULL && strcmp(dot, ".png") == 0) return "pngcairo noenhanced";
    return NULL;
}

bool wr_plot_is_name(const char *path) {
    return terminal_of(path) != NULL;
}

static bool is_program(const char *folder, size_t length, const char *name) {
    char path[PATH_MAX];
    int wrote = snprintf(path, sizeof(path), "%.*s/%s", (int)length, folder, name);
    return length > 0 && wrote < (int)sizeof(path) && access(path, X_OK) == 0;
}

static bool have_gnuplot(void) {
    const char *folder = getenv("PATH");
    while (folder != NULL && *folder != '\0') {
        size_t length = strcspn(folder, ":");
        if (is_program(folder, length, "gnuplot")) return true;
        folder += length + (folder[length] == ':');
    }
    return false;
}

static bool begin(struct wr_plot *plot, int width, int height, struct wr_fault *fault) {
    const char *terminal = terminal_of(plot->path);
    if (terminal == NULL)
        return wr_fault(fault, "%.200s: a plot is a file whose name ends in .svg or .png",
                        plot->path);
    if (!have_gnuplot())
        return wr_fault(fault,
                        "%.200s: plots are drawn by gnuplot, which is not in the PATH; install "
                        "it (apt-get install gnuplot-nox), or do without the plot",
                        plot->path);
    plot->script = tmpfile();
    plot->complaints = tmpfile();
    if (plot->script == NULL || plot->complaints == NULL)
        return wr_fault(fault, "%.200s: no temporary file for its data: %s", plot->path,
                        strerror(errno));
    fprintf(plot->script, "set terminal %s size %d,%d font 'sans,10'\nset encoding utf8\n",
            terminal, width, height);
    return wr_output_open(&plot->output, plot->path, fault);
}

bool wr_plot_open(struct wr_plot **plot, const char *path, int width, int height,
                  struct wr_fault *fault) {
    struct wr_plot *made = calloc(1, sizeof(*made));
    *plot = NULL;
    if (made == NULL) return wr_fault(fault, "%.200s: no memory", path);
    made->path = path;
    if (!begin(made, width, height, fault)) {
        wr_plot_destroy(made);
        return false;
    }
    *plot = made;
    return true;
}

FILE *wr_plot_script(const struct wr_plot *plot) {
    return plot->script;
}

void wr_plot_write_text(FILE *script, struct wr_text text, size_t bytes_max) {
    char shown[512] = "";
    wr_text_show(shown, bytes_max < sizeof(shown) ? bytes_max : sizeof(shown), text);
    fputc('"', script);
    for (const char *at = shown; *at != '\0'; at++) {
        if (*at == '\\') fputc('\\', script);
        fputc(*at == '"' ? '\'' : *at, script);
    }
    fputc('"', script);
}

// gnuplot's exit status, or -1 with errno.
static int run_gnuplot(const struct wr_plot *plot) {
    extern char **environ;
    char name[] = "gnuplot", defaults[] = "-d";
    char *const arguments[] = {name, defaults, NULL};
    posix_spawn_file_actions_t actions;
    int status = -1;
    pid_t child;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fileno(plot->script), STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, fileno(wr_output_file(plot->output)), STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, fileno(plot->complaints), STDERR_FILENO);
    errno = posix_spawnp(&child, name, &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (errno != 0) return -1;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    return status;
}

// Some words that gnuplot said.
static void read_complaint(struct wr_plot *plot, char *line, size_t room) {
    rewind(plot->complaints);
    *line = '\0';
    while (fgets(line, (int)room, plot->complaints) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (strspn(line, " ^\t") < strlen(line)) return;
    }
}

bool wr_plot_draw(struct wr_plot *plot, struct wr_fault *fault) {
    char complaint[200];
    errno = 0;
    if (fflush(plot->script) != 0 || ferror(plot->script) != 0 ||
        lseek(fileno(plot->script), 0, SEEK_SET) != 0)
        return wr_fault(fault, "%.200s: its data cannot be written: %s", plot->path,
                        strerror(errno));
    int status = run_gnuplot(plot);
    if (status == -1)
        return wr_fault(fault, "%.200s: gnuplot does not start: %s", plot->path, strerror(errno));
    if (status != 0) {
        read_complaint(plot, complaint, sizeof(complaint));
        return wr_fault(fault, "%.200s: gnuplot failed: %s", plot->path, complaint);
    }
    return wr_output_close(plot->output, fault);
}

bool wr_plot_publish(struct wr_plot *plot, struct wr_fault *fault) {
    return wr_output_publish(plot->output, fault);
}

void wr_plot_destroy(struct wr_plot *plot) {
    if (plot == NULL) return;
    wr_output_destroy(plot->output);
    if (plot->script != NULL) fclose(plot->script);
    if (plot->complaints != NULL) fclose(plot->complaints);
    free(plot);
}
