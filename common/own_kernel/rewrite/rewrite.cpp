/// @file
/// Makes C++ for the CPU device of a preprocessed CUDA source.
#include "common/own_kernel/rewrite/rewrite.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "common/own_kernel/rewrite/tokens.hpp"

namespace ladder {
namespace {

using Kind = Token::Kind;
constexpr const char* kSignature = "ladder_signature_";

/// Tokens [begin, end).
struct Range {
  size_t begin = 0, end = 0;
  bool empty() const { return begin >= end; }
};

struct Edit {
  size_t begin, end;  ///< in the source
  std::string text;
};

bool is_one_of(const Token& token, std::initializer_list<std::string_view> words) {
  return token.kind != Kind::string && std::find(words.begin(), words.end(), token.text) != words.end();
}

class Rewriter {
 public:
  Rewriter(std::string_view source, const std::function<bool(const std::string&, bool)>& is_own)
      : source_(source), read_(read_tokens(source, is_own)), tokens_(read_.tokens) {}

  std::string result() {
    find_kernels();
    for (size_t i = 0; i + 1 < tokens_.size(); ++i) {
      track_scopes(i);
      if (tokens_[i].is("__global__")) {
        replace({i, i + 1}, " ");
      } else if (tokens_[i].is("__device__")) {
        replace({i, i + 1}, " ");
        if (tokens_[i].is_own && at_namespace_scope()) register_variables(i);
      } else if (!tokens_[i].is_own || tokens_[i].kind == Kind::string) {
        continue;
      } else if (tokens_[i].is("const") && tokens_[i + 1].is("const")) {
        replace({i, i + 1}, "");  // nvcc warns of it, g++ refuses it
      } else if (tokens_[i].is("__shared__")) {
        rewrite_shared(i);
      } else if (is_one_of(tokens_[i], {"asm", "__asm__", "__asm"})) {
        rewrite_asm(i);
      } else if (tokens_[i].is("<") && is_launch(i)) {
        rewrite_launch(i);
      } else if (tokens_[i].is("using")) {
        bring_signature(i);
      } else if (is_sign(i, '(') || (is_sign(i, '<') && i > 0 && tokens_[i - 1].is("reinterpret_cast"))) {
        keep_parameters(i);
      } else if (is_one_of(tokens_[i], {"memcpy", "memmove", "memset", "memcmp"})) {
        rewrite_bytes(i);
      } else if (has_lerp_ && tokens_[i].is("lerp") && !is_member(i) && !is_pair(i - 2, ':', ':')) {
        replace({i, i + 1}, "ladder_own_lerp");
      } else if (const auto variable = variables_of_namespaces_.find(tokens_[i].text);
                 variable != variables_of_namespaces_.end() && !is_member(i)) {
        replace({i, i + 1}, variable->second + "()");
      }
    }
    for (const Kernel& kernel : kernels_)
      if (!kernel.signature.empty() && needs_signature_.count(kernel.name))
        edits_.push_back({tokens_[kernel.begin].begin, tokens_[kernel.begin].begin, kernel.signature});
    return apply_edits();
  }

 private:
  // --- walking over tokens

  bool is_sign(size_t i, char c) const {
    return i < tokens_.size() && tokens_[i].kind == Kind::sign && tokens_[i].text[0] == c;
  }
  bool is_pair(size_t i, char first, char second) const {
    return is_sign(i, first) && is_sign(i + 1, second) && tokens_[i + 1].begin == tokens_[i].end();
  }
  bool is_word(size_t i) const { return i < tokens_.size() && tokens_[i].kind == Kind::word; }

  static char closing(char open) { return open == '(' ? ')' : open == '[' ? ']' : open == '{' ? '}' : 0; }

  /// The token that closes the bracket at `open`.
  size_t close_of(size_t open) const {
    int depth = 0;
    for (size_t i = open; i < tokens_.size(); ++i) {
      if (tokens_[i].kind != Kind::sign) continue;
      const char c = tokens_[i].text[0];
      depth += c == '(' || c == '[' || c == '{';
      depth -= c == ')' || c == ']' || c == '}';
      if (depth == 0) return i;
    }
    fail(open, "a bracket is not closed");
  }

  size_t open_of(size_t close) const {
    int depth = 0;
    for (size_t i = close;; --i) {
      if (tokens_[i].kind == Kind::sign) {
        const char c = tokens_[i].text[0];
        depth += c == ')' || c == ']' || c == '}';
        depth -= c == '(' || c == '[' || c == '{';
        if (depth == 0) return i;
      }
      if (i == 0) fail(close, "a bracket is not opened");
    }
  }

  /// Of template arguments: the '>' of the '<' at `open`; the end of all tokens if there is none.
  size_t close_of_angle(size_t open) const {
    int depth = 0;
    for (size_t i = open; i + 1 < tokens_.size(); ++i) {
      if (tokens_[i].kind != Kind::sign) continue;
      const char c = tokens_[i].text[0];
      if (closing(c)) {
        i = close_of(i);
      } else if (c == '<') {
        ++depth;
      } else if (c == '>' && !is_pair(i - 1, '-', '>') && --depth == 0) {
        return i;
      } else if (c == ';') {
        break;
      }
    }
    return tokens_.size() - 1;
  }

  /// The '<' of the '>' at `close`; `close` if there is none.
  size_t open_of_angle(size_t close) const {
    int depth = 0;
    for (size_t i = close; i > 0; --i) {
      if (tokens_[i].kind != Kind::sign) continue;
      const char c = tokens_[i].text[0];
      if (c == ')' || c == ']' || c == '}') {
        i = open_of(i);
      } else if (c == '>' && !is_pair(i - 1, '-', '>')) {
        ++depth;
      } else if (c == '<' && --depth == 0) {
        return i;
      } else if (c == ';' || c == '{' || c == '(') {
        break;
      }
    }
    return close;
  }

  size_t begin_of_statement(size_t i) const {
    while (i > 0 && !is_sign(i - 1, ';') && !is_sign(i - 1, '{') && !is_sign(i - 1, '}') &&
           tokens_[i - 1].kind != Kind::directive &&
           !(is_sign(i - 1, ':') && !is_pair(i - 2, ':', ':') && !is_pair(i - 1, ':', ':')))
      --i;
    return i;
  }

  /// At the separators that no bracket encloses.
  std::vector<Range> split(Range range, char separator, bool has_templates = false) const {
    std::vector<Range> parts;
    size_t begin = range.begin;
    for (size_t i = range.begin; i < range.end; ++i) {
      if (tokens_[i].kind != Kind::sign) continue;
      if (closing(tokens_[i].text[0])) {
        i = close_of(i);
      } else if (has_templates && is_sign(i, '<') && i > range.begin && is_word(i - 1)) {
        if (const size_t close = close_of_angle(i); close < range.end) i = close;
      } else if (is_sign(i, separator)) {
        parts.push_back({begin, i});
        begin = i + 1;
      }
    }
    parts.push_back({begin, range.end});
    return parts;
  }

  /// The token, after a blank where it does not touch the one before.
  std::string spaced(size_t i) const {
    const bool touches = i > 0 && tokens_[i - 1].end() == tokens_[i].begin;
    return (touches ? "" : " ") + std::string(tokens_[i].text);
  }

  /// On one line.
  std::string flat(Range range) const {
    std::string text;
    for (size_t i = range.begin; i < range.end; ++i) {
      if (tokens_[i].kind == Kind::directive || is_one_of(tokens_[i], {"__global__", "__device__"})) continue;
      text += text.empty() ? std::string(tokens_[i].text) : spaced(i);
    }
    return text;
  }

  [[noreturn]] void fail(size_t i, const std::string& why) const {
    throw CannotRewrite(read_.files[tokens_[i].file] + ":" + std::to_string(tokens_[i].line) + ": " + why);
  }

  std::string marker(size_t i) const {
    std::string name;
    for (const char c : read_.files[tokens_[i].file])
      name += c == '"' || c == '\\' ? std::string{'\\', c} : std::string{c};
    return "\n# " + std::to_string(tokens_[i].line) + " \"" + name + "\"\n";
  }

  /// What follows keeps its line.
  void replace(Range range, std::string text) {
    const size_t begin = tokens_[range.begin].begin, end = tokens_[range.end - 1].end();
    const bool has_lines = source_.substr(begin, end - begin).find('\n') != source_.npos;
    if (has_lines) text += marker(range.end - 1);
    edits_.push_back({begin, end, std::move(text)});
  }

  std::string apply_edits() {
    std::stable_sort(edits_.begin(), edits_.end(), [](const Edit& one, const Edit& other) {
      return std::pair(one.begin, one.end) < std::pair(other.begin, other.end);
    });
    std::string text;
    text.reserve(source_.size() + source_.size() / 8);
    size_t at = 0;
    for (const Edit& edit : edits_) {
      if (edit.begin < at) continue;  // inside of one before
      text += source_.substr(at, edit.begin - at);
      text += edit.text;
      at = edit.end;
    }
    text += source_.substr(at);
    return text;
  }

  // --- scopes

  /// Whether the brace at the token opens a namespace.
  void track_scopes(size_t i) {
    if (is_sign(i, '{')) {
      const size_t begin = begin_of_statement(i);
      bool is_namespace = false;
      for (size_t j = begin; j < i; ++j)
        is_namespace = is_namespace || tokens_[j].is("namespace") ||
                       (tokens_[j].is("extern") && tokens_[j + 1].kind == Kind::string && j + 2 == i);
      others_open_.push_back((others_open_.empty() ? 0 : others_open_.back()) + !is_namespace);
    } else if (is_sign(i, '}') && !others_open_.empty()) {
      others_open_.pop_back();
    }
  }
  bool at_namespace_scope() const { return others_open_.empty() || others_open_.back() == 0; }

  bool is_member(size_t i) const { return is_sign(i - 1, '.') || is_pair(i - 2, '-', '>'); }

  // --- kernels

  struct Kernel {
    std::string name;
    size_t begin;           ///< the first token of the declaration
    std::string signature;  ///< the declaration of a function that returns a pointer to the kernel
  };

  /// Notes the kernels that are declared. Of a template, and of an overloaded function, no pointer can be
  /// taken without types; so such a kernel gets a sister that is never defined, with its parameters, which
  /// returns a pointer to it: calls of it choose by the arguments, as a launch does.
  void find_kernels() {
    std::map<std::string, std::set<std::string>> overloads;
    for (size_t i = 0; i + 1 < tokens_.size(); ++i) {
      if (!tokens_[i].is_own || tokens_[i].kind != Kind::word) continue;
      if (tokens_[i].is("__global__")) {
        const std::string parameters = note_kernel(i);
        if (!parameters.empty()) overloads[kernels_.back().name].insert(parameters);
      } else if (is_variable(i)) {
        variables_.insert(std::string(tokens_[i].text));
      }
    }
    for (const auto& [name, parameters] : overloads)
      if (parameters.size() > 1) needs_signature_.insert(name);
    for (size_t i = 1; i + 1 < tokens_.size(); ++i) {
      if (!tokens_[i].is_own || !is_word(i) || !is_function(i)) continue;
      // A helper_math.h that is older than C++20's function.
      has_lerp_ = has_lerp_ || tokens_[i].is("lerp");
      if (names_.count(std::string(tokens_[i].text)) && !is_kernel(i))
        needs_signature_.insert(std::string(tokens_[i].text));
    }
  }

  /// Does the token look like the name of a function that is declared?
  bool is_function(size_t i) const {
    return is_sign(i + 1, '(') && is_word(i - 1) &&
           !is_one_of(tokens_[i - 1], {"return", "new", "else", "do", "throw", "co_return"});
  }

  bool is_kernel(size_t i) const {
    for (size_t j = begin_of_statement(i); j < i; ++j)
      if (tokens_[j].is("__global__")) return true;
    return false;
  }

  /// Does the token look like the name of a variable that is declared or a parameter?
  bool is_variable(size_t i) const {
    if (i == 0 || !(is_sign(i + 1, '=') || is_sign(i + 1, ',') || is_sign(i + 1, ')') || is_sign(i + 1, ';')))
      return i > 1 && is_sign(i - 1, '*') && is_sign(i - 2, '(') && is_sign(i + 1, ')') &&
             is_sign(i + 2, '(');
    if (is_word(i - 1))
      return !is_one_of(tokens_[i - 1],
                        {"return", "new", "delete", "else", "case", "goto", "using", "typename"});
    return i > 1 && (is_sign(i - 1, '*') || is_sign(i - 1, '&')) && tokens_[i - 2].is("auto");
  }

  /// @returns the text of its parameters and template head; empty where it is no declaration of a new kernel
  std::string note_kernel(size_t global) {
    const size_t begin = begin_of_statement(global);
    for (size_t i = begin; i < global; ++i)
      if (tokens_[i].is("friend")) return "";
    size_t after_head = begin;
    const bool is_template = tokens_[begin].is("template");
    if (is_template) {
      if (!is_sign(begin + 1, '<') || is_sign(begin + 2, '>'))
        return "";  // an instantiation, a specialisation
      after_head = close_of_angle(begin + 1) + 1;
    }
    size_t open = global + 1;
    for (;; ++open) {
      if (tokens_[open].kind == Kind::end || is_sign(open, ';') || is_sign(open, '{')) return "";
      if (is_one_of(tokens_[open], {"__attribute__", "alignas", "decltype", "__declspec"})) {
        open = close_of(open + 1);
      } else if (is_sign(open, '(')) {
        break;
      }
    }
    if (!is_word(open - 1)) return "";
    const Range parameters{open + 1, close_of(open)};
    std::string requirement;
    for (size_t i = after_head; i < global; ++i)
      if (tokens_[i].is("requires") || !requirement.empty())
        if (!is_one_of(tokens_[i], {"static", "inline", "extern", "void"})) requirement += spaced(i);
    std::string types;
    std::vector<std::string> defaults;
    for (const Range& parameter : split(parameters, ',', true)) {
      Range type = parameter;
      for (size_t i = type.begin; i < type.end; ++i)
        if (is_sign(i, '=')) type.end = i;
      types += (types.empty() ? "" : ", ") + flat(type);
      defaults.push_back(flat({type.end + 1, parameter.end}));
    }
    std::vector<std::string>& known = defaults_[std::string(tokens_[open - 1].text)];
    if (known.size() != defaults.size() || !defaults.back().empty()) known = defaults;
    Kernel kernel{std::string(tokens_[open - 1].text), begin, ""};
    const std::string head = flat({begin, after_head}) + requirement;
    kernel.signature =
        head + " void (*" + kSignature + kernel.name + "(" + flat(parameters) + "))(" + types + "); ";
    if (is_template) needs_signature_.insert(kernel.name);
    names_.insert(kernel.name);
    kernels_.push_back(kernel);
    return head + "(" + types + ")";
  }

  /// `using space::kernel;` brings the sister, too.
  void bring_signature(size_t i) {
    size_t end = i + 1;
    while (is_word(end) || is_sign(end, ':')) ++end;
    if (!is_sign(end, ';') || end < i + 4 || !needs_signature_.count(std::string(tokens_[end - 1].text)))
      return;
    const std::string text =
        "; " + flat({i, end - 1}) + kSignature + std::string(tokens_[end - 1].text) + ";";
    replace({end, end + 1}, text);
  }

  // --- launches

  /// The last of the three '>' that close a configuration, if they do and arguments follow; else 0.
  size_t end_of_configuration(size_t begin) const {
    for (size_t i = begin; i + 1 < tokens_.size(); ++i) {
      if (tokens_[i].kind != Kind::sign) continue;
      if (closing(tokens_[i].text[0])) {
        i = close_of(i);
      } else if (is_sign(i, ';') || is_sign(i, '}') || is_sign(i, ')')) {
        return 0;
      } else if (is_sign(i, '>') && is_sign(i + 1, '>') && is_sign(i + 2, '>') && is_sign(i + 3, '(')) {
        return i + 2;
      }
    }
    return 0;
  }

  bool is_launch(size_t i) const {
    return i > 0 && is_sign(i + 1, '<') && is_sign(i + 2, '<') &&
           (is_word(i - 1) || is_sign(i - 1, '>') || is_sign(i - 1, ')') || is_sign(i - 1, ']')) &&
           end_of_configuration(i + 3) != 0;
  }

  /// The expression that ends before `end`, and the token of the kernel's name; `end` where it has none.
  std::pair<size_t, size_t> kernel_before(size_t end) const {
    size_t begin = end, name = end;
    size_t i = end;  // one behind what is looked at
    for (;;) {
      if (is_sign(i - 1, '>')) {
        const size_t open = open_of_angle(i - 1);
        if (open == i - 1) break;
        i = open;
      }
      if (is_sign(i - 1, ')') || is_sign(i - 1, ']')) {
        i = begin = open_of(i - 1);
        if (!is_word(i - 1) && !is_sign(i - 1, ')') && !is_sign(i - 1, ']')) break;
        if (is_one_of(tokens_[i - 1], {"return", "else", "do"})) break;
        continue;
      }
      if (!is_word(i - 1)) break;
      if (begin == end) name = i - 1;
      begin = --i;
      if (tokens_[i - 1].is("template")) begin = --i;
      if (is_pair(i - 2, ':', ':')) {
        begin = i -= 2;
        if (!is_word(i - 1) && !is_sign(i - 1, '>')) break;
        if (is_one_of(tokens_[i - 1], {"return", "else", "do"})) break;
      } else if (is_sign(i - 1, '.')) {
        --i;
      } else if (is_pair(i - 2, '-', '>')) {
        i -= 2;
      } else {
        break;
      }
    }
    return {begin, name};
  }

  bool has_lambda(Range range) const {
    for (size_t i = range.begin; i < range.end; ++i)
      if (is_sign(i, '[') &&
          (i == range.begin || is_sign(i - 1, ',') || is_sign(i - 1, '(') || is_sign(i - 1, '=')))
        return true;
    return false;
  }

  void rewrite_launch(size_t i) {
    const auto [begin, name_at] = kernel_before(i);
    if (begin == i) fail(i, "no kernel is seen before <<<");
    const size_t last = end_of_configuration(i + 3);
    const Range configuration{i + 3, last - 2}, arguments{last + 2, close_of(last + 1)};
    const std::string name = name_at < i ? std::string(tokens_[name_at].text) : "";
    const bool is_plain = name_at == begin && name_at + 1 == i;
    const bool is_pointer = !names_.count(name) || (is_plain && variables_.count(name));
    const std::string kernel = flat({begin, i});
    const std::string rest = ", ::ladder::own::Configuration(" + flat(configuration) + "))";
    const std::string title = is_pointer ? "nullptr" : "\"" + name + "\"";
    std::string text;
    if (is_pointer || !needs_signature_.count(name)) {
      text = "::ladder::own::launcher(" + title + ", " + kernel + rest;
    } else {
      const std::string sister =
          flat({begin, name_at}) + (name_at > begin ? " " : "") + kSignature + flat({name_at, i});
      const std::string forwarded = "static_cast<decltype(ladder_argument)>(ladder_argument)...";
      const bool binds = has_lambda(arguments);
      text = "::ladder::own::launcher(" + title + ", static_cast<decltype(" + sister + "(" +
             (binds ? forwarded : flat(arguments)) + "))>(" + kernel + ")" + rest;
      if (binds) text = "[&](auto&&... ladder_argument) { " + text + "(" + forwarded + "); }";
    }
    replace({begin, last + 1}, text);
    add_defaults(name, arguments);
  }

  /// A call of a pointer knows no default arguments.
  void add_defaults(const std::string& name, Range arguments) {
    const auto known = defaults_.find(name);
    if (known == defaults_.end()) return;
    std::string text;
    for (size_t given = arguments.empty() ? 0 : split(arguments, ',', true).size();
         given < known->second.size(); ++given) {
      if (known->second[given].empty()) return;  // too few, or of another overload
      text += (given ? ", " : "") + known->second[given];
    }
    const size_t at = tokens_[arguments.end].begin;
    if (!text.empty()) edits_.push_back({at, at, text});
  }

  /// `(void*)kernel`, `reinterpret_cast<const void*>(&kernel)`: cudaLaunchKernel() and nodes of graphs need
  /// the parameters that the pointer has lost.
  void keep_parameters(size_t open) {
    const bool is_plain = is_sign(open, '(');
    size_t end = open + 1;
    while (is_one_of(tokens_[end], {"const", "void", "*"})) ++end;
    if (end < open + 3 || !is_sign(end, is_plain ? ')' : '>')) return;
    size_t begin = end + 1;
    if (!is_plain && !is_sign(begin++, '(')) return;
    begin += is_sign(begin, '&');
    size_t name = begin;
    while (is_word(name) && is_pair(name + 1, ':', ':')) name += 3;
    if (!is_word(name) || !names_.count(std::string(tokens_[name].text)) ||
        (name == begin && variables_.count(std::string(tokens_[name].text))))
      return;
    size_t behind = name + 1;
    if (is_sign(behind, '<')) behind = close_of_angle(behind) + 1;
    const std::string kernel = "::cpu_device::pointer_without_type(" + flat({begin, behind}) + ")";
    if (is_plain) {
      replace({open, behind}, kernel);
    } else if (is_sign(behind, ')')) {
      replace({open - 1, behind + 1}, kernel);
    }
  }

  // --- shared memory

  struct Declarator {
    Range range;
    size_t name;
  };

  /// Behind an attribute that begins at the token; the token itself where none does.
  size_t behind_attribute(size_t i) const {
    if (is_one_of(tokens_[i],
                  {"alignas", "__attribute__", "decltype", "typeof", "__typeof__", "__declspec"}) &&
        is_sign(i + 1, '('))
      return close_of(i + 1) + 1;
    return i;
  }

  Declarator declarator_in(Range range) const {
    size_t name = range.end;
    for (size_t i = range.begin; i < range.end; ++i) {
      if (const size_t behind = behind_attribute(i); behind != i) {
        i = behind - 1;
        continue;
      }
      if (is_sign(i, '<') && i > range.begin && is_word(i - 1)) {
        i = close_of_angle(i);
        continue;
      }
      if (is_sign(i, '[') || is_sign(i, '=') || is_sign(i, '{')) {
        if (is_pair(i, '[', '[')) {  // [[attribute]]
          i = close_of(i);
          continue;
        }
        break;
      }
      if (is_sign(i, '(')) fail(i, "a __shared__ variable of this form is not known");
      if (is_word(i)) name = i;
    }
    if (name == range.end) fail(range.begin, "no name is seen in a __shared__ declaration");
    return {range, name};
  }

  void rewrite_shared(size_t shared) {
    const size_t begin = begin_of_statement(shared);
    size_t end = shared;
    while (!is_sign(end, ';')) {
      if (tokens_[end].kind == Kind::end) fail(shared, "a __shared__ declaration has no end");
      if (closing(tokens_[end].text[0]) && tokens_[end].kind == Kind::sign) end = close_of(end);
      ++end;
    }
    if (rewritten_statement_ == begin) return;
    rewritten_statement_ = begin;
    bool is_extern = false;
    std::string declaration, without_alignment;
    for (size_t i = begin; i < end; ++i) {
      const Token& token = tokens_[i];
      is_extern = is_extern || (token.is("extern") && i < shared + 3);
      if (is_one_of(token, {"__shared__", "static", "extern"}) || token.kind == Kind::directive) continue;
      declaration += spaced(i);
    }
    const std::vector<Range> parts = split({begin, end}, ',', true);
    std::string text;
    if (is_extern) {
      const Declarator declarator = declarator_in(parts[0]);
      const std::string name(tokens_[declarator.name].text), type = "ladder_dynamic_" + std::to_string(begin);
      text = "typedef";
      for (size_t i = begin; i < parts[0].end; ++i) {
        const size_t behind = behind_attribute(i);
        if (behind != i && is_one_of(tokens_[i], {"alignas", "__attribute__", "__declspec"})) {
          i = behind - 1;  // the base of dynamic shared memory is aligned to 1024 bytes, and no typedef is
        } else if (!is_one_of(tokens_[i], {"__shared__", "static", "extern"}) &&
                   tokens_[i].kind != Kind::directive) {
          text += i == declarator.name ? " " + type : spaced(i);
        }
      }
      text += "; ";
      const std::string call = "::ladder::own::dynamic_shared_memory<" + type + ">(\"" + name + "\")";
      text += reference(type, name, call);
    } else {
      const std::string type = "ladder_shared_" + std::to_string(begin);
      text = "struct " + type + " {" + declaration + "; }; ";
      unsigned index = 0;
      for (const Range& part : parts) {
        const Declarator declarator = declarator_in(part);
        const std::string name(tokens_[declarator.name].text), own = "decltype(" + type + "::" + name + ")";
        text += reference(own, name,
                          "::ladder::own::shared_variable<" + type + ", " + std::to_string(index++) + ", " +
                              own + ">(\"" + name + "\")");
      }
    }
    replace({begin, end + 1}, text);
  }

  /// A reference that is what `call` returns. At namespace scope a function, which every use of the name
  /// calls.
  std::string reference(const std::string& type, const std::string& name, const std::string& call) {
    if (!at_namespace_scope()) return type + "& " + name + " = " + call + "; ";
    const std::string function = "ladder_variable_" + name;
    variables_of_namespaces_[name] = function;
    return "[[gnu::always_inline]] inline " + type + "& " + function + "() { return " + call + "; } ";
  }

  /// A call of the function of C's library: one that tells the hooks what it touches.
  void rewrite_bytes(size_t name) {
    if (!is_sign(name + 1, '(') || is_member(name)) return;
    size_t begin = name;
    if (is_pair(name - 2, ':', ':')) {
      begin -= is_word(name - 3) ? 3 : 2;
      if (begin + 3 == name && !tokens_[begin].is("std")) return;
    }
    const bool is_declared = is_sign(begin - 1, '*') || is_function(begin == name ? name : name + 1);
    if (!is_declared) replace({begin, name + 1}, " ::ladder::own::" + std::string(tokens_[name].text));
  }

  // --- variables of the device

  /// Where the statement declares variables, not functions: those that a kernel may change.
  void register_variables(size_t device) {
    const size_t begin = begin_of_statement(device);
    size_t end = begin;
    for (bool has_value = false; !is_sign(end, ';'); ++end) {
      if (tokens_[end].kind == Kind::end) return;
      if (const size_t behind = behind_attribute(end); behind != end) {
        end = behind - 1;
        continue;
      }
      if (is_one_of(tokens_[end], {"template", "inline", "constexpr", "const", "extern", "operator", "struct",
                                   "class", "union", "enum", "typedef", "using", "friend", "static_assert"}))
        return;
      has_value =
          (has_value && !is_sign(end, ',')) || is_sign(end, '=') || is_sign(end, '{') || is_sign(end, '[');
      if (is_sign(end, '(') && !has_value) return;
      if (tokens_[end].kind == Kind::sign && closing(tokens_[end].text[0])) end = close_of(end);
    }
    std::string text;
    for (const Range& part : split({begin, end}, ',', true)) {
      const Declarator declarator = declarator_in(part);
      text += fmt::format(" static const ::ladder::own::DeviceVariable ladder_device_{}({});",
                          tokens_[declarator.name].begin, tokens_[declarator.name].text);
    }
    edits_.push_back({tokens_[end].end(), tokens_[end].end(), text});
  }

  // --- inline PTX

  void rewrite_asm(size_t i) {
    size_t open = i + 1;
    while (is_one_of(tokens_[open], {"volatile", "__volatile__", "__volatile", "inline", "goto"})) ++open;
    if (!is_sign(open, '(')) return;
    const size_t close = close_of(open);
    const std::vector<Range> sections = split({open + 1, close}, ':');
    std::string text;
    for (size_t t = sections[0].begin; t < sections[0].end; ++t) {
      if (tokens_[t].kind == Kind::directive) continue;
      if (tokens_[t].kind != Kind::string) fail(t, "the text of an asm statement is not a string literal");
      text += (text.empty() ? "" : " ") + std::string(tokens_[t].text);
    }
    std::string operands;
    for (size_t section = 1; section < 3 && section < sections.size(); ++section) {
      if (sections[section].empty()) continue;
      for (const Range& operand : split(sections[section], ','))
        operands += (operands.empty() ? "" : ", ") + operand_of(operand, section == 1);
    }
    std::string file;
    for (const char c : read_.files[tokens_[i].file])
      file += c == '"' || c == '\\' ? std::string{'\\', c} : std::string{c};
    const size_t end = is_sign(close + 1, ';') ? close + 2 : close + 1;
    replace({i, end}, "{ static ::ladder::inline_ptx::Site ladder_site(" + text + ", \"" + file + "\", " +
                          std::to_string(tokens_[i].line) + "); ladder_site.run(" + operands + "); }");
  }

  std::string operand_of(Range range, bool is_output) {
    size_t i = range.begin;
    std::string name;
    if (is_sign(i, '[')) {
      name = std::string(tokens_[i + 1].text);
      i += 3;
    }
    std::string constraint;
    bool is_both = false;
    for (; tokens_[i].kind == Kind::string; ++i) {
      constraint += (constraint.empty() ? "" : " ") + std::string(tokens_[i].text);
      is_both = is_both || tokens_[i].text.find('+') != std::string_view::npos;
    }
    if (constraint.empty() || !is_sign(i, '('))
      fail(range.begin, "an operand of an asm statement is not understood");
    const char* function = !is_output ? "in" : is_both ? "inout" : "out";
    return std::string("::ladder::inline_ptx::") + function + "(" + constraint + ", \"" + name + "\", " +
           flat({i + 1, close_of(i)}) + ")";
  }

  const std::string_view source_;
  const Tokens read_;
  const std::vector<Token>& tokens_;
  std::vector<Edit> edits_;
  std::vector<Kernel> kernels_;
  std::set<std::string> names_, needs_signature_, variables_;
  std::map<std::string, std::string, std::less<>> variables_of_namespaces_;
  std::map<std::string, std::vector<std::string>> defaults_;  ///< of kernels, "" where a parameter has none
  bool has_lerp_ = false;
  std::vector<unsigned> others_open_;
  size_t rewritten_statement_ = static_cast<size_t>(-1);
};

}  // namespace

std::string rewritten(std::string_view preprocessed,
                      const std::function<bool(const std::string&, bool)>& is_own) {
  return Rewriter(preprocessed, is_own).result();
}

}  // namespace ladder
