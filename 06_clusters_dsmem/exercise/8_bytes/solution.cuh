/// @file
/// Exercise 06.8: predict what clusters read, and what they send.
///
/// C = A * B, A [256, 1024], B [1024, 512], C [256, 512], bf16, row-major. A block computes a tile of C of 64
/// x 128 in K steps of 64, as in lesson 06: in each step it needs 64 x 64 elements of A and 64 x 128 of B.
/// Nothing is kept from one tile of C to the next. Write the numbers below, as products of what they come
/// from. The check runs the same loads and exchanges (moves.cuh) and says how far off each number is.
#pragma once
#include <cstdint>

namespace exercise {

constexpr int64_t kM = 256, kN = 512, kK = 1024;  ///< A [kM, kK], B [kK, kN]

// Read 06_clusters_dsmem/README.md and 06_clusters_dsmem/any_shape/partial_sums.cuh.
// >>> yours
/// Bytes of A and B that the launch reads: blocks without a cluster; clusters of two blocks, one below the
/// other, which share B; clusters of two by two, which share A, too.
constexpr int64_t kTilesOfC = (kM / 64) * (kN / 128), kSteps = kK / 64;
constexpr int64_t kBytesOfA = 64 * 64 * 2, kBytesOfB = 64 * 128 * 2;  // of a step
constexpr int64_t kAlone = kTilesOfC * kSteps * (kBytesOfA + kBytesOfB);
constexpr int64_t kPairs = kTilesOfC * kSteps * (kBytesOfA + kBytesOfB / 2);
constexpr int64_t kSquares = kTilesOfC * kSteps * (kBytesOfA / 2 + kBytesOfB / 2);

/// In the launch with pairs: bytes that blocks receive by multicasts of their neighbour.
constexpr int64_t kFromNeighbours = kTilesOfC * kSteps * kBytesOfB / 2;

/// Four blocks of a cluster split the K steps of a tile. Each owns a quarter of its columns and receives the
/// fp32 sums that the others have for it: bytes of partial sums that are sent in the whole launch.
constexpr int64_t kPartialSums = kTilesOfC * 4 * 3 * (64 * 128 / 4) * 4;

/// Now B has 1000 columns. A block loads the first 64 x 128 of it, as two boxes of 64 columns: 128 rows of
/// boxes of 128 bytes each. How many of them lie in two lines of 128 bytes, and how many sectors of 32 bytes
/// are read, each box by itself? B begins where a line does.
constexpr int64_t kStraddling = 2 * (64 - 64 / 8);
constexpr int64_t kSectors = 2 * (32 * 4 + 32 * 5);
// <<<

}  // namespace exercise
