// output.h - files that appear whole or not at all.
//
//     struct wr_output *output;
//     if (!wr_output_open(&output, "report.csv", &fault)) ...
//     fprintf(wr_output_file(output), ...);
//     if (!wr_output_close(output, &fault)) ... // complete, under another name
//     if (!wr_output_publish(output, &fault)) ... // now it is there
//     wr_output_destroy(output);                  // removes what was not published
//
// A run that ends by a signal leaves nothing behind. What stands under the name already stays until
// the new file takes its place. One thread opens, publishes and destroys.
#ifndef WR_OUTPUT_H
#define WR_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "text.h"

struct wr_output;

// "-" is standard output. A device or a pipe (/dev/null) is written to as it is.
bool wr_output_open(struct wr_output **output, const char *path, struct wr_fault *fault);

// Until closed.
FILE *wr_output_file(const struct wr_output *output);

// Makes sure that all is on the disk. With several files, close all before publishing one.
bool wr_output_close(struct wr_output *output, struct wr_fault *fault);
bool wr_output_publish(struct wr_output *output, struct wr_fault *fault);

// NULL is allowed.
void wr_output_destroy(struct wr_output *output);

#endif
