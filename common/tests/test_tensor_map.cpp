/// @file
/// Tests of tensor maps: which argument breaks which of the driver's rules.
#include "common/cuda/tensor_map.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <stdexcept>
#include <string>

#include "common/cuda/device_buffer.hpp"
#include "common/host/device/device.hpp"
#include "common/host/program/program.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

const auto* at(uintptr_t address) { return reinterpret_cast<const __nv_bfloat16*>(address); }

void skip_without_tma() {
  if (ladder::on_cpu_device()) return;
  try {
    if (ladder::device_info().compute_capability < ladder::kHopper) SKIP("needs a GPU that has TMA");
  } catch (const ladder::BadInput& missing) {
    SKIP(missing.what());
  }
}

}  // namespace

TEST_CASE("The rule of tensor maps that is broken is named with its argument") {
  const auto complaint = [](uintptr_t address, int rows, int columns, int box_rows, int box_columns) {
    return ladder::tensor_map_complaint(at(address), rows, columns, box_rows, box_columns);
  };
  CHECK(complaint(4096, 128, 64, 128, 64) == "");
  CHECK(complaint(4096, 1, 8, 256, 8) == "");
  CHECK(complaint(4096, 1, 2147482624, 1, 8) == "");
  CHECK(complaint(0, 128, 64, 128, 64) == "matrix is a null pointer");
  CHECK(complaint(4104, 128, 64, 128, 64) ==
        "matrix begins 8 bytes behind a multiple of 16 bytes: must begin at one");
  CHECK(complaint(4096, 0, 64, 128, 64) == "rows = 0: must be at least 1");
  CHECK(complaint(4096, 128, -8, 128, 64) == "columns = -8: must be at least 1");
  CHECK(complaint(4096, 128, 100, 128, 64) ==
        "columns = 100: a row has 200 bytes, and the next must begin at a multiple of 16");
  CHECK(complaint(4096, 128, 64, 0, 64) == "box_rows = 0: must be at least 1");
  CHECK(complaint(4096, 128, 64, 257, 64) == "box_rows = 257: must be at most 256");
  CHECK(complaint(4096, 128, 64, 128, 512) == "box_columns = 512: must be at most 256");
  CHECK(complaint(4096, 128, 64, 128, 60) ==
        "box_columns = 60: a row of the box has 120 bytes: must be a multiple of 16");
  CHECK(complaint(4096, 128, 64, 128, 72) ==
        "box_columns = 72: a row of the box has 144 bytes: must be at most 128 with that swizzle");
}

TEST_CASE("The driver refuses what is complained of, and nothing else") {
  skip_without_tma();
  ladder::DeviceBuffer<__nv_bfloat16> buffer(1 << 16);
  for (const int shift : {0, 4, 8})
    for (const int rows : {0, 1, 64})
      for (const int columns : {0, 8, 12, 64})
        for (const int box_rows : {0, 1, 256, 257})
          for (const int box_columns : {0, 8, 12, 64, 72, 264}) {
            const __nv_bfloat16* matrix = buffer.data() + shift;
            const std::string complaint =
                ladder::tensor_map_complaint(matrix, rows, columns, box_rows, box_columns);
            CAPTURE(shift, rows, columns, box_rows, box_columns, complaint);
            const auto make = [&] { ladder::make_tensor_map(matrix, rows, columns, box_rows, box_columns); };
            if (complaint.empty())
              REQUIRE_NOTHROW(make());
            else
              REQUIRE_THROWS_MATCHES(make(), std::invalid_argument,
                                     MessageMatches(ContainsSubstring(complaint)));
          }
}

TEST_CASE("L2 fetches two cache lines at a time, but one where rows straddle lines") {
  for (const int columns : {64, 4096, 8192})
    CHECK(ladder::l2_promotion(columns) == CU_TENSOR_MAP_L2_PROMOTION_L2_256B);
  for (const int columns : {8, 72, 5000})
    CHECK(ladder::l2_promotion(columns) == CU_TENSOR_MAP_L2_PROMOTION_L2_128B);
}
