// commands.h - the commands of `weir`: adding one is a line here and a function in its own file.
//
// A command gets its own name as argv[0] and its arguments after it, and answers --help itself. It
// returns the exit code: 0 fine, 1 trouble with data or the system, 2 wrong usage; other than 0, it
// has said why. What it wrote to standard output is flushed and checked by main(); a pipe whose
// reader went away is an error of the write, no signal, so that a command which writes much looks
// at ferror(stdout) and stops.
#ifndef WR_COMMANDS_H
#define WR_COMMANDS_H

// Those that need libweir-sync, where it is built.
#ifdef WR_WITH_SYNC
#define WR_SYNC_COMMANDS(X)                                                                        \
    X("sync-demo", wr_cmd_sync_demo, "one limit over several processes, by Redis, and its faults", \
      "weir sync-demo --processes 8 --demand 3x")                                                  \
    X("peek", wr_cmd_peek, "one bucket of a limit over many hosts",                                \
      "weir peek --redis redis://127.0.0.1 mails alice")                                           \
    X("top", wr_cmd_top, "the busiest keys of a limit over many hosts",                            \
      "weir top --redis redis://127.0.0.1 --watch 2s")
#else
#define WR_SYNC_COMMANDS(X)
#endif

// X(name, function, what it is for, an example).
#define WR_COMMANDS(X)                                                                             \
    X("replay", wr_cmd_replay, "what a limit would have done to a log",                            \
      "weir replay --rate 5/s --burst 20 access.log")                                              \
    X("trace", wr_cmd_trace, "make up the log of a flash sale, an attack, ...",                    \
      "weir trace flash-sale -o sale.log")                                                         \
    X("bench", wr_cmd_bench, "how long a decision takes on this machine",                          \
      "weir bench --keys 1M --threads 2")                                                          \
    X("tune", wr_cmd_tune, "which shard count to use on this machine",                             \
      "weir tune --capacity 1M --threads 16")                                                      \
    X("pool", wr_cmd_pool, "a limiter before workers and a provider, running",                     \
      "weir pool --compare")                                                                       \
    WR_SYNC_COMMANDS(X)

#define WR_COMMAND_FUNCTION(name, function, summary, example) int function(int argc, char **argv);
WR_COMMANDS(WR_COMMAND_FUNCTION)
#undef WR_COMMAND_FUNCTION

enum wr_exit {
    WR_EXIT_FINE = 0,
    WR_EXIT_TROUBLE = 1,
    WR_EXIT_USAGE = 2,
};

#endif
