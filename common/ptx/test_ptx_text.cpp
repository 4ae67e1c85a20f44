/// @file
/// common/ptx: each function holds the instruction that its comment names. On the CPU device shadows run
/// instead, so that nothing else there would notice `.relaxed` where the comment says `.release`.
///
/// The rule: the comment above a function with assembler names each instruction of it in backquotes, whole,
/// as `mbarrier.init.shared::cta.b64` or `mov.u32 %smid`. It names no other instructions, and the assembler
/// holds no other, but those that only move a predicate to a register or back.
#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "common/testing/patterns.hpp"

namespace fs = std::filesystem;
using ladder::testing::all_matches;
using ladder::testing::first_match;
using ladder::testing::Match;
using ladder::testing::replace_matches;
using ladder::testing::whole_match;

namespace ptx_text_test {
namespace {

using Names = std::set<std::string>;

std::vector<std::string> words_of(const std::string& text, const std::string& pattern) {
  std::vector<std::string> words;
  for (const Match& match : all_matches(text, pattern)) words.push_back(match[0]);
  return words;
}

bool contains(const std::string& text, const std::string& word) {
  return first_match(text, "\\b" + word + "\\b").has_value();
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
  std::istringstream lines(replace_matches(ptx, ";", "\n"));
  for (std::string line; std::getline(lines, line);) {
    const auto found = first_match(line, R"(^[\s{]*(?:@!?\w+\s+)?([a-z][\w.:]*)(?:\s+.*?%(%\w+)\s*)?)");
    if (!found) continue;
    const std::string &name = (*found)[1], &special_register = (*found)[2];
    if (name == "setp.ne.b32" || name == "selp.u32") continue;
    names.insert(special_register.empty() ? name : name + " " + special_register);
  }
  return names;
}

/// The instructions that a comment names: words in backquotes with a dot, and `mov` with its register.
Names instructions_named(const std::string& comment) {
  Names names;
  for (const Match& quoted : all_matches(comment, "`([^`]+)`"))
    if (whole_match(quoted[1], R"([a-z]\w*(?:\.[\w:]+)+(?: %\w+)?)")) names.insert(quoted[1]);
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
  for (std::string line; std::getline(lines, line);) {
    const auto found = whole_match(line, R"(#define (\w+)\(([^)]*)\) ?(.*))");
    if (found && contains((*found)[3], "asm"))
      macros.push_back({(*found)[1], words_of((*found)[2], R"(\w+|\.\.\.)"), (*found)[3]});
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
        const std::vector<std::string> values = words_of(arguments, R"("[^"]*"|\w+)");
        for (size_t i = 0; i < macro.parameters.size() && i < values.size(); ++i)
          text = replace_matches(text, "\\b" + macro.parameters[i] + "\\b", values[i]);
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
        function = first_match(line, R"((\w+)\()").value()[1];
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

}  // namespace ptx_text_test
