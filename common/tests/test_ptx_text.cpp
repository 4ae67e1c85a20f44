/// @file
/// common/ptx: each function holds the instruction that its comment names. On the CPU device shadows run
/// instead, so that nothing else there would notice `.relaxed` where the comment says `.release`.
///
/// The rule: the comment above a function with assembler names each instruction of it in backquotes, whole,
/// as `mbarrier.init.shared::cta.b64` or `mov.u32 %smid`. It names no other instructions, and the assembler
/// holds no other, but those that only move a predicate to a register or back.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace fs = std::filesystem;
using Catch::Matchers::ContainsSubstring;

namespace {

using Names = std::set<std::string>;

std::vector<std::string> all_matches(const std::string& text, const std::string& pattern, int group = 0) {
  const std::regex expression(pattern);
  std::vector<std::string> found;
  for (std::sregex_iterator i(text.begin(), text.end(), expression), end; i != end; ++i)
    found.push_back(i->str(static_cast<size_t>(group)));
  return found;
}

bool contains(const std::string& text, const std::string& word) {
  return std::regex_search(text, std::regex("\\b" + word + "\\b"));
}

/// The text of all string literals up to the first colon outside of them, which begins the operands.
std::string template_of(const std::string& asm_statement) {
  std::string text;
  for (size_t i = 0; i < asm_statement.size() && asm_statement[i] != ':' && asm_statement[i] != ';'; ++i) {
    if (asm_statement[i] != '"') continue;
    for (++i; i < asm_statement.size() && asm_statement[i] != '"'; ++i) {
      const bool is_newline = asm_statement[i] == '\\';
      if (is_newline) ++i;
      text += is_newline ? '\n' : asm_statement[i];
    }
  }
  return text;
}

/// What stands in front of the operands of each instruction; of special registers also their name.
Names instructions_in(const std::string& ptx) {
  Names names;
  std::istringstream lines(std::regex_replace(ptx, std::regex(";"), "\n"));
  for (std::string line; std::getline(lines, line);) {
    std::smatch found;
    static const std::regex instruction(R"(^[\s{]*(?:@!?\w+\s+)?([a-z][\w.:]*)(?:\s+.*?%(%\w+)\s*)?)");
    if (!std::regex_search(line, found, instruction)) continue;
    const std::string name = found[1];
    if (name == "setp.ne.b32" || name == "selp.u32") continue;
    names.insert(found[2].matched ? name + " " + found[2].str() : name);
  }
  return names;
}

/// The instructions that a comment names: words in backquotes with a dot, and `mov` with its register.
Names instructions_named(const std::string& comment) {
  Names names;
  for (const std::string& word : all_matches(comment, "`([^`]+)`", 1)) {
    static const std::regex instruction(R"([a-z]\w*(?:\.[\w:]+)+(?: %\w+)?)");
    if (std::regex_match(word, instruction)) names.insert(word);
  }
  return names;
}

std::string listed(const Names& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "nothing" : text;
}

/// What stands between the parenthesis at `open` and the one that closes it; those in string literals are
/// text.
std::string arguments_at(const std::string& text, size_t open) {
  int depth = 0;
  for (size_t i = open; i < text.size(); ++i) {
    if (text[i] == '"') {
      while (++i < text.size() && text[i] != '"') i += text[i] == '\\';
    } else if (text[i] == '(') {
      ++depth;
    } else if (text[i] == ')' && --depth == 0) {
      return text.substr(open + 1, i - open - 1);
    }
  }
  return "";
}

/// #define name(parameters) text, where the text has assembler.
struct Macro {
  std::string name;
  std::vector<std::string> parameters;
  std::string text;
};

std::vector<Macro> macros_of(const std::string& source) {
  std::vector<Macro> macros;
  std::istringstream lines(source);
  static const std::regex definition(R"(#define (\w+)\(([^)]*)\) ?(.*))");
  std::smatch found;
  for (std::string line; std::getline(lines, line);) {
    if (std::regex_match(line, found, definition) && contains(found[3], "asm"))
      macros.push_back({found[1], all_matches(found[2], R"(\w+|\.\.\.)"), found[3]});
  }
  return macros;
}

/// The assembler of a function's body: what its asm statements hold, and macros with their arguments put in.
Names instructions_of_body(const std::string& body, const std::vector<Macro>& macros) {
  Names names;
  const auto add_statements = [&](const std::string& text) {
    for (size_t at = text.find("asm"); at != std::string::npos; at = text.find("asm", at + 3)) {
      const size_t open = text.find('(', at);
      if (open != std::string::npos) names.merge(instructions_in(template_of(arguments_at(text, open))));
    }
  };
  add_statements(body);
  for (const Macro& macro : macros) {
    for (size_t at = body.find(macro.name + "("); at != std::string::npos;
         at = body.find(macro.name + "(", at + 1)) {
      const std::string arguments = arguments_at(body, at + macro.name.size());
      std::string text = macro.text;
      if (macro.parameters == std::vector<std::string>{"..."}) {
        text = "asm(" + arguments + ")";
      } else {
        const std::vector<std::string> values = all_matches(arguments, R"("[^"]*"|\w+)");
        for (size_t i = 0; i < macro.parameters.size() && i < values.size(); ++i)
          text = std::regex_replace(text, std::regex("\\b" + macro.parameters[i] + "\\b"), values[i]);
      }
      add_statements(text);
    }
  }
  return names;
}

/// What is wrong with one header, a line for each function.
std::vector<std::string> complaints_of(std::string source) {
  for (size_t at; (at = source.find("\\\n")) != std::string::npos;) source.replace(at, 2, " ");
  const std::vector<Macro> macros = macros_of(source);
  std::vector<std::string> complaints;
  std::istringstream lines(source);
  std::string comment, function, body;
  for (std::string line; std::getline(lines, line);) {
    if (function.empty()) {
      if (line.rfind("///", 0) == 0) {
        comment += line.substr(3) + "\n";
      } else if (line.rfind("__device__", 0) == 0) {
        function = all_matches(line, R"((\w+)\()", 1).front();
      } else if (line.rfind("template", 0) != 0) {
        comment.clear();
      }
    }
    if (function.empty()) continue;
    body += line + "\n";
    if (line != "}" && !(line.find('{') != std::string::npos && line.back() == '}')) continue;
    const Names held = instructions_of_body(body, macros), named = instructions_named(comment);
    if (named != held && !held.empty())
      complaints.push_back(function + ": the comment names " + listed(named) + ", and the assembler holds " +
                           listed(held));
    function.clear(), body.clear(), comment.clear();
  }
  return complaints;
}

std::string function_with(const std::string& comment, const std::string& assembler) {
  return "/// " + comment + "\n__device__ __forceinline__ void f(int x) {\n  " + assembler + "\n}\n";
}

}  // namespace

TEST_CASE("ptx: every function holds the instruction that its comment names") {
  int headers = 0, functions = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(LADDER_SOURCE_DIR) / "common/ptx")) {
    if (entry.path().extension() != ".cuh") continue;
    std::ostringstream source;
    source << std::ifstream(entry.path()).rdbuf();
    INFO(entry.path().filename().string());
    CHECK(complaints_of(source.str()) == std::vector<std::string>());
    ++headers;
    functions += !all_matches(source.str(), R"(\basm\b)").empty();
  }
  CHECK(headers >= 15);
  CHECK(functions >= 12);  // headers with assembler
}

TEST_CASE("ptx: an instruction that is another than its comment says is found") {
  const std::string release = "mbarrier.arrive.release.cluster.shared::cluster.b64";
  const std::string relaxed = "mbarrier.arrive.relaxed.cluster.shared::cluster.b64";
  const std::string statement = R"(asm volatile(")" + relaxed + R"( _, [%0];" ::"r"(x) : "memory");)";
  CHECK(complaints_of(function_with("`" + relaxed + "`: one arrival at `x`.", statement)).empty());
  CHECK(complaints_of(function_with("`" + release + "`: one arrival.", statement)) ==
        std::vector<std::string>{"f: the comment names " + release + ", and the assembler holds " + relaxed});
  CHECK(complaints_of(function_with("One arrival.", statement)).size() == 1);
  CHECK(complaints_of(function_with("`mov.u32 %smid`.", R"(asm("mov.u32 %0, %%smid;" : "=r"(x));)")).empty());
  CHECK(
      complaints_of(function_with("`mov.u32 %smid`.", R"(asm("mov.u32 %0, %%warpid;" : "=r"(x));)")).size() ==
      1);
  const std::string two = R"(asm volatile("a.b;\nc.d.e;" ::: "memory");)";
  CHECK(complaints_of(function_with("`a.b` and `c.d.e`.", two)).empty());
  CHECK(complaints_of(function_with("`a.b`.", two)).size() == 1);
  CHECK(complaints_of(function_with("`a.b`, `c.d.e`, `f.g`.", two)).size() == 1);
  const std::string loop =
      R"(while (!x) { asm("{\n.reg .pred p;\nw.x p, [%1];\nselp.u32 %0, 1, 0, p;\n}\n" : "=r"(x)); })";
  CHECK(complaints_of(function_with("`w.x` until it is done.", loop)).empty());
}

TEST_CASE("ptx: assembler in macros is read, too") {
  const std::string inc =
      "#ifdef X\n#define MOVE(direction, count) \\\n  asm volatile(\"set.\" direction \".u32 %0;\" "
      "::\"n\"(count))\n"
      "#else\n#define MOVE(direction, count)\n#endif\n";
  CHECK(complaints_of(inc + function_with("`set.inc.u32`.", "MOVE(\"inc\", kCount);")).empty());
  CHECK(complaints_of(inc + function_with("`set.inc.u32`.", "MOVE(\"dec\", kCount);")).size() == 1);
  const std::string variadic = "#define ASM(...) asm volatile(__VA_ARGS__)\n";
  CHECK(
      complaints_of(variadic + function_with("`a.b`.", "ASM(\"a.b \"\n   \"{%0};\" : \"+f\"(x));")).empty());
  CHECK(complaints_of(variadic + function_with("`a.b`.", "ASM(\"a.c {%0};\" : \"+f\"(x));")).size() == 1);
}
