/*
 * What the launcher asks the kernel for. Each function either has done what its
 * name says, and has read it back where the kernel lets it, or ends the process
 * through lz_fail(). None knows Python.
 */
#ifndef LAZARET_SYS_H
#define LAZARET_SYS_H

#include "lazaret_abi.h"

#include <stddef.h>

/*
 * Writes one line to descriptor 2 and ends the process with `code`. `detail` is
 * a fixed text of ours, never bytes of a package; errno is named when not 0.
 */
_Noreturn void lz_fail(enum lz_exit code, const char *detail, int error_number);

/* Makes the part of this program that is written only by relocation read-only. */
void lz_protect_relocations(void);

/* Ignores SIGPIPE and SIGXFSZ, and empties the signal mask. */
void lz_settle_signals(void);

/* Refuses to go on unless 0, 1 and 2 are open. */
void lz_require_standard_descriptors(void);

/* Closes every descriptor above 2, then asks for each of the first 1024. */
void lz_close_other_descriptors(void);

/* Reads exactly `size` bytes from stdin, or fails with `code`. */
void lz_read_exactly(void *bytes, size_t size, enum lz_exit code);

/* Refuses to go on when stdin has bytes, or its end, waiting. */
void lz_require_silence(void);

/* Writes exactly `size` bytes to stdout, or fails with `code`. */
void lz_write_exactly(const void *bytes, size_t size, enum lz_exit code);

/* Sets each hard limit of lazaret_abi.h, soft equal to hard, and reads it back. */
void lz_set_hard_limits(void);

/* Exactly four bytes of the kernel's entropy, as ADR-013 asks. */
uint32_t lz_hash_seed(void);

/*
 * Reads the regular file `path` of exactly `size` bytes into `bytes`; any other
 * size, kind or a short read fails with LZ_EXIT_PACKAGE.
 */
void lz_read_file(const char *path, uint8_t *bytes, size_t size);

/* Sets no_new_privs and installs the filter that was compiled in. */
void lz_install_filter(void);

#endif
