/// @file
/// The kernels that are compiled with the programs.
#pragma once
#include "06_clusters_dsmem/any_shape/plan.hpp"

namespace lesson06::any_shape {

/// On a GPU: for where no kernel can be compiled on demand.
inline constexpr Plan kGpuKernels[] = {{128, 256, 2, 1, 1},
                                       {128, 128, 1, 1, 1},
                                       {64, 128, 1, 1, 1},
                                       {128, 256, 2, 1, 1, true},
                                       {64, 128, 4, 1, 1, true}};

/// On the CPU device, which takes long to compile and to run them: one of each kind. Tests run these kernels
/// on a GPU, too.
inline constexpr Plan kCpuKernels[] = {
    {128, 256, 1, 1, 1},
    {128, 256, 2, 1, 1},
    {128, 192, 2, 1, 1},
    {192, 128, 1, 2, 1},
    {128, 128, 2, 2, 1},
    {192, 64, 1, 4, 1},
    {64, 128, 1, 1, 1},
    {64, 128, 1, 1, 2},
    {64, 128, 2, 1, 2},
    {64, 256, 1, 1, 4},
    {64, 128, 1, 1, 1, true},
    {128, 256, 2, 1, 1, true},
    {128, 128, 2, 2, 2, true},
    // Widths between multiples of 64
    {64, 24, 1, 1, 3},
    {64, 72, 1, 1, 1, true},
    {128, 200, 2, 1, 1},
    {192, 104, 1, 2, 1},
    {256, 120, 1, 2, 1},
    {128, 80, 2, 1, 2, true},
    // Swapped operands: rows in eights; 240 of them are stored in two boxes
    {136, 128, 1, 1, 1, false, true},
    {24, 64, 1, 1, 3, false, true},
    {72, 192, 2, 1, 1, false, true},
    {240, 128, 2, 2, 1, false, true},
    {80, 64, 4, 2, 1, true, true},
    {48, 256, 1, 1, 2, true, true},
};

#ifdef LADDER_CPU_DEVICE
inline constexpr auto& kBuiltIn = kCpuKernels;
#else
inline constexpr auto& kBuiltIn = kGpuKernels;
#endif

}  // namespace lesson06::any_shape
