/// @file
/// Tests of the verifier: every mistake of a kernel must be seen, and named; a right result must pass.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <map>
#include <numeric>
#include <stdexcept>

#include "common/cuda/device_buffer.hpp"
#include "common/host/device/device.hpp"
#include "common/host/problem/bf16.hpp"
#include "common/host/problem/fill.hpp"
#include "common/host/verify/verifier.hpp"
#include "common/testing/gemm_checks.hpp"
#include "common/tests/fake_lesson.hpp"

using Catch::Matchers::ContainsSubstring;
using ladder::Shape;
using ladder::Verdict;
using ladder::Verifier;
using ladder::fake::Mistake;

namespace {

constexpr Shape kShape{37, 24, 40};

ladder::Multiply with(Mistake mistake) {
  return [mistake](const ladder::Gemm& gemm) { ladder::fake::multiply(gemm, mistake); };
}

/// What either half of the verifier says about a mistake.
std::string exact_complaint(Mistake mistake) {
  return Verifier(kShape, 7).check_exact(with(mistake)).complaint;
}
std::string normal_complaint(Mistake mistake) {
  return Verifier(kShape, 7).check_normal(with(mistake)).complaint;
}

/// A reference of 512 rows of which every second is compared, all values 1, and the C that goes with it.
struct Sampled {
  ladder::Reference reference{{512, 2, 1}, {}, {}};
  std::vector<__nv_bfloat16> c = std::vector<__nv_bfloat16>(1024, ladder::to_bf16(1));
  Sampled() {
    for (int row = 0; row < 512; row += 2) reference.rows.push_back(row);
    reference.values.assign(512, 1.0);
  }
};

}  // namespace

TEST_CASE("A right result passes, and its error is that of rounding to bf16") {
  ladder::testing::skip_unless_runnable(ladder::fake::lesson());
  const Verdict verdict = Verifier(kShape, 7).check(with(Mistake::none));
  CHECK(verdict.complaint == "");
  CHECK(verdict.rel_error > 1e-3);
  CHECK(verdict.rel_error < 2.5e-3);
  CHECK_FALSE(verdict.sampled);
}

TEST_CASE("A right result passes for one row, one column and one product") {
  ladder::testing::skip_unless_runnable(ladder::fake::lesson());
  for (const Shape& shape : {Shape{1, 1, 1}, Shape{1, 300, 7}, Shape{300, 1, 7}, Shape{5, 3, 1}}) {
    INFO(shape.name());
    CHECK(Verifier(shape, 1).check(with(Mistake::none)).complaint == "");
  }
}

TEST_CASE("An epilogue is part of what is right, bit for bit where it is exact") {
  ladder::testing::skip_unless_runnable(ladder::fake::lesson());
  const auto add_bias_and_keep_positive = [](const ladder::Gemm& gemm) {
    ladder::fake::multiply(gemm);
    std::vector<__nv_bfloat16> c = ladder::download(gemm.c, size_t(gemm.m) * gemm.n);
    const std::vector<__nv_bfloat16> bias = ladder::download(gemm.bias, gemm.n);
    for (size_t i = 0; i < c.size(); ++i)
      c[i] = ladder::to_bf16(std::max(0.0f, ladder::to_float(c[i]) + ladder::to_float(bias[i % gemm.n])));
    ladder::copy_to_device(gemm.c, c.data(), c.size() * sizeof c[0]);
  };
  const ladder::ReferenceEpilogue epilogue = {
      [](double sum, double bias) { return std::max(0.0, sum + bias); }, true};
  Verifier verifier({5, 8, 2}, 7);  // sums of two products fit into bf16
  CHECK(verifier.check(add_bias_and_keep_positive, epilogue).complaint == "");
  CHECK_FALSE(verifier.check_exact(add_bias_and_keep_positive).passed());
  CHECK_FALSE(verifier.check_exact(with(Mistake::none), epilogue).passed());
  CHECK_FALSE(verifier.check_normal(with(Mistake::none), epilogue).passed());
}

TEST_CASE("A tensor map of extents that no matrix of the product has is told with those that they have") {
  ladder::testing::skip_unless_runnable(ladder::fake::lesson());
  const auto complaint = [](const std::string& words) -> std::string {
    Verifier verifier(kShape, 7);  // 37 x 24 x 40
    try {
      verifier.check_exact([&](const ladder::Gemm&) { throw std::invalid_argument(words); });
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "nothing was thrown";
  };
  const std::string exchanged = "TMA cannot describe the 24 x 37 matrix: columns = 37",
                    other = "TMA cannot describe the 37 x 37 matrix: columns = 37",
                    extents = "; A is 37 x 40, B is 40 x 24, C is 37 x 24";
  CHECK(complaint(exchanged) == exchanged + extents + ": are rows and columns of C exchanged?");
  CHECK(complaint(other) == other + extents);
  CHECK(complaint("TMA cannot describe the 37 x 24 matrix: no") ==
        "TMA cannot describe the 37 x 24 matrix: no");
  CHECK(complaint("a block has at most 1024 threads") == "a block has at most 1024 threads");
}

TEST_CASE("A C that was never written fails, and is called so") {
  ladder::testing::skip_unless_runnable(ladder::fake::lesson());
  const std::string complaint = exact_complaint(Mistake::writes_nothing);
  CHECK_THAT(complaint, ContainsSubstring("row 0, column 0"));
  CHECK_THAT(complaint, ContainsSubstring("got nan (never written)"));
  CHECK_THAT(complaint, ContainsSubstring("888 of 888"));
  CHECK_THAT(normal_complaint(Mistake::writes_nothing), ContainsSubstring("never written"));
}

TEST_CASE("A C that is left from the run before fails") {
  ladder::testing::skip_unless_runnable(ladder::fake::lesson());
  Verifier verifier(kShape, 7);
  CHECK(verifier.check(with(Mistake::none)).passed());
  CHECK_FALSE(verifier.check_exact(with(Mistake::writes_nothing)).passed());
  CHECK_FALSE(verifier.check_normal(with(Mistake::writes_nothing)).passed());
}

TEST_CASE("One wrong element fails, with its place, the seed and the shape") {
  ladder::testing::skip_unless_runnable(ladder::fake::lesson());
  const std::string complaint = exact_complaint(Mistake::one_wrong_element);
  CHECK_THAT(complaint, ContainsSubstring("row 36, column 23: expected"));
  CHECK_THAT(complaint, ContainsSubstring("1 of 888 compared elements are wrong"));
  CHECK_THAT(complaint, ContainsSubstring("37x24x40"));
  CHECK_THAT(complaint, ContainsSubstring("seed 7"));
  CHECK_THAT(normal_complaint(Mistake::one_wrong_element), ContainsSubstring("row 36, column 23: expected"));
}

TEST_CASE("One NaN fails, on integers and on normal data") {
  ladder::testing::skip_unless_runnable(ladder::fake::lesson());
  CHECK_THAT(exact_complaint(Mistake::one_nan), ContainsSubstring("got nan"));
  CHECK_THAT(normal_complaint(Mistake::one_nan), ContainsSubstring("row 18, column 12"));
}

TEST_CASE("A tile that is one column off fails") {
  ladder::testing::skip_unless_runnable(ladder::fake::lesson());
  CHECK_THAT(exact_complaint(Mistake::shifted_tile), ContainsSubstring("column"));
  CHECK_THAT(normal_complaint(Mistake::shifted_tile), ContainsSubstring("column"));
}

TEST_CASE("An operand taken from the wrong matrix fails") {
  ladder::testing::skip_unless_runnable(ladder::fake::lesson());
  CHECK(exact_complaint(Mistake::a_in_place_of_b) != "");
  CHECK(normal_complaint(Mistake::a_in_place_of_b) != "");
}

TEST_CASE("Products that are left out fail") {
  ladder::testing::skip_unless_runnable(ladder::fake::lesson());
  CHECK(exact_complaint(Mistake::forgets_last_column) != "");
  CHECK(normal_complaint(Mistake::forgets_last_column) != "");
}

TEST_CASE("Sums that are rounded too early pass with small integers and fail on normal data") {
  ladder::testing::skip_unless_runnable(ladder::fake::lesson());
  CHECK(exact_complaint(Mistake::rounds_sums_early) == "");
  CHECK(normal_complaint(Mistake::rounds_sums_early) != "");
}

TEST_CASE("Writing outside of C fails, before it and behind it") {
  ladder::testing::skip_unless_runnable(ladder::fake::lesson());
  CHECK_THAT(exact_complaint(Mistake::writes_behind),
             ContainsSubstring("memory after C was overwritten, 1 elements after its last"));
  CHECK_THAT(exact_complaint(Mistake::writes_before),
             ContainsSubstring("memory before C was overwritten, 1 elements ahead of its first"));
}

TEST_CASE("Where only some rows are compared, the others must still be finite") {
  Sampled right;
  const Verdict passed = ladder::compare_exact(right.reference, right.c, "test");
  CHECK(passed.passed());
  CHECK(passed.sampled);
  CHECK(passed.rows == right.reference.rows.size());

  Sampled nan;
  nan.c[2 * 101 + 1] = ladder::to_bf16(NAN);
  CHECK_THAT(ladder::compare_exact(nan.reference, nan.c, "test").complaint,
             ContainsSubstring("row 101, column 1: expected a finite number, got nan"));
  CHECK_THAT(ladder::compare_close(nan.reference, nan.c, "test").complaint,
             ContainsSubstring("a finite number"));
}

TEST_CASE("An element that was rounded twice passes only where that is expected") {
  // Seen with a product of separate kernels: 268.117 became 268, and with its bias 270.
  ladder::Reference reference{{64, 64, 1}, std::vector<int>(64), std::vector<double>(64 * 64, 45)};
  std::iota(reference.rows.begin(), reference.rows.end(), 0);
  std::vector<__nv_bfloat16> c(reference.values.size(), ladder::to_bf16(45));
  reference.values[130] = 268.117;
  c[130] = ladder::to_bf16(270);
  CHECK_THAT(ladder::compare_close(reference, c, "test").complaint,
             ContainsSubstring("row 2, column 2: expected 268.117, got 270; 1 of 4096"));
  CHECK(ladder::compare_close(reference, c, "test", /*slack=*/0, /*roundings=*/2).passed());
}

TEST_CASE("The rows that are compared hit every band of 16, and the first and last") {
  const Shape shape{8191, 8192, 8192};
  const std::vector<int> rows = ladder::rows_to_compare(shape, 1);
  CHECK(rows.front() == 0);
  CHECK(rows.back() == shape.m - 1);
  CHECK(rows.size() >= 256);
  std::vector<bool> hit((shape.m + 15) / 16);
  for (size_t i = 0; i < rows.size(); ++i) {
    hit[rows[i] / 16] = true;
    if (i > 0) REQUIRE(rows[i] > rows[i - 1]);
  }
  for (size_t band = 0; band < hit.size(); ++band) {
    INFO("band " << band);
    CHECK(hit[band]);
  }
  CHECK(ladder::rows_to_compare({300, 8, 8}, 1e9).size() == 300);
  CHECK(ladder::rows_to_compare({64, 8192, 8192}, 1).size() == 64);
  CHECK(ladder::rows_to_compare({1024, 8, 8}, 1).size() >= 256);
}

TEST_CASE("The sum of small integers stays where bf16 holds every integer") {
  // By hand: the standard deviation of a sum is sqrt(k) u (u + 1) / 3; three of them make 240 at k = 64 with
  // u = 5, and 336 with u = 6.
  CHECK(ladder::integer_magnitude(1) == 8);
  CHECK(ladder::integer_magnitude(12) == 8);
  CHECK(ladder::integer_magnitude(64) == 5);
  CHECK(ladder::integer_magnitude(512) == 2);
  CHECK(ladder::integer_magnitude(1820) == 2);
  CHECK(ladder::integer_magnitude(1821) == 1);
  CHECK(ladder::integer_magnitude(28672) == 1);  // as small as it gets; fp32 is still exact
  // And by trying it.
  for (const int k : {64, 512, 4096}) {
    const int magnitude = ladder::integer_magnitude(k);
    const ladder::IntegerValues a{2, magnitude}, b{3, magnitude};
    constexpr int kSums = 1000;
    int too_large = 0;
    for (int i = 0; i < kSums; ++i) {
      float sum = 0;
      for (int j = i * k; j < (i + 1) * k; ++j) sum += ladder::to_float(a(j)) * ladder::to_float(b(j));
      too_large += std::abs(sum) > 256;
    }
    INFO("k " << k << ", magnitude " << magnitude << ": " << too_large << " of " << kSums
              << " sums exceed 256");
    CHECK(too_large <= kSums / 100);
  }
}

TEST_CASE("Fills depend on the seed and the position alone, and have the moments they promise") {
  ladder::testing::skip_unless_runnable(ladder::fake::lesson());
  constexpr size_t kCount = 100000;
  ladder::DeviceBuffer<__nv_bfloat16> buffer(kCount);
  ladder::fill(buffer.data(), kCount, ladder::NormalValues{5});
  const std::vector<__nv_bfloat16> values = ladder::download(buffer.data(), kCount);
  double sum = 0, squares = 0;
  size_t different = 0;
  for (size_t i = 0; i < kCount; ++i) {
    const double value = ladder::to_float(values[i]);
    sum += value;
    squares += value * value;
    // What the host computes is what the device computed.
    different += ladder::bf16_bits(values[i]) != ladder::bf16_bits(ladder::NormalValues{5}(i));
  }
  CHECK(different == 0);
  CHECK(std::abs(sum / kCount) < 0.02);
  CHECK(std::abs(squares / kCount - 1) < 0.02);

  ladder::fill(buffer.data(), kCount, ladder::IntegerValues{5, 2});
  std::map<float, int> counts;
  for (__nv_bfloat16 value : ladder::download(buffer.data(), kCount)) ++counts[ladder::to_float(value)];
  CHECK(counts.size() == 5);
  for (const auto& [value, count] : counts) {
    INFO(value << " occurs " << count << " times");
    CHECK(std::abs(value) <= 2);
    CHECK(std::abs(count - 20000) < 1000);
  }
}

TEST_CASE("More memory than there is makes one line that names the bytes") {
  ladder::testing::skip_unless_runnable(ladder::fake::lesson());
  const auto too_much = [] { ladder::DeviceBuffer<char> buffer(size_t{1} << 50); };
  CHECK_THROWS_AS(too_much(), ladder::OutOfDeviceMemory);
}

TEST_CASE("Two runs of a problem must give the same bits") {
  const Sampled one;
  Sampled other;
  CHECK(ladder::compare_bits(other.c, one.c, {512, 2, 1}, "another schedule") == "");
  other.c[5] = ladder::to_bf16(1.0078125);
  CHECK(
      ladder::compare_bits(other.c, one.c, {512, 2, 1}, "another schedule") ==
      "the bits of C depend on who comes when: row 2, column 1 is 1.00781, and was 1 with another schedule; "
      "1 of 1024 elements differ (512x2x1)");
}
