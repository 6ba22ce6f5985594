// Words for a caller's weir_error.
#include "say.h"

#include <stdarg.h>
#include <stdio.h>

void wr_sync_say(struct weir_error *error, const char *format, ...) {
    if (error == NULL) return;
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
}
