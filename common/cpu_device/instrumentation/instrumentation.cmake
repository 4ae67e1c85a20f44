# How sources are compiled so that common/cpu_device/instrumentation/hooks.cpp sees every load and store of a kernel.
#
#   instrumented program: lesson objects with ladder_instrument() + hooks.cpp     (never linked with libtsan)
#   plain program:        the same lesson objects without it      + hooks_off.cpp
#
# The compiler's thread-sanitizer pass puts a call before every memory access; hooks.cpp defines those calls.
# Nothing of common/cpu_device itself may be compiled with these options, hooks.cpp least of all.

# Adds the compile options to the sources that belong to `target` itself, and never the link option:
# -fsanitize=thread at link time would bring in libtsan.
function(ladder_instrument target)
  target_compile_options(
    ${target}
    PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=thread>
            # Line tables, for "gemm.cuh:88" in reports; and no merging of calls' tails, which would lose lines.
            $<$<COMPILE_LANGUAGE:CXX>:-g>
            $<$<COMPILE_LANGUAGE:CXX>:-fno-optimize-sibling-calls>
            # Calls at function entry and exit cost time and tell the hooks nothing.
            $<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=tsan-instrument-func-entry-exit=0>
            # Volatile accesses race with no atomic operation.
            $<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=tsan-distinguish-volatile=1>
            "$<$<COMPILE_LANG_AND_ID:CXX,Clang,AppleClang>:SHELL:-mllvm -tsan-distinguish-volatile>"
            # GCC warns that atomic_thread_fence is not modelled; the hooks do not model it either.
            $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-tsan>
            "$<$<COMPILE_LANG_AND_ID:CXX,Clang,AppleClang>:SHELL:-mllvm -tsan-instrument-func-entry-exit=0>")
endfunction()
