// SPDX-License-Identifier: Apache-2.0
// Replaces libhwy in a self-contained build (ATP_SELF_CONTAINED), since distributions have libhwy only as a shared
// library. Our code calls two functions of libhwy, which are defined below. They tell Highway's dispatch tables which
// instruction sets the processor has.
#include <hwy/targets.h>

#include <cstdint>

namespace hwy {

std::int64_t SupportedTargets() {
    std::int64_t targets = HWY_STATIC_TARGET;  // the compiler's own baseline, which every supported processor has
#if defined(__x86_64__)
    // The instruction sets that each target of Highway requires. libgcc also checks that the kernel saves their
    // registers.
    __builtin_cpu_init();
    if (__builtin_cpu_supports("ssse3")) targets |= HWY_SSSE3;
    const bool sse4 = __builtin_cpu_supports("sse4.1") && __builtin_cpu_supports("sse4.2") &&
                      __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("aes");
    if (sse4) targets |= HWY_SSE4;
    // Every processor with AVX2 and FMA has F16C and LZCNT.
    const bool avx2 = sse4 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                      __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
    if (avx2) targets |= HWY_AVX2;
    const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512cd");
    if (avx512) targets |= HWY_AVX3;
#endif
    return targets;
}

ChosenTarget& GetChosenTarget() {
    static ChosenTarget chosen;
    return chosen;
}

}  // namespace hwy
