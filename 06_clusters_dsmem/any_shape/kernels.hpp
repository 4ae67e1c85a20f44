/// @file
/// The list of kernels: for each a tile, a cluster, and whether clusters split tiles along K.
#pragma once
#include "06_clusters_dsmem/any_shape/plan.hpp"

namespace lesson06::any_shape {

/// Those worth compiling: 48 were timed on 126 shapes, and without the eleven that left the fastest takes no
/// longer (docs/decisions.md). 64x192 in clusters of 4x1x1 with stream-K came in later.
inline constexpr Plan kGpuKernels[] = {
    // One large tile, or a medium one, for each SM
    {128, 256, 1, 1, 1},
    {128, 256, 2, 1, 1},
    {128, 256, 1, 2, 1},
    {192, 192, 1, 2, 1},
    {128, 192, 2, 1, 1},
    {192, 128, 2, 1, 1},
    {192, 128, 1, 2, 1},
    {128, 128, 1, 1, 1},
    {128, 128, 2, 1, 1},
    {128, 128, 1, 2, 1},
    {128, 128, 4, 1, 1},
    {128, 128, 2, 2, 1},
    // Low or narrow, for little work
    {192, 64, 1, 4, 1},
    {128, 64, 1, 4, 1},
    {128, 64, 1, 1, 1},
    {64, 192, 2, 1, 1},
    {64, 192, 4, 1, 1},
    {64, 128, 1, 1, 1},
    {64, 128, 4, 1, 1},
    {64, 64, 1, 1, 1},
    // Blocks that split K, for few tiles
    {64, 256, 1, 1, 4},
    {64, 128, 1, 1, 2},
    {64, 128, 2, 1, 2},
    // Stream-K
    {128, 256, 1, 1, 1, true},
    {128, 256, 2, 1, 1, true},
    {192, 192, 2, 1, 1, true},
    {192, 192, 1, 2, 1, true},
    {128, 192, 2, 1, 1, true},
    {192, 128, 2, 1, 1, true},
    {192, 128, 1, 2, 1, true},
    {128, 128, 1, 1, 1, true},
    {128, 128, 4, 1, 1, true},
    {128, 128, 2, 2, 2, true},
    {64, 192, 4, 1, 1, true},
    {64, 128, 1, 1, 1, true},
    {64, 128, 4, 1, 1, true},
    {64, 128, 2, 2, 2, true},
    {64, 64, 1, 1, 1, true},
};

/// On the CPU device, which takes long to compile and to run them, one of each kind will do.
inline constexpr Plan kCpuKernels[] = {
    {128, 256, 1, 1, 1},       {128, 256, 2, 1, 1}, {128, 192, 2, 1, 1},      {192, 128, 1, 2, 1},
    {128, 128, 2, 2, 1},       {192, 64, 1, 4, 1},  {64, 128, 1, 1, 1},       {64, 128, 1, 1, 2},
    {64, 128, 2, 1, 2},        {64, 256, 1, 1, 4},  {64, 128, 1, 1, 1, true}, {128, 256, 2, 1, 1, true},
    {128, 128, 2, 2, 2, true},
};

#ifdef LADDER_CPU_DEVICE
inline constexpr auto& kKernels = kCpuKernels;
#else
inline constexpr auto& kKernels = kGpuKernels;
#endif

}  // namespace lesson06::any_shape
