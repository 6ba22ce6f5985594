// arguments.h - the options of a command, by getopt_long, with refusals in our words.
#ifndef WR_ARGUMENTS_H
#define WR_ARGUMENTS_H

#include <getopt.h>

// Before the first wr_arguments_next of a command.
void wr_arguments_begin(void);

// The `val` of the next option, its argument in optarg; -1 after the last, with the rest from
// argv[optind] on; '?' for one that does not exist or lacks its argument, after saying so on
// standard error. `shorts` is as getopt's, without a leading ':'. argv[0] is the command's name.
int wr_arguments_next(int argc, char **argv, const char *shorts, const struct option *longs);

#endif
