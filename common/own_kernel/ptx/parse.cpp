/// @file
/// Parses the text of an asm statement, once for each site.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <map>
#include <optional>
#include <stdexcept>

#include "common/own_kernel/ptx/program.hpp"

namespace ladder::inline_ptx {
namespace {

// What stands in a text for an operand, around its number.
constexpr char kOperandBegin = '\x01', kOperandEnd = '\x02';

/// What is wrong with a text, in a sentence.
struct Wrong : std::runtime_error {
  using std::runtime_error::runtime_error;
};

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '.';
}

/// One for each statement that asks: "%=".
unsigned next_unique_number() {
  static unsigned number = 0;  // under the lock of Site::program()
  return number++;
}

size_t find_operand(const std::string& name, const Operand* const* operands, size_t count) {
  for (size_t i = 0; i < count; ++i)
    if (name == operands[i]->name) return i;
  throw Wrong("inline PTX: there is no operand '%[" + name + "]'");
}

/// As nvcc puts operands into a text: "%%" is a percent sign, "%0" an operand; the text of one with the
/// constraint "C", and a constant that is a part of a word, stand there themselves.
std::string put_operands(const std::string& text, const Operand* const* operands, size_t count) {
  std::string result;
  for (size_t i = 0; i < text.size();) {
    if (text[i] != '%') {
      result += text[i++];
      continue;
    }
    const char next = i + 1 < text.size() ? text[i + 1] : ' ';
    size_t index = count;
    if (next == '%') {
      result += '%';
      i += 2;
      while (i < text.size() && is_word(text[i])) result += text[i++];
      continue;
    }
    if (next == '=') {
      result += std::to_string(next_unique_number());
      i += 2;
      continue;
    }
    if (next == '[') {
      const size_t end = text.find(']', i);
      if (end == std::string::npos) throw Wrong("inline PTX: '%[' without a ']'");
      index = find_operand(text.substr(i + 2, end - i - 2), operands, count);
      i = end + 1;
    } else if (std::isdigit(static_cast<unsigned char>(next))) {
      size_t end = i + 1;
      while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end]))) ++end;
      index = static_cast<size_t>(std::atoi(text.substr(i + 1, end - i - 1).c_str()));
      if (index >= count)
        throw Wrong("inline PTX: there is no operand %" + std::to_string(index) + "; the statement has " +
                    std::to_string(count));
      i = end;
    } else {
      result += text[i++];  // "%laneid", as nvcc takes it, too
      continue;
    }
    const Operand& operand = *operands[index];
    const bool is_glued = !result.empty() && (is_word(result.back()) || result.back() == ':');
    if (operand.constraint[0] == 'C') {
      result += reinterpret_cast<const char*>(operand.value[0]);
    } else if (operand.constraint[0] == 'n' && is_glued) {
      result += std::to_string(static_cast<int64_t>(operand.value[0]));
    } else {
      result += kOperandBegin + std::to_string(index) + kOperandEnd;
    }
  }
  return result;
}

std::string without_comments(const std::string& text) {
  std::string result;
  for (size_t i = 0; i < text.size();) {
    if (text.compare(i, 2, "//") == 0) {
      while (i < text.size() && text[i] != '\n') ++i;
    } else if (text.compare(i, 2, "/*") == 0) {
      const size_t end = text.find("*/", i + 2);
      i = end == std::string::npos ? text.size() : end + 2;
      result += ' ';
    } else {
      result += text[i++];
    }
  }
  return result;
}

Type type_of(std::string_view word) {
  struct Named {
    std::string_view name;
    Type type;
  };
  using Kind = Type::Kind;
  static constexpr Named kTypes[] = {
      {"pred", {Kind::predicate, 8, 1}},    {"b8", {Kind::bits, 8, 1}},
      {"b16", {Kind::bits, 16, 1}},         {"b32", {Kind::bits, 32, 1}},
      {"b64", {Kind::bits, 64, 1}},         {"b128", {Kind::bits, 128, 1}},
      {"u8", {Kind::unsigned_int, 8, 1}},   {"u16", {Kind::unsigned_int, 16, 1}},
      {"u32", {Kind::unsigned_int, 32, 1}}, {"u64", {Kind::unsigned_int, 64, 1}},
      {"s8", {Kind::signed_int, 8, 1}},     {"s16", {Kind::signed_int, 16, 1}},
      {"s32", {Kind::signed_int, 32, 1}},   {"s64", {Kind::signed_int, 64, 1}},
      {"f16", {Kind::floating, 16, 1}},     {"f16x2", {Kind::floating, 16, 2}},
      {"f32", {Kind::floating, 32, 1}},     {"f32x2", {Kind::floating, 32, 2}},
      {"f64", {Kind::floating, 64, 1}},     {"bf16", {Kind::bfloat, 16, 1}},
      {"bf16x2", {Kind::bfloat, 16, 2}},    {"tf32", {Kind::tf32, 32, 1}},
  };
  for (const Named& named : kTypes)
    if (named.name == word) return named.type;
  return {};
}

struct NamedSpecial {
  std::string_view name;
  Special special;
};
constexpr NamedSpecial kSpecials[] = {
    {"tid", Special::tid},
    {"ntid", Special::ntid},
    {"ctaid", Special::ctaid},
    {"nctaid", Special::nctaid},
    {"laneid", Special::laneid},
    {"warpid", Special::warpid},
    {"nwarpid", Special::nwarpid},
    {"smid", Special::smid},
    {"nsmid", Special::nsmid},
    {"gridid", Special::gridid},
    {"lanemask_eq", Special::lanemask_eq},
    {"lanemask_le", Special::lanemask_le},
    {"lanemask_lt", Special::lanemask_lt},
    {"lanemask_ge", Special::lanemask_ge},
    {"lanemask_gt", Special::lanemask_gt},
    {"clock", Special::clock},
    {"clock_hi", Special::clock_hi},
    {"clock64", Special::clock64},
    {"globaltimer", Special::globaltimer},
    {"globaltimer_lo", Special::globaltimer},
    {"globaltimer_hi", Special::globaltimer_hi},
    {"cluster_ctaid", Special::cluster_ctaid},
    {"cluster_nctaid", Special::cluster_nctaid},
    {"clusterid", Special::clusterid},
    {"nclusterid", Special::nclusterid},
    {"cluster_ctarank", Special::cluster_ctarank},
    {"cluster_nctarank", Special::cluster_nctarank},
    {"is_explicit_cluster", Special::is_explicit_cluster},
    {"dynamic_smem_size", Special::dynamic_smem_size},
    {"total_smem_size", Special::dynamic_smem_size},
};

/// "%tid.x".
std::optional<Ref> special_of(std::string_view name) {
  if (name.empty() || name[0] != '%') return {};
  name.remove_prefix(1);
  Ref ref;
  ref.kind = Ref::Kind::special;
  if (name.size() > 2 && name[name.size() - 2] == '.') {
    const char axis = name.back();
    if (axis < 'w' || axis > 'z') return {};
    ref.axis = static_cast<uint8_t>(axis - 'x');
    name.remove_suffix(2);
  }
  for (const NamedSpecial& named : kSpecials) {
    if (named.name == name) {
      ref.special = named.special;
      return ref;
    }
  }
  return {};
}

class Parser {
 public:
  Parser(std::string text, const Operand* const* operands) : text_(std::move(text)), operands_(operands) {}

  Program run() {
    open_scope();
    while (skip_space(), at_ < text_.size()) statement();
    resolve_labels();
    return std::move(program_);
  }

 private:
  struct Register {
    uint16_t index;
    uint8_t bytes;
  };
  struct Scope {
    int parent;
    std::map<std::string, Register> registers;
    std::map<std::string, uint32_t> labels;
  };

  // --- characters

  void skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  char peek() {
    skip_space();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) throw Wrong("inline PTX: '" + std::string(1, c) + "' expected before '" + rest() + "'");
  }
  std::string rest() {
    skip_space();
    std::string line = text_.substr(at_, std::min<size_t>(24, text_.find_first_of(";\n", at_) - at_));
    for (char& c : line)
      if (c == kOperandBegin || c == kOperandEnd) c = '%';
    return line.empty() ? "the end" : line;
  }
  /// Letters, digits, "_", "$", "%" and dots; with `colons` also "::".
  std::string word(bool colons) {
    skip_space();
    std::string result;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      const bool is_double_colon = c == ':' && text_.compare(at_, 2, "::") == 0;
      if (is_word(c) || c == '%') {
        result += c;
        ++at_;
      } else if (colons && is_double_colon) {
        result += "::";
        at_ += 2;
      } else {
        break;
      }
    }
    return result;
  }

  // --- statements

  void open_scope() {
    scopes_.push_back({scope_, {}, {}});
    scope_ = static_cast<int>(scopes_.size()) - 1;
  }

  void statement() {
    if (take(';')) return;
    if (take('{')) return open_scope();
    if (take('}')) {
      if (scopes_[static_cast<size_t>(scope_)].parent < 0) throw Wrong("inline PTX: '}' without a '{'");
      scope_ = scopes_[static_cast<size_t>(scope_)].parent;
      return;
    }
    if (peek() == '.') return directive();
    Instruction instruction;
    instruction.scope = scope_;
    if (take('@')) {
      const bool negated = take('!');
      instruction.predicate = ref();
      instruction.predicate.is_negated = negated;
    }
    const std::string name = word(/*colons=*/true);
    if (name.empty()) throw Wrong("inline PTX: an instruction expected before '" + rest() + "'");
    if (peek() == ':') {
      ++at_;
      scopes_[static_cast<size_t>(scope_)].labels[name] = static_cast<uint32_t>(program_.instructions.size());
      return;
    }
    instruction.name = name;
    while (peek() != ';' && peek() != '\0' && peek() != '}') {
      instruction.arguments.push_back(argument(name));
      if (!take(',')) break;
    }
    if (!take(';') && peek() != '\0') throw Wrong("inline PTX: ';' expected before '" + rest() + "'");
    bind(instruction);
    program_.instructions.push_back(std::move(instruction));
  }

  void directive() {
    const std::string name = word(/*colons=*/false);
    if (name == ".pragma" || name == ".loc") {
      at_ = std::min(text_.size(), text_.find(';', at_));
      return;
    }
    if (name != ".reg") throw Wrong("inline PTX: the CPU device runs no '" + name + "' in an asm statement");
    const Type type = type_of(std::string_view(word(/*colons=*/false)).substr(1));
    if (type.kind == Type::Kind::none)
      throw Wrong("inline PTX: '.reg' of an unknown type before '" + rest() + "'");
    do {
      const std::string first = word(/*colons=*/false);
      if (take('<')) {
        const int many = std::atoi(word(/*colons=*/false).c_str());
        expect('>');
        for (int i = 0; i < many; ++i) declare(first + std::to_string(i), type);
      } else {
        declare(first, type);
      }
    } while (take(','));
    expect(';');
  }

  void declare(const std::string& name, Type type) {
    if (program_.locals == UINT16_MAX) throw Wrong("inline PTX: too many registers in one asm statement");
    scopes_[static_cast<size_t>(scope_)].registers[name] = {static_cast<uint16_t>(program_.locals++),
                                                            static_cast<uint8_t>(type.bytes())};
  }

  // --- arguments

  Ref number(const std::string& digits, bool negative) {
    Ref result;
    result.kind = Ref::Kind::immediate;
    const auto bits = [&](int base, size_t from) {
      return std::strtoull(digits.c_str() + from, nullptr, base);
    };
    if (digits.size() == 10 && (digits.compare(0, 2, "0f") == 0 || digits.compare(0, 2, "0F") == 0)) {
      result.immediate = bits(16, 2);
    } else if (digits.size() == 18 && (digits.compare(0, 2, "0d") == 0 || digits.compare(0, 2, "0D") == 0)) {
      result.immediate = bits(16, 2);
    } else if (digits.compare(0, 2, "0x") == 0 || digits.compare(0, 2, "0X") == 0) {
      result.immediate = bits(16, 2);
    } else if (digits.find_first_of(".eE") != std::string::npos) {
      result.is_floating_literal = true;
      const double value =
          negative ? -std::strtod(digits.c_str(), nullptr) : std::strtod(digits.c_str(), nullptr);
      std::memcpy(&result.immediate, &value, sizeof value);
      return result;
    } else {
      result.immediate = bits(0, 0);
    }
    if (negative) result.immediate = ~result.immediate + 1;
    return result;
  }

  Ref ref() {
    skip_space();
    Ref result;
    if (take(kOperandBegin)) {
      const size_t end = text_.find(kOperandEnd, at_);
      const auto index = static_cast<size_t>(std::atoi(text_.substr(at_, end - at_).c_str()));
      at_ = end + 1;
      result.kind = Ref::Kind::operand;
      result.index = static_cast<uint16_t>(index);
      return result;
    }
    if (take('!')) {
      result = ref();
      result.is_negated = !result.is_negated;
      return result;
    }
    const bool negative = take('-');
    std::string name = word(/*colons=*/false);
    if (name.empty()) throw Wrong("inline PTX: an operand expected before '" + rest() + "'");
    if (std::isdigit(static_cast<unsigned char>(name[0]))) {
      if ((name.back() == 'e' || name.back() == 'E') && name.compare(0, 2, "0x") != 0 &&
          (peek() == '-' || peek() == '+')) {
        name += text_[at_++];
        name += word(/*colons=*/false);
      }
      while (name.size() > 1 && (name.back() == 'U' || name.back() == 'u')) name.pop_back();
      return number(name, negative);
    }
    if (name == "_") {
      result.kind = Ref::Kind::sink;
      return result;
    }
    if (name == "WARP_SZ") return number("32", false);
    if (const Register* found = find_register(name)) {
      result.kind = Ref::Kind::local;
      result.index = found->index;
      result.bytes = found->bytes;
      return result;
    }
    if (const auto special = special_of(name)) return *special;
    throw Wrong("inline PTX: '" + name + "' is no register of this asm statement" +
                (name[0] == '%' ? ", and no special register that the CPU device has" : ""));
  }

  const Register* find_register(const std::string& name) const {
    for (int scope = scope_; scope >= 0; scope = scopes_[static_cast<size_t>(scope)].parent) {
      const auto& registers = scopes_[static_cast<size_t>(scope)].registers;
      if (const auto found = registers.find(name); found != registers.end()) return &found->second;
    }
    return nullptr;
  }

  void list_of_parts(std::vector<Ref>& parts) {
    do {
      parts.push_back(ref());
    } while (take(','));
    expect('}');
  }

  Argument argument(const std::string& instruction) {
    Argument result;
    if (take('{')) {
      result.kind = Argument::Kind::vector;
      list_of_parts(result.parts);
      return result;
    }
    if (take('[')) {
      result.kind = Argument::Kind::address;
      result.ref = ref();
      while (peek() == '+' || peek() == '-') {
        const bool negative = text_[at_++] == '-';
        const bool negative_number = take('-');
        const Ref offset = ref();
        if (offset.kind == Ref::Kind::operand && operands_[offset.index]->variable == nullptr) {
          const auto value = static_cast<int64_t>(operands_[offset.index]->value[0]);
          result.offset += negative ? -value : value;  // "n": a constant
        } else if (offset.kind == Ref::Kind::immediate) {
          const auto value = static_cast<int64_t>(offset.immediate);
          result.offset += negative != negative_number ? -value : value;
        } else {
          throw Wrong("inline PTX: an address may add a constant only, before '" + rest() + "'");
        }
      }
      if (take(',')) {
        expect('{');
        list_of_parts(result.parts);
      }
      expect(']');
      return result;
    }
    if (instruction.compare(0, 3, "bra") == 0) {
      result.kind = Argument::Kind::label;
      result.label = word(/*colons=*/false);
      return result;
    }
    result.ref = ref();
    if (take('|')) result.second = ref();
    return result;
  }

  // --- binding

  void bind(Instruction& instruction) {
    std::vector<std::string> words;
    size_t begin = 0;
    const std::string& name = instruction.name;
    while (begin <= name.size()) {
      const size_t end = std::min(name.find('.', begin), name.size());
      words.push_back(name.substr(begin, end - begin));
      begin = end + 1;
    }
    const std::string first = words.front();
    words.erase(words.begin());
    instruction.label = instruction.name.c_str();
    const Binder binder = find_binder(first);
    Words rest(std::move(words));
    if (!binder || !binder(instruction, rest) || !rest.all_taken() || !instruction.execute)
      throw Wrong(name + " is not one that the CPU device runs");
    // A short string moves with its object.
    if (instruction.label == instruction.name.c_str()) instruction.label = nullptr;
  }

  void resolve_labels() {
    std::vector<Instruction>& all = program_.instructions;
    for (uint32_t i = 0; i < all.size(); ++i) {
      Instruction& instruction = all[i];
      if (!instruction.label) instruction.label = instruction.name.c_str();
      if (instruction.arguments.empty() || instruction.arguments[0].kind != Argument::Kind::label) continue;
      const std::string& label = instruction.arguments[0].label;
      bool found = false;
      for (int scope = instruction.scope; scope >= 0 && !found;
           scope = scopes_[static_cast<size_t>(scope)].parent) {
        const auto& labels = scopes_[static_cast<size_t>(scope)].labels;
        if (const auto at = labels.find(label); at != labels.end()) {
          instruction.target = at->second;
          found = true;
        }
      }
      if (!found) throw Wrong("inline PTX: there is no label '" + label + "' in this asm statement");
      for (uint32_t inside = instruction.target; inside <= i && inside < all.size(); ++inside)
        all[inside].is_in_loop = true;
    }
  }

  const std::string text_;
  const Operand* const* const operands_;
  size_t at_ = 0;
  int scope_ = -1;
  std::vector<Scope> scopes_;
  Program program_;
};

}  // namespace

Program parse(const char* text, const Operand* const* operands, size_t count) {
  try {
    return Parser(without_comments(put_operands(text, operands, count)), operands).run();
  } catch (const Wrong& wrong) {
    Program program;
    program.error = wrong.what();
    return program;
  }
}

Binder find_binder(std::string_view first_word) {
  for (const Table& table : {arithmetic_table(), conversion_table(), memory_table(), synchronisation_table(),
                             asynchronous_table(), tensor_core_table()}) {
    for (size_t i = 0; i < table.count; ++i)
      if (table.begin[i].word == first_word) return table.begin[i].binder;
  }
  return nullptr;
}

bool Words::take(std::string_view word) {
  const auto found = std::find(words_.begin(), words_.end(), word);
  if (found == words_.end()) return false;
  words_.erase(found);
  return true;
}

int Words::take_one_of(std::initializer_list<std::string_view> words) {
  int index = 0;
  for (const std::string_view word : words) {
    if (take(word)) return index;
    ++index;
  }
  return -1;
}

bool Words::has(std::string_view word) const {
  return std::find(words_.begin(), words_.end(), word) != words_.end();
}

bool Words::has_before(std::string_view first, std::string_view second) const {
  const auto found = std::find(words_.begin(), words_.end(), first);
  return found != words_.end() && std::find(found, words_.end(), second) != words_.end();
}

Type Words::take_type() {
  for (auto word = words_.begin(); word != words_.end(); ++word) {
    const Type type = type_of(*word);
    if (type.kind == Type::Kind::none) continue;
    words_.erase(word);
    return type;
  }
  return {};
}

std::string Words::take_prefix(std::string_view prefix) {
  for (auto word = words_.begin(); word != words_.end(); ++word) {
    if (word->compare(0, prefix.size(), prefix) != 0) continue;
    const std::string rest = word->substr(prefix.size());
    words_.erase(word);
    return rest;
  }
  return "";
}

namespace {

void settle(Ref& ref, Type type) {
  if (ref.kind != Ref::Kind::immediate || !ref.is_floating_literal) return;
  double value;
  std::memcpy(&value, &ref.immediate, sizeof value);
  ref.is_floating_literal = false;
  if (type.bits != 32) return;
  const auto narrow = static_cast<float>(value);
  ref.immediate = 0;
  std::memcpy(&ref.immediate, &narrow, sizeof narrow);
}

}  // namespace

void settle_immediates(Instruction& instruction, Type type) {
  for (Argument& argument : instruction.arguments) {
    settle(argument.ref, type);
    for (Ref& part : argument.parts) settle(part, type);
  }
}

}  // namespace ladder::inline_ptx
