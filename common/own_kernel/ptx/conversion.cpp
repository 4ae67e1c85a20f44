/// @file
/// cvt.
#include <algorithm>
#include <cmath>
#include <limits>

#include "common/cpu_device/base/float16.hpp"
#include "common/own_kernel/ptx/program.hpp"

namespace ladder::inline_ptx {
namespace {

using cpu_device::Rounding;
using Kind = Type::Kind;

uint64_t mask_of(unsigned bits) { return bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1; }

float float_of(uint64_t bits) {
  const auto low = static_cast<uint32_t>(bits);
  float value;
  std::memcpy(&value, &low, sizeof value);
  return value;
}
double double_of(uint64_t bits) {
  double value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
uint64_t bits_of(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

double to_double(Type type, uint64_t bits) {
  if (type.kind == Kind::bfloat)
    return static_cast<double>(cpu_device::bfloat16_to_float(static_cast<uint16_t>(bits)));
  if (type.bits == 16) return static_cast<double>(cpu_device::float16_to_float(static_cast<uint16_t>(bits)));
  return type.bits == 32 ? static_cast<double>(float_of(bits)) : double_of(bits);
}

double rounded_to_integer(double value, Rounding mode) {
  switch (mode) {
    case Rounding::nearest:
      return std::nearbyint(value);
    case Rounding::zero:
      return std::trunc(value);
    case Rounding::down:
      return std::floor(value);
    case Rounding::up:
      return std::ceil(value);
  }
  return value;
}

/// The number of a floating type that the mode makes of this one.
uint64_t from_double(const Instruction& it, Type type, double value) {
  const auto mode = static_cast<Rounding>(it.mode);
  if (it.saturate) value = value > 0 ? std::min(value, 1.0) : 0;
  if (it.flag && value <= 0) value = 0;  // .relu, also of -0
  if (type.bits == 64) return bits_of(value);
  if (std::isnan(value)) {
    if (it.from.bits == 64 && type.bits == 32)  // the sign and the upper bits stay
      return (bits_of(value) >> 32 & 0x80000000) | 0x7fc00000 | (bits_of(value) >> 29 & 0x3fffff);
    return type.bits == 32 ? 0x7fffffff : 0x7fff;
  }
  const int exponent = type.bits == 16 && type.kind == Kind::floating ? 5 : 8;
  const int mantissa = type.bits == 32 ? 23 : type.kind == Kind::bfloat ? 7 : 10;
  uint64_t result = cpu_device::round_to_bits(value, exponent, mantissa, mode);
  const uint64_t magnitude = result & (type.bits == 32 ? 0x7fffffff : 0x7fff);
  if (it.flush && type.bits == 32 && magnitude < 0x800000) result &= 0x80000000;
  const uint64_t infinity = ((uint64_t{1} << exponent) - 1) << mantissa;
  if (it.variant && magnitude == infinity) --result;  // .satfinite
  return result;
}

int64_t sign_extended(uint64_t value, unsigned bits) {
  return static_cast<int64_t>(value << (64 - bits)) >> (64 - bits);
}

/// The least and the greatest number of an integer type.
void range_of(Type type, __int128& least, __int128& most) {
  const bool is_signed = type.kind == Kind::signed_int;
  most = (static_cast<__int128>(1) << (type.bits - is_signed)) - 1;
  least = is_signed ? -most - 1 : 0;
}

uint64_t to_integer(const Instruction& it, double value) {
  const Type type = it.type;
  if (std::isnan(value)) return it.from.bits == 64 || type.bits == 64 ? uint64_t{1} << (type.bits - 1) : 0;
  __int128 least, most;
  range_of(type, least, most);
  const double whole = rounded_to_integer(value, static_cast<Rounding>(it.mode));
  if (whole <= static_cast<double>(least)) return static_cast<uint64_t>(least) & mask_of(type.bits);
  if (whole >= static_cast<double>(most)) return static_cast<uint64_t>(most) & mask_of(type.bits);
  return static_cast<uint64_t>(static_cast<__int128>(whole)) & mask_of(type.bits);
}

uint64_t convert_integer(const Instruction& it, uint64_t value) {
  const bool is_signed = it.from.kind == Kind::signed_int;
  __int128 number = is_signed ? static_cast<__int128>(sign_extended(value, it.from.bits))
                              : static_cast<__int128>(value & mask_of(it.from.bits));
  if (it.type.is_integer()) {
    if (it.saturate) {
      __int128 least, most;
      range_of(it.type, least, most);
      number = number < least ? least : number > most ? most : number;
    }
    return static_cast<uint64_t>(number) & mask_of(it.type.bits);
  }
  // A double holds every integer of 53 bits; of others the lost bits are kept in the last one.
  double wide = static_cast<double>(number);
  if (it.type.bits != 64 && static_cast<__int128>(wide) != number) {
    const bool is_too_large = (number < 0) != (static_cast<__int128>(wide) - number < 0);
    if (is_too_large) wide = std::nextafter(wide, 0.0);
    wide = double_of(bits_of(wide) | 1);
  }
  return from_double(it, it.type, wide);
}

void convert(Frame& frame, const Instruction& it) {
  const uint64_t value = frame.read(it.arguments[1].ref);
  uint64_t result;
  if (it.from.is_integer()) {
    result = convert_integer(it, value);
  } else if (it.from.kind == Kind::bfloat && it.type.kind == Kind::floating && it.type.bits == 32 &&
             !it.flag && !it.saturate) {
    result = (value & 0xffff) << 16;  // the bits of a NaN, too
  } else {
    double number = to_double(it.from, value);
    if (it.flush && it.from.bits == 32 && std::fpclassify(float_of(value)) == FP_SUBNORMAL)
      number = std::copysign(0.0, number);
    if (it.type.is_integer()) {
      result = to_integer(it, number);
    } else {
      if (it.count) number = rounded_to_integer(number, static_cast<Rounding>(it.mode));
      result = from_double(it, it.type, number);
    }
  }
  // A register may be wider than the type: its upper bits are the sign's.
  if (it.type.kind == Kind::signed_int) result = static_cast<uint64_t>(sign_extended(result, it.type.bits));
  frame.write(it.arguments[0].ref, result);
}

/// Two floats become a pair, the first its upper half.
void convert_pair(Frame& frame, const Instruction& it) {
  const Type one{it.type.kind, it.type.bits, 1};
  const uint64_t high = from_double(it, one, to_double(it.from, frame.read(it.arguments[1].ref)));
  const uint64_t low = from_double(it, one, to_double(it.from, frame.read(it.arguments[2].ref)));
  frame.write(it.arguments[0].ref, high << 16 | low);
}

/// `mode` is the Rounding, `count` whether to an integer; `flag` .relu, `variant` .satfinite.
bool bind_cvt(Instruction& it, Words& words) {
  it.flush = words.take("ftz");
  it.saturate = words.take("sat");
  it.flag = words.take("relu");
  it.variant = words.take("satfinite");
  const int to_integer = words.take_one_of({"rni", "rzi", "rmi", "rpi"});
  const int rounding = words.take_one_of({"rn", "rz", "rm", "rp"});
  const bool is_away = words.take("rna");
  it.type = words.take_type();
  it.from = words.take_type();
  it.count = to_integer >= 0;
  constexpr Rounding kModes[] = {Rounding::nearest, Rounding::zero, Rounding::down, Rounding::up};
  it.mode = static_cast<int>(kModes[std::max({to_integer, rounding, 0})]);
  if (it.type.kind == Kind::none || it.from.kind == Kind::none || it.from.elements != 1) return false;
  settle_immediates(it, it.from);
  if (it.type.kind == Kind::tf32) {
    it.count = is_away;
    it.execute = [](Frame& frame, const Instruction& it) {
      auto bits = static_cast<uint32_t>(frame.read(it.arguments[1].ref));
      if ((bits & 0x7f800000) != 0x7f800000) {
        if (it.count) {
          bits += 0x1000;  // half of the last bit that is kept: ties go away from zero
        } else {
          bits += 0xfff + (bits >> 13 & 1);
        }
      }
      frame.write(it.arguments[0].ref, bits & ~uint32_t{0x1fff});
    };
    return it.from.kind == Kind::floating && it.from.bits == 32 && it.arguments.size() == 2;
  }
  if (is_away) return false;
  if (it.type.elements == 2) {
    it.execute = &convert_pair;
    return it.type.bits == 16 && it.from.bits == 32 && it.from.kind == Kind::floating &&
           it.arguments.size() == 3;
  }
  it.execute = &convert;
  return it.arguments.size() == 2;
}

constexpr TableEntry kTable[] = {{"cvt", &bind_cvt}};

}  // namespace

Table conversion_table() { return {kTable, std::size(kTable)}; }

}  // namespace ladder::inline_ptx
