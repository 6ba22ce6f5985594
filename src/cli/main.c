// main.c - the command `weir`: finds the subcommand, and sees to it that its output arrived.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <weir.h>

#include "commands.h"
#include "nearest.h"

static const struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
    const char *example;
} commands[] = {
#define COMMAND(name, function, summary, example) {name, function, summary, example},
    WR_COMMANDS(COMMAND)
#undef COMMAND
};

#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))

static void print_help(FILE *out) {
    fprintf(out, "weir limits how often things may happen, by key, and shows what a limit would "
                 "do.\n\n"
                 "Make up a log, and see what 5 requests a second, 20 at once, would have done to "
                 "it:\n\n"
                 "    weir trace flash-sale -o sale.log\n"
                 "    weir replay --rate 5/s --burst 20 sale.log\n\n"
                 "Commands:\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        fprintf(out, "    %-10s %s\n    %-10s   %s\n", commands[i].name, commands[i].summary, "",
                commands[i].example);
    fprintf(out, "\n`weir help COMMAND` tells all about one, `weir --version` which weir this is.\n"
                 "The whole manual: man weir.\n");
}

static const struct command *find_command(const char *name) {
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(commands[i].name, name) == 0) return &commands[i];
    return NULL;
}

static int unknown_command(const char *name) {
    const char *names[COMMAND_COUNT + 3] = {"help", "--help", "--version"};
    for (size_t i = 0; i < COMMAND_COUNT; i++) names[i + 3] = commands[i].name;
    const char *meant = wr_nearest(name, names, COMMAND_COUNT + 3);
    const char *what = name[0] == '-' ? "option" : "command";
    fprintf(stderr, "weir: there is no %s '%s'", what, name);
    if (meant != NULL) fprintf(stderr, "; did you mean 'weir %s'?\n", meant);
    else fprintf(stderr, "; `weir --help` lists what there is\n");
    return WR_EXIT_USAGE;
}

static int help_on(char *name) {
    char option[] = "--help";
    char *arguments[] = {name, option, NULL};
    const struct command *command = find_command(name);
    return command != NULL ? command->run(2, arguments) : unknown_command(name);
}

static int dispatch(int argc, char **argv) {
    const char *word = argc > 1 ? argv[1] : "";
    if (argc < 2) {
        print_help(stderr);
        return WR_EXIT_USAGE;
    }
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0) {
        printf("weir %s\n", weir_version());
        return WR_EXIT_FINE;
    }
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0) {
        if (argc > 2) return help_on(argv[2]);
        print_help(stdout);
        return WR_EXIT_FINE;
    }
    const struct command *command = find_command(word);
    return command != NULL ? command->run(argc - 1, argv + 1) : unknown_command(word);
}

// A stream that came closed would make the next file that is opened take its place, and get what
// was meant for it. One that can only be read makes writing to it an error.
static void fill_closed_streams(void) {
    for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; stream++)
        if (fcntl(stream, F_GETFD) == -1 && errno == EBADF)
            (void)!open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

// Whether all that went to standard output arrived; if not, says so unless `quiet`.
static bool finish_output(bool quiet) {
    bool failed_before = ferror(stdout) != 0;
    errno = 0;
    bool failed = fclose(stdout) != 0 || failed_before;
    if (failed && !quiet)
        fprintf(stderr, "weir: cannot write to standard output: %s\n",
                errno != 0 ? strerror(errno) : "an earlier write failed");
    return !failed;
}

int main(int argc, char **argv) {
    fill_closed_streams();
    signal(SIGPIPE, SIG_IGN);
    int code = dispatch(argc, argv);
    if (!finish_output(code != WR_EXIT_FINE) && code == WR_EXIT_FINE) code = WR_EXIT_TROUBLE;
    return code;
}
