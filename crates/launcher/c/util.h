/*
 * Pure helpers: no system call, no global state. Anything that asks the kernel
 * for something belongs in sys.c.
 */
#ifndef LAZARET_UTIL_H
#define LAZARET_UTIL_H

#include <stddef.h>
#include <stdint.h>

/* SHA-256 (FIPS 180-4) of `size` bytes. */
void lz_sha256(const uint8_t *bytes, size_t size, uint8_t digest[32]);

/* Nonzero when all `size` bytes are zero. */
int lz_all_zero(const void *bytes, size_t size);

#endif
