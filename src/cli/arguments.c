// arguments.c - says what getopt_long found wrong, and which option was meant.
#include "arguments.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "nearest.h"

#define MAX_OPTIONS 64

void wr_arguments_begin(void) {
    optind = 0; // glibc starts anew, whatever was parsed before
    opterr = 0;
}

// getopt leaves the letter of a short option in optopt, and the word of a long one behind optind.
static void say_refused(const char *command, const char *word, const struct option *longs) {
    const char *names[MAX_OPTIONS];
    size_t count = 0;
    char name[64];
    bool is_long = strncmp(word, "--", 2) == 0;
    for (; longs[count].name != NULL && count < MAX_OPTIONS; count++)
        names[count] = longs[count].name;
    snprintf(name, sizeof(name), "%s", word + 2 * is_long);
    name[strcspn(name, "=")] = '\0';
    const char *meant = is_long ? wr_nearest(name, names, count) : NULL;
    if (is_long && optopt != 0)
        fprintf(stderr, "weir %s: --%s takes no value; leave '%s' away\n", command, name,
                word + 2 + strlen(name));
    else if (meant != NULL)
        fprintf(stderr, "weir %s: there is no option '%s'; did you mean --%s?\n", command, word,
                meant);
    else if (is_long)
        fprintf(stderr, "weir %s: there is no option '%s'; `weir help %s` lists what there is\n",
                command, word, command);
    else
        fprintf(stderr, "weir %s: there is no option '-%c'; `weir help %s` lists what there is\n",
                command, optopt, command);
}

int wr_arguments_next(int argc, char **argv, const char *shorts, const struct option *longs) {
    char quiet[128];
    snprintf(quiet, sizeof(quiet), ":%s", shorts);
    int option = getopt_long(argc, argv, quiet, longs, NULL);
    if (option == ':') {
        fprintf(stderr, "weir %s: '%s' needs a value after it; `weir help %s` shows which\n",
                argv[0], argv[argc - 1], argv[0]);
        return '?';
    }
    if (option == '?') say_refused(argv[0], argv[optind - 1], longs);
    return option;
}
