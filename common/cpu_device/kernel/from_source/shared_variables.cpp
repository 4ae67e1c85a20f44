/// @file
/// The layout of a block's `__shared__` variables.
#include "common/cpu_device/kernel/from_source/shared_variables.hpp"

#include <algorithm>
#include <fstream>
#include <regex>

#include "common/cpu_device/kernel/reports/names.hpp"

namespace cpu_device {
namespace {

/// For gaps and alignment.
constexpr size_t kSlackBytes = 80 * 1024;
constexpr size_t kDynamicAlignment = 1024;
/// A row of a small tile, so that an index one too large falls into the gap.
constexpr size_t kGapBytes = 128;
std::atomic<bool> reserves_variables = false;
std::atomic<unsigned> last_number = 0;

size_t rounded_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

unsigned number_of(SharedVariable& variable) {
  unsigned number = variable.number.load(std::memory_order_relaxed);
  if (number) return number;
  const unsigned fresh = ++last_number;
  return variable.number.compare_exchange_strong(number, fresh) ? fresh : number;
}

std::string element(const SharedVariable& variable, size_t offset) {
  std::string text = variable.name;
  size_t stride = variable.bytes;
  for (unsigned i = 0; i < variable.dimensions; ++i) {
    stride /= variable.extents[i];
    text += print("[%zu]", offset / stride);
    offset %= stride;
  }
  return text;
}

/// "smem" of `auto& smem = shared_storage<...>();`.
std::string name_of_storage(const Location& where) {
  std::ifstream source(where.file);
  std::string line;
  for (unsigned number = 0; number < where.line && std::getline(source, line);) ++number;
  static const std::regex variable(R"((\w+)\s*=\s*(\w+::)*shared_storage)");
  std::smatch found;
  return std::regex_search(line, found, variable) ? found[1].str() : "smem";
}

}  // namespace

void add_index(std::string& name, size_t index) { name += print("[%zu]", index); }

void add_member(std::string& name, const char* member) { name += print(".%s", member); }

void reserve_shared_variables() { reserves_variables = true; }

SharedLayout::SharedLayout(size_t dynamic_bytes) : dynamic_bytes_(dynamic_bytes), end_(dynamic_bytes) {
  capacity_ = dynamic_bytes;
  if (!reserves_variables) return;
  capacity_ = rounded_up(dynamic_bytes, kDynamicAlignment) + kMaxStaticBytes + kSlackBytes;
  granules_.resize(capacity_ / kGranule);
  cover(0, dynamic_bytes);
}

void SharedLayout::cover(size_t offset, size_t bytes) {
  for (; bytes; offset += kGranule) {
    const size_t here = std::min(bytes, kGranule);
    granules_[offset / kGranule] = static_cast<uint8_t>(here);
    bytes -= here;
  }
}

size_t SharedLayout::end() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return end_;
}

size_t SharedLayout::place(SharedVariable& variable) {
  number_of(variable);
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const Place& place : places_)
    if (place.variable == &variable) return place.offset;
  const size_t packed =
      rounded_up(static_bytes_, variable.alignment);  // where a compiler puts it, without gaps
  size_t alignment = std::max(variable.alignment, kGranule);
  // A tile may rely on more than it asks for: alignas(128) behind 8 KB lies at a multiple of 1024, too.
  if (variable.bytes >= kDynamicAlignment)
    while (alignment < kDynamicAlignment && packed % (2 * alignment) == 0) alignment *= 2;
  const size_t gap = variable.dimensions ? kGapBytes : kGranule;
  size_t offset = rounded_up(end_, places_.empty() ? std::max(alignment, kGapBytes) : alignment);
  static_bytes_ = packed + variable.bytes;
  if (static_bytes_ > kMaxStaticBytes || offset + variable.bytes + gap > capacity_) return capacity_;
  places_.push_back({&variable, offset});
  cover(offset, variable.bytes);
  end_ = rounded_up(offset + variable.bytes, kGranule) + gap;
  return offset;
}

void SharedLayout::name_dynamic(const SharedVariable& variable) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (dynamic_ && dynamic_ != &variable) is_dynamic_ambiguous_ = true;
  dynamic_ = &variable;
}

void SharedLayout::name_storage(NameOfByte storage, Location where) {
  if (storage_.load(std::memory_order_relaxed) == storage) return;  // each thread of each block says it
  const std::lock_guard<std::mutex> lock(mutex_);
  if (storage_ && storage_ != storage) is_dynamic_ambiguous_ = true;
  storage_at_ = where;
  storage_name_.clear();
  storage_ = storage;
}

bool SharedLayout::covers(size_t offset, size_t bytes) const {
  if (!has_variables()) return true;
  const size_t last = offset + bytes - 1;
  if (last >= capacity_) return false;
  for (size_t granule = offset / kGranule; granule < last / kGranule; ++granule)
    if (granules_[granule] != kGranule) return false;
  return last % kGranule < granules_[last / kGranule];
}

std::string SharedLayout::name_of(size_t offset) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const Place& place : places_)
    if (offset >= place.offset && offset < place.offset + place.variable->bytes)
      return element(*place.variable, offset - place.offset);
  if (offset >= dynamic_bytes_ || is_dynamic_ambiguous_) return "";
  if (const NameOfByte storage = storage_) {
    alignas(kDynamicAlignment) static const std::byte base[1] = {};
    std::string member;
    storage(base, offset, member);
    if (member.empty()) return "";
    if (storage_name_.empty()) storage_name_ = name_of_storage(storage_at_);
    return storage_name_ + member;
  }
  if (!dynamic_) return "";
  return print("%s[%zu]", dynamic_->name, offset / dynamic_->bytes);
}

std::string SharedLayout::name_of_barrier(size_t offset) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const Place& place : places_)
    if (offset >= place.offset && offset < place.offset + place.variable->bytes)
      return place.variable->element_bytes == sizeof(uint64_t)
                 ? element(*place.variable, offset - place.offset)
                 : "";
  return "";
}

std::string SharedLayout::describe_overrun(size_t offset, size_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  size_t begin = 0, size = dynamic_bytes_;
  std::string name;
  for (const Place& place : places_) {
    if (place.offset > offset + bytes - 1) break;
    begin = place.offset, size = place.variable->bytes, name = place.variable->name;
  }
  const size_t end = begin + size;
  const std::string reaches = print("reaches %zu bytes beyond the end of ", offset + bytes - end);
  if (name.empty())
    return reaches + print("the %zu bytes of dynamic shared memory that the launch gives each block", size);
  return reaches + print("%s, which has %zu bytes of shared memory", name.c_str(), size);
}

}  // namespace cpu_device
