/*
 * The contract between the launcher (C, inside the namespaces) and the warden
 * (Rust, outside). This file is the single source: bindgen makes the Rust side
 * (crates/launcher/src/abi.rs), and tidy checks that it is current.
 *
 * Everything here is fixed: sizes, order, limits. Both records travel over
 * pipes between processes of one x86_64 host, so the layout is the C layout
 * of x86_64: little-endian, no padding (asserted in launcher.c).
 */
#ifndef LAZARET_ABI_H
#define LAZARET_ABI_H

#include <stdint.h>

/* Grows with every change of meaning or layout of either record. */
#define LZ_ABI_VERSION 1

/* Both records begin with eight bytes that no text begins with. */
#define LZ_PLAN_MAGIC 0x314e414c505a4cffULL  /* "\xffLZPLAN1" */
#define LZ_READY_MAGIC 0x314441455252ff4cULL /* "L\xffRREAD1" */

/* One byte on stdin lets package code run; nothing else does. */
#define LZ_RELEASE_BYTE 0x47

/* Hard limits, soft equal to hard, set by the launcher itself (ADR-013). */
#define LZ_LIMIT_CPU_S 2
#define LZ_LIMIT_ADDRESS_SPACE_BYTES (128ULL * 1024 * 1024)
#define LZ_LIMIT_FILE_BYTES (64ULL * 1024)
#define LZ_LIMIT_DESCRIPTORS 16
/* 1, not 0: a piped core handler ignores 0 and honours 1 (core(5)). */
#define LZ_LIMIT_CORE_BYTES 1
#define LZ_LIMIT_STACK_BYTES (8ULL * 1024 * 1024)

/* The largest package source that the launcher reads (ADR-020). */
#define LZ_PACKAGE_BYTES_MAX (32U * 1024)

/* Fixed namespace paths. */
#define LZ_PATH_LAUNCHER "/launcher"
#define LZ_PATH_PACKAGE "/package.py"
#define LZ_PATH_INPUT "/input.json"
#define LZ_PATH_OUTPUT_DIR "/out"
#define LZ_PATH_OUTPUT "/out/result.json"

/* What the warden sends first, on stdin. Exactly this many bytes, once. */
struct lz_plan {
    uint64_t magic;             /* LZ_PLAN_MAGIC */
    uint32_t abi_version;       /* LZ_ABI_VERSION */
    uint32_t record_bytes;      /* sizeof(struct lz_plan) */
    uint8_t nonce[32];          /* chosen for this run; comes back in ready */
    uint8_t package_sha256[32]; /* of the exact bytes of /package.py */
    uint32_t package_bytes;     /* size of /package.py */
    uint32_t reserved[11];      /* zero, or the plan is refused */
};

/* What the launcher writes on stdout at the barrier. Exactly this, once. */
struct lz_ready {
    uint64_t magic;               /* LZ_READY_MAGIC */
    uint32_t abi_version;         /* LZ_ABI_VERSION */
    uint32_t record_bytes;        /* sizeof(struct lz_ready) */
    uint8_t nonce[32];            /* the plan's */
    uint8_t package_sha256[32];   /* computed over the bytes in memory */
    uint32_t package_bytes;       /* of those bytes */
    uint32_t python_version_hex;  /* PY_VERSION_HEX that it was built with */
    uint32_t filter_instructions; /* BPF instructions installed */
    uint32_t reserved[9];         /* zero */
};

/*
 * Exit codes of the launcher before release, one per step that can fail. They
 * count only before release: afterwards every code is the package's word. All
 * are below 128, because the filter lets no larger code pass.
 */
enum lz_exit {
    LZ_EXIT_RELOCATIONS = 79,  /* relocated data could not be made read-only */
    LZ_EXIT_DESCRIPTORS = 80,  /* 0, 1 or 2 closed, or another one not closed */
    LZ_EXIT_PLAN = 81,         /* plan short, malformed, or end of file */
    LZ_EXIT_LIMITS = 82,       /* a hard limit could not be set or read back */
    LZ_EXIT_ENTROPY = 83,      /* not exactly four bytes from getrandom */
    LZ_EXIT_PYTHON = 84,       /* the interpreter did not start */
    LZ_EXIT_PACKAGE = 85,      /* /package.py unreadable, too large, NUL, or another digest */
    LZ_EXIT_FILTER = 86,       /* no_new_privs or the filter could not be set */
    LZ_EXIT_READY = 87,        /* the ready record could not be written */
    LZ_EXIT_NOT_RELEASED = 88, /* end of file or another byte instead of the release */
};

/*
 * Exit codes after release, as the launcher gives them. The package can give
 * the same ones; they are a convention for people, never evidence.
 */
enum lz_package_exit {
    LZ_PACKAGE_DONE = 0,
    LZ_PACKAGE_EXCEPTION = 1, /* an uncaught exception, or a code outside 0..127 */
};

#endif
