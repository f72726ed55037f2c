#include "util.h"

#include <string.h>

static const uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate_right(uint32_t word, unsigned count)
{
    return (word >> count) | (word << (32 - count));
}

/* One 64-byte block of FIPS 180-4, section 6.2.2. */
static void sha256_block(uint32_t state[8], const uint8_t block[64])
{
    uint32_t schedule[64];
    uint32_t w[8];

    for (size_t t = 0; t < 16; t++)
        schedule[t] = (uint32_t)block[4 * t] << 24 | (uint32_t)block[4 * t + 1] << 16 |
                      (uint32_t)block[4 * t + 2] << 8 | (uint32_t)block[4 * t + 3];
    for (size_t t = 16; t < 64; t++) {
        uint32_t a = schedule[t - 15], b = schedule[t - 2];
        uint32_t s0 = rotate_right(a, 7) ^ rotate_right(a, 18) ^ (a >> 3);
        uint32_t s1 = rotate_right(b, 17) ^ rotate_right(b, 19) ^ (b >> 10);
        schedule[t] = schedule[t - 16] + s0 + schedule[t - 7] + s1;
    }

    memcpy(w, state, sizeof w);
    for (size_t t = 0; t < 64; t++) {
        uint32_t s1 = rotate_right(w[4], 6) ^ rotate_right(w[4], 11) ^ rotate_right(w[4], 25);
        uint32_t choice = (w[4] & w[5]) ^ (~w[4] & w[6]);
        uint32_t t1 = w[7] + s1 + choice + round_constants[t] + schedule[t];
        uint32_t s0 = rotate_right(w[0], 2) ^ rotate_right(w[0], 13) ^ rotate_right(w[0], 22);
        uint32_t majority = (w[0] & w[1]) ^ (w[0] & w[2]) ^ (w[1] & w[2]);
        memmove(w + 1, w, 7 * sizeof w[0]);
        w[4] += t1;
        w[0] = t1 + s0 + majority;
    }
    for (size_t i = 0; i < 8; i++)
        state[i] += w[i];
}

void lz_sha256(const uint8_t *bytes, size_t size, uint8_t digest[32])
{
    uint32_t state[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                          0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };
    uint8_t tail[128] = { 0 };
    size_t whole = size - size % 64, rest = size % 64;
    size_t tail_size = rest < 56 ? 64 : 128;
    uint64_t bits = (uint64_t)size * 8;

    for (size_t at = 0; at < whole; at += 64)
        sha256_block(state, bytes + at);
    if (rest > 0)
        memcpy(tail, bytes + whole, rest);
    tail[rest] = 0x80;
    for (size_t i = 0; i < 8; i++)
        tail[tail_size - 1 - i] = (uint8_t)(bits >> (8 * i));
    for (size_t at = 0; at < tail_size; at += 64)
        sha256_block(state, tail + at);
    for (size_t i = 0; i < 8; i++)
        for (size_t j = 0; j < 4; j++)
            digest[4 * i + j] = (uint8_t)(state[i] >> (24 - 8 * j));
}

int lz_all_zero(const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    uint8_t seen = 0;

    for (size_t i = 0; i < size; i++)
        seen |= at[i];
    return seen == 0;
}
