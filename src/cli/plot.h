// plot.h - pictures by gnuplot, which appear whole or not at all.
//
//     struct wr_plot *plot;
//     if (!wr_plot_open(&plot, "out.svg", 900, 600, &fault)) ... // before the work that it shows
//     fprintf(wr_plot_script(plot), "plot ...\n");
//     if (!wr_plot_draw(plot, &fault)) ...
//     if (!wr_plot_publish(plot, &fault)) ...
//     wr_plot_destroy(plot);
//
// No shell is involved, and no text is in enhanced mode: names are shown as they are.
#ifndef WR_PLOT_H
#define WR_PLOT_H

#include <stdbool.h>
#include <stdio.h>

#include "text.h"

struct wr_plot;

// Whether `path` ends in .svg or .png.
bool wr_plot_is_name(const char *path);

// False where `path` is no name of a plot, or gnuplot is missing.
bool wr_plot_open(struct wr_plot **plot, const char *path, int width, int height,
                  struct wr_fault *fault);

// Where the commands and the data (`$data << END`) go. The terminal is set already.
FILE *wr_plot_script(const struct wr_plot *plot);

// Writes `text` as a string that gnuplot reads, of at most `characters_max` bytes: in a command,
// or as a column of data. A '"' comes out as "'".
void wr_plot_write_text(FILE *script, struct wr_text text, size_t bytes_max);

// Runs gnuplot; the picture is complete, under another name.
bool wr_plot_draw(struct wr_plot *plot, struct wr_fault *fault);
bool wr_plot_publish(struct wr_plot *plot, struct wr_fault *fault);

// Removes what was not published. NULL is allowed.
void wr_plot_destroy(struct wr_plot *plot);

#endif
