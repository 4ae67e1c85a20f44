/// @file
/// Moves, arithmetic, comparisons and predicates.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "common/cpu_device/base/float16.hpp"
#include "common/own_kernel/ptx/program.hpp"

namespace ladder::inline_ptx {
namespace {

using Kind = Type::Kind;

// --- numbers of each type

/// An fp16 or bf16 number; `Packed` holds two.
template <bool kIsBfloat>
struct Half {
  uint16_t bits = 0;
  double value() const {
    return static_cast<double>(kIsBfloat ? cpu_device::bfloat16_to_float(bits)
                                         : cpu_device::float16_to_float(bits));
  }
  static Half of(double value) {
    if (std::isnan(value)) return {0x7fff};
    const uint32_t rounded = kIsBfloat
                                 ? cpu_device::round_to_bits(value, 8, 7, cpu_device::Rounding::nearest)
                                 : cpu_device::round_to_bits(value, 5, 10, cpu_device::Rounding::nearest);
    return {static_cast<uint16_t>(rounded)};
  }
};
template <class H>
struct Packed {
  H low, high;
};
using Fp16 = Half<false>;
using Bf16 = Half<true>;

template <class T>
constexpr bool kIsHalf = std::is_same_v<T, Fp16> || std::is_same_v<T, Bf16>;
template <class T>
constexpr bool kIsPacked = false;
template <class H>
constexpr bool kIsPacked<Packed<H>> = true;

struct FloatPair {
  float low, high;
};

float flushed(const Instruction& it, float value) {
  return it.flush && std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0f, value) : value;
}

template <class T>
T taken(const Frame& frame, const Instruction& it, size_t argument) {
  const T value = frame.get<T>(it.arguments[argument].ref);
  if constexpr (std::is_same_v<T, float>) return flushed(it, value);
  return value;
}

template <class T>
void give(const Frame& frame, const Instruction& it, T value) {
  if constexpr (std::is_floating_point_v<T>) {
    if (it.saturate) value = value > T{0} ? std::min(value, T{1}) : T{0};  // also of NaN, and of -0
    if constexpr (std::is_same_v<T, float>) value = flushed(it, value);
    if (std::isnan(value) && sizeof(T) == 4) return frame.write(it.arguments[0].ref, 0x7fffffff);
  }
  frame.set<T>(it.arguments[0].ref, value);
}

/// Executes `Operation` on values of the type T, which may be packed; halves as doubles, rounded once.
template <class T, class Operation, class... Values>
T apply(const Instruction& it, Values... values) {
  if constexpr (kIsPacked<T>) {
    using H = decltype(T::low);
    return {apply<H, Operation>(it, values.low...), apply<H, Operation>(it, values.high...)};
  } else if constexpr (std::is_same_v<T, FloatPair>) {
    return {apply<float, Operation>(it, values.low...), apply<float, Operation>(it, values.high...)};
  } else if constexpr (kIsHalf<T>) {
    double result = Operation{}(it, values.value()...);
    if (it.saturate) result = result > 0 ? std::min(result, 1.0) : 0;
    if (it.variant && result <= 0) result = 0;  // .relu, also of -0
    return T::of(result);
  } else {
    return Operation{}(it, values...);
  }
}

template <class T, class Operation>
void unary(Frame& frame, const Instruction& it) {
  give<T>(frame, it, apply<T, Operation>(it, taken<T>(frame, it, 1)));
}
template <class T, class Operation>
void binary(Frame& frame, const Instruction& it) {
  give<T>(frame, it, apply<T, Operation>(it, taken<T>(frame, it, 1), taken<T>(frame, it, 2)));
}
template <class T, class Operation>
void ternary(Frame& frame, const Instruction& it) {
  give<T>(frame, it,
          apply<T, Operation>(it, taken<T>(frame, it, 1), taken<T>(frame, it, 2), taken<T>(frame, it, 3)));
}

template <class T, class Operation>
Function of_arity(const Instruction& it) {
  switch (it.arguments.size()) {
    case 2:
      if constexpr (std::is_invocable_v<Operation, const Instruction&, T> ||
                    (!std::is_arithmetic_v<T> && std::is_invocable_v<Operation, const Instruction&, double>))
        return &unary<T, Operation>;
      break;
    case 3:
      if constexpr (std::is_invocable_v<Operation, const Instruction&, T, T> ||
                    (!std::is_arithmetic_v<T> &&
                     std::is_invocable_v<Operation, const Instruction&, double, double>))
        return &binary<T, Operation>;
      break;
    case 4:
      if constexpr (std::is_invocable_v<Operation, const Instruction&, T, T, T> ||
                    (!std::is_arithmetic_v<T> &&
                     std::is_invocable_v<Operation, const Instruction&, double, double, double>))
        return &ternary<T, Operation>;
      break;
    default:
      break;
  }
  return nullptr;
}

/// By the type of the instruction; null where it has none.
template <class Operation>
Function of_integer(const Instruction& it) {
  const bool is_signed = it.type.kind == Kind::signed_int;
  if (!it.type.is_integer()) return nullptr;
  switch (it.type.bits) {
    case 16:
      return is_signed ? of_arity<int16_t, Operation>(it) : of_arity<uint16_t, Operation>(it);
    case 32:
      return is_signed ? of_arity<int32_t, Operation>(it) : of_arity<uint32_t, Operation>(it);
    case 64:
      return is_signed ? of_arity<int64_t, Operation>(it) : of_arity<uint64_t, Operation>(it);
    default:
      return nullptr;
  }
}
template <class Operation>
Function of_floating(const Instruction& it) {
  const bool is_packed = it.type.elements == 2;
  if (it.type.kind == Kind::bfloat)
    return is_packed ? of_arity<Packed<Bf16>, Operation>(it) : of_arity<Bf16, Operation>(it);
  if (it.type.kind != Kind::floating) return nullptr;
  switch (it.type.bits) {
    case 16:
      return is_packed ? of_arity<Packed<Fp16>, Operation>(it) : of_arity<Fp16, Operation>(it);
    case 32:
      return is_packed ? of_arity<FloatPair, Operation>(it) : of_arity<float, Operation>(it);
    default:
      return of_arity<double, Operation>(it);
  }
}
template <class Operation>
Function of_number(const Instruction& it) {
  return it.type.is_integer() ? of_integer<Operation>(it) : of_floating<Operation>(it);
}

// --- operations

/// The type in which integers wrap around.
template <class T>
struct Wrapping {
  using type = T;
};
template <class T>
requires std::is_integral_v<T>
struct Wrapping<T> {
  using type = std::conditional_t<sizeof(T) < 4, uint32_t, std::make_unsigned_t<T>>;
};
template <class T>
using Wraps = typename Wrapping<T>::type;

template <class T>
T saturated(const Instruction& it, __int128 value) {
  if (!it.saturate) return static_cast<T>(value);
  return static_cast<T>(
      std::clamp<__int128>(value, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
}

// Halves come as doubles: sums round to odd first, so that the second rounding does no harm.
struct Add {
  template <class T>
  T operator()(const Instruction& it, T a, T b) const {
    if constexpr (std::is_integral_v<T>) return saturated<T>(it, static_cast<__int128>(a) + b);
    if constexpr (std::is_same_v<T, double>) return it.type.bits == 16 ? cpu_device::add_to_odd(a, b) : a + b;
    return a + b;
  }
};
struct Subtract {
  template <class T>
  T operator()(const Instruction& it, T a, T b) const {
    if constexpr (std::is_integral_v<T>) return saturated<T>(it, static_cast<__int128>(a) - b);
    if constexpr (std::is_same_v<T, double>)
      return it.type.bits == 16 ? cpu_device::add_to_odd(a, -b) : a - b;
    return a - b;
  }
};
struct Multiply {
  template <class T>
  T operator()(const Instruction&, T a, T b) const {
    return static_cast<T>(static_cast<Wraps<T>>(a) * static_cast<Wraps<T>>(b));
  }
};
struct MultiplyHigh {
  template <class T>
  T operator()(const Instruction&, T a, T b) const {
    if constexpr (std::is_unsigned_v<T>)
      return static_cast<T>(static_cast<unsigned __int128>(a) * b >> 8 * sizeof(T));
    return static_cast<T>(static_cast<__int128>(a) * b >> 8 * sizeof(T));
  }
};
struct MultiplyAdd {
  template <class T>
  T operator()(const Instruction& it, T a, T b, T c) const {
    if constexpr (std::is_floating_point_v<T>) {
      if (std::is_same_v<T, double> && it.type.bits == 16)
        return static_cast<T>(cpu_device::add_to_odd(static_cast<double>(a * b), static_cast<double>(c)));
      return std::fma(a, b, c);
    } else {
      return static_cast<T>(static_cast<Wraps<T>>(a) * static_cast<Wraps<T>>(b) + static_cast<Wraps<T>>(c));
    }
  }
};
struct MultiplyHighAdd {
  template <class T>
  T operator()(const Instruction& it, T a, T b, T c) const {
    return static_cast<T>(static_cast<Wraps<T>>(MultiplyHigh{}(it, a, b)) + static_cast<Wraps<T>>(c));
  }
};
struct Divide {
  template <class T>
  T operator()(const Instruction&, T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      if (b == 0) return static_cast<T>(~T{0});
      if (std::is_signed_v<T> && b == static_cast<T>(-1))
        return static_cast<T>(Wraps<T>{0} - static_cast<Wraps<T>>(a));
    }
    return static_cast<T>(a / b);
  }
};
struct Remainder {
  template <class T>
  T operator()(const Instruction&, T a, T b) const {
    if (b == 0) return a;
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return 0;
    return static_cast<T>(a % b);
  }
};
template <bool kIsMaximum>
struct Extreme {
  template <class T>
  T operator()(const Instruction& it, T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(a) || std::isnan(b))
        return it.flag || (std::isnan(a) && std::isnan(b)) ? std::numeric_limits<T>::quiet_NaN()
               : std::isnan(a)                             ? b
                                                           : a;
      if (a == b) return std::signbit(a) == kIsMaximum ? b : a;  // of zeros
    }
    return kIsMaximum == (a < b) ? b : a;
  }
  template <class T>
  T operator()(const Instruction& it, T a, T b, T c) const {
    return (*this)(it, (*this)(it, a, b), c);
  }
};
struct Negate {
  template <class T>
  T operator()(const Instruction&, T a) const {
    if constexpr (std::is_integral_v<T>) return static_cast<T>(Wraps<T>{0} - static_cast<Wraps<T>>(a));
    return -a;
  }
};
struct Absolute {
  template <class T>
  T operator()(const Instruction& it, T a) const {
    if constexpr (std::is_integral_v<T>) return a < 0 ? Negate{}(it, a) : a;
    return std::fabs(a);
  }
};
struct AbsoluteDifference {
  template <class T>
  T operator()(const Instruction&, T a, T b, T c) const {
    const auto difference = a < b ? static_cast<Wraps<T>>(b) - static_cast<Wraps<T>>(a)
                                  : static_cast<Wraps<T>>(a) - static_cast<Wraps<T>>(b);
    return static_cast<T>(static_cast<Wraps<T>>(c) + difference);
  }
};
struct And {
  template <class T>
  T operator()(const Instruction&, T a, T b) const {
    return static_cast<T>(a & b);
  }
};
struct Or {
  template <class T>
  T operator()(const Instruction&, T a, T b) const {
    return static_cast<T>(a | b);
  }
};
struct Xor {
  template <class T>
  T operator()(const Instruction&, T a, T b) const {
    return static_cast<T>(a ^ b);
  }
};
struct Not {
  template <class T>
  T operator()(const Instruction&, T a) const {
    return static_cast<T>(~a);
  }
};
struct LogicalNot {
  template <class T>
  T operator()(const Instruction&, T a) const {
    return a == 0;
  }
};

// Of floats and doubles.
struct Root {
  template <class T>
  T operator()(const Instruction&, T a) const {
    return std::sqrt(a);
  }
};
struct Reciprocal {
  template <class T>
  T operator()(const Instruction&, T a) const {
    return T{1} / a;
  }
};
struct ReciprocalRoot {
  template <class T>
  T operator()(const Instruction&, T a) const {
    return static_cast<T>(1 / std::sqrt(static_cast<double>(a)));
  }
};
struct PowerOfTwo {
  template <class T>
  T operator()(const Instruction&, T a) const {
    return std::exp2(a);
  }
};
struct Logarithm {
  template <class T>
  T operator()(const Instruction&, T a) const {
    return std::log2(a);
  }
};
struct Sine {
  template <class T>
  T operator()(const Instruction&, T a) const {
    return std::sin(a);
  }
};
struct Cosine {
  template <class T>
  T operator()(const Instruction&, T a) const {
    return std::cos(a);
  }
};
struct HyperbolicTangent {
  template <class T>
  T operator()(const Instruction&, T a) const {
    return std::tanh(a);
  }
};
/// Takes what may stand with arithmetic. Other roundings than to the nearest are not here.
void take_arithmetic_words(Instruction& it, Words& words) {
  it.saturate = words.take("sat");
  it.flush = words.take("ftz");
  it.flag = words.take("NaN");
  it.variant = words.take("relu");
  for (const std::string_view word : {"rn", "approx", "full", "rna", "noftz"}) words.take(word);
  it.type = words.take_type();
}

template <class Operation>
bool bind_number(Instruction& it, Words& words) {
  take_arithmetic_words(it, words);
  settle_immediates(it, it.type);
  it.execute = of_number<Operation>(it);
  return it.execute != nullptr;
}
template <class Operation>
bool bind_floating(Instruction& it, Words& words) {
  take_arithmetic_words(it, words);
  settle_immediates(it, it.type);
  it.execute = of_floating<Operation>(it);
  return it.execute != nullptr;
}
/// It moves bits, those of a NaN too.
bool bind_copysign(Instruction& it, Words& words) {
  take_arithmetic_words(it, words);
  settle_immediates(it, it.type);
  it.execute = [](Frame& frame, const Instruction& it) {
    const uint64_t sign = uint64_t{1} << (it.type.bits - 1);
    frame.write(it.arguments[0].ref,
                (frame.read(it.arguments[1].ref) & sign) | (frame.read(it.arguments[2].ref) & (sign - 1)));
  };
  return it.type.kind == Kind::floating && it.type.bits >= 32 && it.type.elements == 1 &&
         it.arguments.size() == 3;
}
template <class Operation>
bool bind_integer(Instruction& it, Words& words) {
  take_arithmetic_words(it, words);
  it.execute = of_integer<Operation>(it);
  return it.execute != nullptr;
}

// --- products of two widths

template <class T>
void multiply_wide(Frame& frame, const Instruction& it) {
  using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
  auto product = static_cast<Wide>(frame.get<T>(it.arguments[1].ref)) * frame.get<T>(it.arguments[2].ref);
  if (it.arguments.size() == 4) {
    auto sum = frame.get<Wide>(it.arguments[3].ref);
    if constexpr (sizeof(T) == 2)
      sum = static_cast<std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>>(sum);
    product = static_cast<Wide>(static_cast<uint64_t>(product) + static_cast<uint64_t>(sum));
  }
  frame.write(it.arguments[0].ref,
              sizeof(T) == 2 ? static_cast<uint32_t>(product) : static_cast<uint64_t>(product));
}

bool bind_product(Instruction& it, Words& words, bool adds) {
  const int half = words.take_one_of({"lo", "hi", "wide"});
  if (it.arguments.size() != (adds ? 4u : 3u)) return false;
  if (adds && words.take("cc")) return false;
  take_arithmetic_words(it, words);
  settle_immediates(it, it.type);
  if (half == 2) {
    const bool is_signed = it.type.kind == Kind::signed_int;
    if (!it.type.is_integer() || it.type.bits > 32) return false;
    it.execute = it.type.bits == 16 ? (is_signed ? &multiply_wide<int16_t> : &multiply_wide<uint16_t>)
                                    : (is_signed ? &multiply_wide<int32_t> : &multiply_wide<uint32_t>);
  } else if (half == 1) {
    it.execute = adds ? of_integer<MultiplyHighAdd>(it) : of_integer<MultiplyHigh>(it);
  } else {
    it.execute = adds ? of_number<MultiplyAdd>(it) : of_number<Multiply>(it);
  }
  return it.execute != nullptr;
}
bool bind_mul(Instruction& it, Words& words) { return bind_product(it, words, false); }
bool bind_mad(Instruction& it, Words& words) { return bind_product(it, words, true); }

// --- with a carry

template <class T>
void add_with_carry(Frame& frame, const Instruction& it) {
  const T a = frame.get<T>(it.arguments[1].ref), b = frame.get<T>(it.arguments[2].ref);
  const auto in = static_cast<T>(it.mode ? frame.carry : false);
  const unsigned __int128 sum =
      it.variant ? static_cast<unsigned __int128>(a) + static_cast<T>(~b) + (it.mode ? in : 1)
                 : static_cast<unsigned __int128>(a) + b + in;
  if (it.flag) frame.carry = sum >> 8 * sizeof(T) & 1;
  frame.set<T>(it.arguments[0].ref, static_cast<T>(sum));
}

/// `mode`: takes the carry in; `flag`: gives one; `variant`: subtracts.
bool bind_with_carry(Instruction& it, Words& words, bool takes, bool subtracts) {
  it.flag = words.take("cc");
  it.mode = takes;
  it.variant = subtracts;
  it.type = words.take_type();
  if (!it.type.is_integer() || it.arguments.size() != 3 || it.type.bits < 32) return false;
  it.execute = it.type.bits == 32 ? &add_with_carry<uint32_t> : &add_with_carry<uint64_t>;
  return true;
}
bool bind_add(Instruction& it, Words& words) {
  return words.has("cc") ? bind_with_carry(it, words, false, false) : bind_number<Add>(it, words);
}
bool bind_sub(Instruction& it, Words& words) {
  return words.has("cc") ? bind_with_carry(it, words, false, true) : bind_number<Subtract>(it, words);
}
bool bind_addc(Instruction& it, Words& words) { return bind_with_carry(it, words, true, false); }
bool bind_subc(Instruction& it, Words& words) { return bind_with_carry(it, words, true, true); }

// --- bits

uint64_t ones(unsigned count) { return count >= 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1; }

uint64_t value_of(const Frame& frame, const Instruction& it, size_t argument) {
  return frame.read(it.arguments[argument].ref) & ones(it.type.bits);
}
int64_t signed_value_of(const Frame& frame, const Instruction& it, size_t argument) {
  const unsigned shift = 64u - it.type.bits;
  return static_cast<int64_t>(frame.read(it.arguments[argument].ref) << shift) >> shift;
}
uint32_t word_of(const Frame& frame, const Instruction& it, size_t argument) {
  return static_cast<uint32_t>(frame.read(it.arguments[argument].ref));
}

bool bind_shl(Instruction& it, Words& words) {
  it.type = words.take_type();
  it.execute = [](Frame& frame, const Instruction& it) {
    const uint32_t by = word_of(frame, it, 2);
    frame.write(it.arguments[0].ref,
                by >= it.type.bits ? 0 : value_of(frame, it, 1) << by & ones(it.type.bits));
  };
  return it.type.is_integer() && it.type.bits && it.arguments.size() == 3;
}
bool bind_shr(Instruction& it, Words& words) {
  it.type = words.take_type();
  it.execute = [](Frame& frame, const Instruction& it) {
    const uint32_t by = std::min<uint32_t>(word_of(frame, it, 2), it.type.bits);
    if (it.type.kind == Kind::signed_int) {
      const int64_t value = signed_value_of(frame, it, 1) >> std::min<uint32_t>(by, 63);
      frame.write(it.arguments[0].ref, static_cast<uint64_t>(value) & ones(it.type.bits));
    } else {
      frame.write(it.arguments[0].ref, by >= it.type.bits ? 0 : value_of(frame, it, 1) >> by);
    }
  };
  return it.type.is_integer() && it.type.bits && it.arguments.size() == 3;
}
bool bind_shf(Instruction& it, Words& words) {
  it.variant = words.take_one_of({"l", "r"});
  it.mode = words.take_one_of({"clamp", "wrap"});
  it.execute = [](Frame& frame, const Instruction& it) {
    const uint64_t both = uint64_t{word_of(frame, it, 2)} << 32 | word_of(frame, it, 1);
    const uint32_t c = word_of(frame, it, 3), by = it.mode ? c & 31 : std::min<uint32_t>(c, 32);
    frame.write(it.arguments[0].ref, static_cast<uint32_t>(it.variant ? both >> by : both << by >> 32));
  };
  return it.variant >= 0 && it.mode >= 0 && words.take_type().bits == 32 && it.arguments.size() == 4;
}
bool bind_bfe(Instruction& it, Words& words) {
  it.type = words.take_type();
  it.execute = [](Frame& frame, const Instruction& it) {
    const unsigned from = word_of(frame, it, 2) & 255, count = word_of(frame, it, 3) & 255,
                   bits = it.type.bits;
    uint64_t value = from >= bits ? 0 : value_of(frame, it, 1) >> from & ones(count);
    if (it.type.kind == Kind::signed_int && count) {
      const unsigned top = std::min(from + count - 1, bits - 1);
      const bool sign = value_of(frame, it, 1) >> top & 1;
      const unsigned kept = from >= bits ? 0 : std::min(count, bits - from);
      if (sign) value |= ~ones(kept);
    }
    frame.write(it.arguments[0].ref, value & ones(bits));
  };
  return it.type.is_integer() && it.type.bits >= 32 && it.arguments.size() == 4;
}
bool bind_bfi(Instruction& it, Words& words) {
  it.type = words.take_type();
  it.execute = [](Frame& frame, const Instruction& it) {
    const unsigned at = word_of(frame, it, 3) & 255, count = word_of(frame, it, 4) & 255;
    const uint64_t mask = at >= 64 ? 0 : ones(count) << at;
    const uint64_t moved = at >= 64 ? 0 : value_of(frame, it, 1) << at;
    frame.write(it.arguments[0].ref,
                ((value_of(frame, it, 2) & ~mask) | (moved & mask)) & ones(it.type.bits));
  };
  return it.type.bits >= 32 && it.arguments.size() == 5;
}
bool bind_popc(Instruction& it, Words& words) {
  it.type = words.take_type();
  it.execute = [](Frame& frame, const Instruction& it) {
    frame.write(it.arguments[0].ref, static_cast<uint64_t>(std::popcount(value_of(frame, it, 1))));
  };
  return it.type.bits >= 32 && it.arguments.size() == 2;
}
bool bind_clz(Instruction& it, Words& words) {
  it.type = words.take_type();
  it.execute = [](Frame& frame, const Instruction& it) {
    const int zeros = std::countl_zero(value_of(frame, it, 1)) - (64 - it.type.bits);
    frame.write(it.arguments[0].ref, static_cast<uint64_t>(zeros));
  };
  return it.type.bits >= 32 && it.arguments.size() == 2;
}
bool bind_brev(Instruction& it, Words& words) {
  it.type = words.take_type();
  it.execute = [](Frame& frame, const Instruction& it) {
    uint64_t value = value_of(frame, it, 1), reversed = 0;
    for (unsigned i = 0; i < it.type.bits; ++i, value >>= 1) reversed = reversed << 1 | (value & 1);
    frame.write(it.arguments[0].ref, reversed);
  };
  return it.type.bits >= 32 && it.arguments.size() == 2;
}
bool bind_bfind(Instruction& it, Words& words) {
  it.flag = words.take("shiftamt");
  it.type = words.take_type();
  it.execute = [](Frame& frame, const Instruction& it) {
    uint64_t value = value_of(frame, it, 1);
    if (it.type.kind == Kind::signed_int && signed_value_of(frame, it, 1) < 0)
      value = ~value & ones(it.type.bits);
    const unsigned top = 63u - static_cast<unsigned>(std::countl_zero(value));
    frame.write(it.arguments[0].ref, value == 0 ? uint32_t(-1) : it.flag ? it.type.bits - 1u - top : top);
  };
  return it.type.bits >= 32 && it.arguments.size() == 2;
}
bool bind_lop3(Instruction& it, Words& words) {
  it.execute = [](Frame& frame, const Instruction& it) {
    const uint32_t a = word_of(frame, it, 1), b = word_of(frame, it, 2), c = word_of(frame, it, 3);
    const uint32_t table = word_of(frame, it, 4);
    uint32_t result = 0;
    for (unsigned i = 0; i < 8; ++i)
      if (table >> i & 1) result |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
    frame.write(it.arguments[0].ref, result);
  };
  return words.take_type().bits == 32 && it.arguments.size() == 5;
}
bool bind_prmt(Instruction& it, Words& words) {
  it.execute = [](Frame& frame, const Instruction& it) {
    const uint64_t both = uint64_t{word_of(frame, it, 2)} << 32 | word_of(frame, it, 1);
    const uint32_t selector = word_of(frame, it, 3);
    uint32_t result = 0;
    for (unsigned i = 0; i < 4; ++i) {
      const uint32_t choice = selector >> 4 * i & 15;
      auto byte = static_cast<uint32_t>(both >> 8 * (choice & 7) & 0xff);
      if (choice & 8) byte = byte & 0x80 ? 0xff : 0;
      result |= byte << 8 * i;
    }
    frame.write(it.arguments[0].ref, result);
  };
  return words.take_type().bits == 32 && it.arguments.size() == 4;
}

template <class Operation>
bool bind_logic(Instruction& it, Words& words) {
  it.type = words.take_type();
  if (it.type.kind == Kind::predicate) {
    it.execute = [](Frame& frame, const Instruction& it) {
      const auto a = static_cast<uint32_t>(frame.test(it.arguments[1].ref));
      if constexpr (std::is_invocable_v<Operation, const Instruction&, uint32_t, uint32_t>) {
        frame.write(it.arguments[0].ref,
                    Operation{}(it, a, static_cast<uint32_t>(frame.test(it.arguments[2].ref))));
      } else {
        frame.write(it.arguments[0].ref, !a);
      }
    };
  } else {
    it.execute = of_integer<Operation>(it);
  }
  return it.execute != nullptr && it.arguments.size() >= 2;
}

// --- mov, comparisons

void move(Frame& frame, const Instruction& it) {
  const Argument &to = it.arguments[0], &from = it.arguments[1];
  uint64_t value[2] = {};
  if (from.kind == Argument::Kind::vector) {
    const size_t one = it.type.bytes() / from.parts.size();
    for (size_t i = 0; i < from.parts.size(); ++i) {
      const uint64_t part = frame.read(from.parts[i]);
      std::memcpy(reinterpret_cast<std::byte*>(value) + i * one, &part, one);
    }
  } else {
    frame.read_wide(from.ref, value);
    if (from.kind == Argument::Kind::address || from.offset) value[0] += static_cast<uint64_t>(from.offset);
  }
  if (to.kind == Argument::Kind::vector) {
    const size_t one = it.type.bytes() / to.parts.size();
    for (size_t i = 0; i < to.parts.size(); ++i) {
      uint64_t part = 0;
      std::memcpy(&part, reinterpret_cast<const std::byte*>(value) + i * one, one);
      frame.write(to.parts[i], part);
    }
  } else if (it.type.bits == 128) {
    frame.write_wide(to.ref, value);
  } else {
    frame.write(to.ref, value[0] & ones(it.type.bits));
  }
}

bool bind_mov(Instruction& it, Words& words) {
  it.type = words.take_type();
  if (it.type.kind == Kind::none || it.arguments.size() != 2) return false;
  if (it.type.kind == Kind::predicate) {
    it.execute = [](Frame& frame, const Instruction& it) {
      frame.write(it.arguments[0].ref, frame.test(it.arguments[1].ref));
    };
    return true;
  }
  for (const Argument& argument : it.arguments)
    if (argument.kind == Argument::Kind::vector && it.type.bytes() % argument.parts.size()) return false;
  settle_immediates(it, it.type);
  it.execute = &move;
  return true;
}

enum Comparison { eq, ne, lt, le, gt, ge, equ, neu, ltu, leu, gtu, geu, num, nan_, lo, ls, hi, hs };

template <class T>
bool compare(int comparison, T a, T b) {
  bool is_unordered = false;
  if constexpr (std::is_floating_point_v<T>) is_unordered = std::isnan(a) || std::isnan(b);
  switch (comparison) {
    case num:
      return !is_unordered;
    case nan_:
      return is_unordered;
    case lo:
      comparison = lt;
      break;
    case ls:
      comparison = le;
      break;
    case hi:
      comparison = gt;
      break;
    case hs:
      comparison = ge;
      break;
    default:
      break;
  }
  if (comparison >= equ) {
    if (is_unordered) return true;
    comparison -= equ;
  }
  if (is_unordered) return false;
  switch (comparison) {
    case eq:
      return a == b;
    case ne:
      return a != b;
    case lt:
      return a < b;
    case le:
      return a <= b;
    case gt:
      return a > b;
    default:
      return a >= b;
  }
}

bool compare(const Frame& frame, const Instruction& it, size_t first) {
  const Ref &a = it.arguments[first].ref, &b = it.arguments[first + 1].ref;
  switch (it.type.kind) {
    case Kind::floating:
      if (it.type.bits == 64) return compare(it.mode, frame.get<double>(a), frame.get<double>(b));
      if (it.type.bits == 32)
        return compare(it.mode, flushed(it, frame.get<float>(a)), flushed(it, frame.get<float>(b)));
      return compare(it.mode, frame.get<Fp16>(a).value(), frame.get<Fp16>(b).value());
    case Kind::bfloat:
      return compare(it.mode, frame.get<Bf16>(a).value(), frame.get<Bf16>(b).value());
    case Kind::signed_int:
      return compare(it.mode, signed_value_of(frame, it, first), signed_value_of(frame, it, first + 1));
    default:
      return compare(it.mode, value_of(frame, it, first), value_of(frame, it, first + 1));
  }
}

/// setp p|q, a, b {, c}: `variant` is how c is joined, from 1: and, or, xor.
bool bind_setp(Instruction& it, Words& words) {
  it.mode = words.take_one_of({"eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu",
                               "num", "nan", "lo", "ls", "hi", "hs"});
  it.variant = words.take_one_of({"and", "or", "xor"}) + 1;
  it.flush = words.take("ftz");
  it.type = words.take_type();
  if (it.mode < 0 || it.type.elements != 1 || it.type.kind == Kind::none ||
      it.arguments.size() != (it.variant ? 4u : 3u))
    return false;
  settle_immediates(it, it.type);
  it.execute = [](Frame& frame, const Instruction& it) {
    const bool result = compare(frame, it, 1);
    const auto joined = [&](bool value) {
      if (!it.variant) return value;
      const bool c = frame.test(it.arguments[3].ref);
      return it.variant == 1 ? value && c : it.variant == 2 ? value || c : value != c;
    };
    const bool p = joined(result), q = joined(!result);
    frame.write(it.arguments[0].ref, p);
    frame.write(it.arguments[0].second, q);
  };
  return true;
}

bool bind_set(Instruction& it, Words& words) {
  it.mode = words.take_one_of({"eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu",
                               "num", "nan", "lo", "ls", "hi", "hs"});
  it.flush = words.take("ftz");
  const Type result = words.take_type();
  it.type = words.take_type();
  it.flag = result.kind == Kind::floating;
  it.execute = [](Frame& frame, const Instruction& it) {
    const bool yes = compare(frame, it, 1);
    frame.write(it.arguments[0].ref, yes ? (it.flag ? 0x3f800000u : ~0u) : 0u);
  };
  settle_immediates(it, it.type);
  return it.mode >= 0 && result.bits == 32 && it.type.elements == 1 && it.type.kind != Kind::none &&
         it.arguments.size() == 3;
}

bool bind_selp(Instruction& it, Words& words) {
  it.type = words.take_type();
  settle_immediates(it, it.type);
  it.execute = [](Frame& frame, const Instruction& it) {
    frame.write(it.arguments[0].ref, value_of(frame, it, frame.test(it.arguments[3].ref) ? 1 : 2));
  };
  return it.type.kind != Kind::none && it.arguments.size() == 4;
}

bool bind_slct(Instruction& it, Words& words) {
  it.flush = words.take("ftz");
  it.type = words.take_type();
  it.from = words.take_type();
  it.execute = [](Frame& frame, const Instruction& it) {
    const Ref& c = it.arguments[3].ref;
    const bool first =
        it.from.kind == Kind::floating ? flushed(it, frame.get<float>(c)) >= 0 : frame.get<int32_t>(c) >= 0;
    frame.write(it.arguments[0].ref, value_of(frame, it, first ? 1 : 2));
  };
  return it.from.bits == 32 && it.arguments.size() == 4;
}

bool bind_testp(Instruction& it, Words& words) {
  it.mode = words.take_one_of({"finite", "infinite", "number", "notanumber", "normal", "subnormal"});
  it.type = words.take_type();
  it.execute = [](Frame& frame, const Instruction& it) {
    const Ref& a = it.arguments[1].ref;
    const double value = it.type.bits == 32 ? static_cast<double>(frame.get<float>(a)) : frame.get<double>(a);
    const int kind = it.type.bits == 32 ? std::fpclassify(frame.get<float>(a)) : std::fpclassify(value);
    const bool results[] = {std::isfinite(value),
                            std::isinf(value),
                            !std::isnan(value),
                            std::isnan(value),
                            kind == FP_NORMAL || kind == FP_ZERO,
                            kind == FP_SUBNORMAL};
    frame.write(it.arguments[0].ref, results[it.mode]);
  };
  return it.mode >= 0 && it.type.kind == Kind::floating && it.arguments.size() == 2;
}

constexpr TableEntry kTable[] = {
    {"mov", &bind_mov},
    {"add", &bind_add},
    {"sub", &bind_sub},
    {"addc", &bind_addc},
    {"subc", &bind_subc},
    {"mul", &bind_mul},
    {"mad", &bind_mad},
    {"fma", &bind_floating<MultiplyAdd>},
    {"div", &bind_number<Divide>},
    {"rem", &bind_integer<Remainder>},
    {"min", &bind_number<Extreme<false>>},
    {"max", &bind_number<Extreme<true>>},
    {"neg", &bind_number<Negate>},
    {"abs", &bind_number<Absolute>},
    {"sad", &bind_integer<AbsoluteDifference>},
    {"and", &bind_logic<And>},
    {"or", &bind_logic<Or>},
    {"xor", &bind_logic<Xor>},
    {"not", &bind_logic<Not>},
    {"cnot", &bind_integer<LogicalNot>},
    {"shl", &bind_shl},
    {"shr", &bind_shr},
    {"shf", &bind_shf},
    {"bfe", &bind_bfe},
    {"bfi", &bind_bfi},
    {"popc", &bind_popc},
    {"clz", &bind_clz},
    {"brev", &bind_brev},
    {"bfind", &bind_bfind},
    {"lop3", &bind_lop3},
    {"prmt", &bind_prmt},
    {"sqrt", &bind_floating<Root>},
    {"rcp", &bind_floating<Reciprocal>},
    {"rsqrt", &bind_floating<ReciprocalRoot>},
    {"ex2", &bind_floating<PowerOfTwo>},
    {"lg2", &bind_floating<Logarithm>},
    {"sin", &bind_floating<Sine>},
    {"cos", &bind_floating<Cosine>},
    {"tanh", &bind_floating<HyperbolicTangent>},
    {"copysign", &bind_copysign},
    {"setp", &bind_setp},
    {"set", &bind_set},
    {"selp", &bind_selp},
    {"slct", &bind_slct},
    {"testp", &bind_testp},
};

}  // namespace

Table arithmetic_table() { return {kTable, std::size(kTable)}; }

}  // namespace ladder::inline_ptx
