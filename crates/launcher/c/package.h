/*
 * The one thing that happens after release.
 */
#ifndef LAZARET_PACKAGE_H
#define LAZARET_PACKAGE_H

#include <stdint.h>

/*
 * Compiles `source`, which ends with a NUL, and runs it once as __main__.
 * Returns an exit code from 0 to 127, which is the package's word.
 */
int lz_run_package(const uint8_t *source);

#endif
