/// @file
/// Part of the shadow of <cuda_runtime.h>: calls of memcpy() from an instrumented source go to the observers.
///
/// A kernel that assigns a uint4 makes clang call memcpy(). The sanitizer's pass of clang 14 leaves such a
/// call to a runtime that replaces memcpy() in the whole program; the observers must not do that, since the
/// engine copies, too. These lines rename the calls of one object file.
#pragma once

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define LADDER_OBSERVES_COPIES 1
#endif
#elif defined(__SANITIZE_THREAD__)
#define LADDER_OBSERVES_COPIES 1
#endif

#if defined(LADDER_OBSERVES_COPIES) && defined(__ELF__)
asm("memcpy = __tsan_memcpy\n"
    "memmove = __tsan_memmove\n"
    "memset = __tsan_memset\n");
#endif
