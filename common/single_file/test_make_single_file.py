#!/usr/bin/env python3
"""Tests of make_single_file.py and declarations.py: what is written for each lesson, and how sources are read."""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import make_single_file as tool
from declarations import Unreadable, expanded, read_source, without_conditionals

MOST_LINES = {"01_naive": 200, "02_tiled": 600, "03_double_buffer": 600, "06_clusters_dsmem": 980}
MOST_LINES_OF_OTHERS = 810
SCRIPT = pathlib.Path(tool.__file__)


def declarations_of(text):
    return read_source("made_up.cu", text).declarations


class OfEachLesson(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.texts = {lesson: tool.text_of(lesson) for lesson in tool.LESSONS}

    def test_all_that_have_a_kernel_are_written(self):
        folders = {path.parent.name for path in tool.ROOT.glob("0*/gemm.cuh")}
        self.assertEqual(set(tool.LESSONS), folders)

    def test_no_include_of_the_repository_is_left(self):
        for lesson, text in self.texts.items():
            with self.subTest(lesson):
                self.assertEqual(re.findall(r'^\s*#\s*include\s*".*', text, re.MULTILINE), [])
                self.assertNotIn("#pragma once", text)
                includes = re.findall(r"^#include .*", text, re.MULTILINE)
                self.assertEqual(len(includes), len(set(includes)))

    def test_what_only_the_repository_has_stays_there(self):
        for lesson, text in self.texts.items():
            with self.subTest(lesson):
                for word in ("LADDER_TRACE", "LADDER_BOUNDED_WAITS", "LADDER_CPU_DEVICE", "__CUDA_ARCH__ >= 900",
                             "shadow", "struct Lesson", "fmt::", "MmaSyncCore", "FmaCore", "@"):
                    # "@" would be a word of main.cu.in that nobody filled in.
                    self.assertNotIn(word, re.sub(r"@(t?param|throws|returns)\b", "", text))

    def test_the_lesson_and_the_program_are_at_the_lines_that_the_first_lines_say(self):
        for lesson, text in self.texts.items():
            with self.subTest(lesson):
                places = re.search(r"kernel is at line (\d+), its launch at line (\d+), the program at line (\d+);", text)
                kernel, launch, program = map(int, places.groups())
                lines = text.split("\n")
                self.assertRegex(lines[kernel - 1], f"^// ---- {lesson}/gemm.cuh: Lesson {lesson[:2]}: ")
                self.assertEqual(lines[launch - 1], f"// ---- {lesson}/gemm.cuh: the rest")
                self.assertTrue(lines[program - 1].startswith("// ---- common/single_file/main.cu: The program"))
                self.assertIn("__global__", "\n".join(lines[kernel:launch]))
                # How a kernel is launched is no part of it.
                self.assertNotRegex("\n".join(lines[:launch - 1]).split("// ---- common/single_file/error.hpp")[0],
                                    "CUDA_CHECK|cudaLaunch|cudaError")

    def test_a_namespace_is_opened_once_before_the_launch_and_once_after(self):
        for lesson, text in self.texts.items():
            with self.subTest(lesson):
                opened = re.findall(r"^namespace (\w+) {", text, re.MULTILINE)
                namespace = f"lesson{lesson[:2]}"
                before = [] if lesson == "01_naive" else ["ptx"]
                self.assertEqual(opened, [*before, "ladder", namespace, "ladder", namespace])
                self.assertEqual(re.findall(r"^}  // namespace (\w+)", text, re.MULTILINE), opened)

    def test_each_file_has_a_heading_that_says_what_it_is(self):
        for lesson, text in self.texts.items():
            with self.subTest(lesson):
                headings = re.findall(r"^// ---- (.*)", text, re.MULTILINE)
                self.assertEqual(len(headings), len(set(headings)))
                for heading in headings:
                    self.assertRegex(heading, r"^\S+\.(cu|cuh|hpp): \S")

    def test_comments_tell_only_of_what_is_there(self):
        for lesson, text in self.texts.items():
            with self.subTest(lesson):
                comments = " ".join(re.findall(r"//+ (?!---- )(.*)", text.partition("#include")[2]))
                self.assertNotRegex(comments, r"\.cuh|\.hpp|\bthrow|[Ee]arlier GPUs|GPUs before|before sm_")

    def test_there_is_one_width_of_wgmma(self):
        for lesson, text in self.texts.items():
            with self.subTest(lesson):
                widths = set(re.findall(r"wgmma_m64n(\d+)k16", text))
                tile = re.search(r"kTile\{\d+, (\d+), \d+\}", text)
                self.assertEqual(widths, set() if lesson == "01_naive" else {tile[1]})
                self.assertNotIn("if constexpr (kN ==", text)

    def test_a_name_is_defined_once_and_before_it_is_used(self):
        for lesson, text in self.texts.items():
            with self.subTest(lesson):
                place = {}
                declarations = declarations_of(text)
                for i, declaration in enumerate(declarations):
                    for name in declaration.names:
                        if declaration.is_macro or declaration.opens:
                            continue  # defined, and then undefined; opened as often as need be
                        # A specialisation comes after its template.
                        if not re.search(rf"\b{name}<", declaration.text.split("{")[0]):
                            self.assertNotIn((declaration.namespace, name), place)
                        place.setdefault((declaration.namespace, name), i)
                for i, declaration in enumerate(declarations):
                    for qualifier, name in declaration.uses:
                        if name != "trace" and qualifier in ("ladder", "ptx", f"lesson{lesson[:2]}"):
                            self.assertIn((qualifier, name), place)
                            self.assertLess(place[qualifier, name], i)

    def test_nothing_is_left_that_nobody_uses(self):
        for lesson, text in self.texts.items():
            with self.subTest(lesson):
                words = re.findall(r"\w+", re.sub(r"//.*", "", text))
                for declaration in declarations_of(text):
                    for name in declaration.names:
                        self.assertTrue(name == "main" or declaration.opens or words.count(name) > 1, name)

    def test_they_are_short_enough_to_be_read(self):
        for lesson, text in self.texts.items():
            with self.subTest(lesson):
                self.assertLessEqual(text.count("\n"), MOST_LINES.get(lesson, MOST_LINES_OF_OTHERS))
                self.assertLessEqual(max(map(len, text.split("\n"))), tool.WIDTH + 10)

    def test_they_are_the_same_every_time(self):
        for lesson, text in self.texts.items():
            with self.subTest(lesson):
                self.assertEqual(tool.text_of(lesson), text)

    def test_the_short_tensor_map_describes_matrices_as_the_lesson_does(self):
        constants = [re.findall(r"CU_TENSOR_MAP_\w+", (tool.ROOT / path).read_text(encoding="utf-8"))
                     for path in ("common/cuda/tensor_map.cpp", "common/single_file/tensor_map.hpp")]
        self.assertEqual(*constants)


class OfMadeUpSources(unittest.TestCase):
    def names(self, text):
        return [declaration.names for declaration in declarations_of(text)]

    def test_declarations_are_told_apart_and_named(self):
        self.assertEqual(self.names("int a = f(1, 2), b{3};  ///< why\nint c;\n"), [["a", "b"], ["c"]])
        self.assertEqual(self.names("template <class A, int kB = 3>\nA* f(int x = {}) { return g(x); }\nint z;"),
                         [["f"], ["z"]])
        self.assertEqual(self.names("struct alignas(16) S { int x[2]; void f() { ; } };\nenum class E : int { one };"),
                         [["S"], ["E"]])
        self.assertEqual(self.names("using ladder::Gemm;\nusing T = decltype(&x);"), [["Gemm"], ["T"]])
        self.assertEqual(declarations_of("using namespace ladder;")[0].opens, "ladder")
        self.assertEqual(self.names("__global__ void __launch_bounds__(kN, 1)\n    gemm(int p) {}"), [["gemm"]])
        self.assertEqual(self.names('const char* s = "}; // no";\nchar t = \'{\';'), [["s"], ["t"]])

    def test_a_comment_goes_with_what_follows_it(self):
        [first, second] = declarations_of("/// Why.\nint a;  ///< more\n\n// About b.\n\nint b;\n")
        self.assertEqual(first.text, "/// Why.\nint a;  ///< more")
        self.assertEqual(second.text, "// About b.\n\nint b;")

    def test_conditionals_are_decided(self):
        text = "#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900\na\n#else\nb\n#endif\n#ifdef LADDER_X\nc\n#endif\nd"
        self.assertEqual(without_conditionals(text, "file"), "a\nd")
        text = "#ifndef LADDER_X\n#ifdef LADDER_Y\na\n#else\nb\n#endif\n#elif 1\nc\n#else\nd\n#endif"
        self.assertEqual(without_conditionals(text, "file"), "b")
        with self.assertRaisesRegex(Unreadable, "file:1: .*sizeof"):
            without_conditionals("#if f(sizeof(int))\n#endif", "file")

    def test_a_macro_that_only_renames_is_replaced(self):
        text = "#define LADDER_ASM(...) asm volatile(__VA_ARGS__)\nvoid f() { LADDER_ASM(x); }\n#undef LADDER_ASM\n"
        self.assertEqual(expanded(text), "void f() { asm volatile(x); }\n")

    def test_names_are_looked_up_from_the_inside_outwards(self):
        parts = read_source("a.hpp", """
            int shape; int never;
            namespace ladder { int shape; int other; void used() { other; } }
            namespace ptx { int other; }""")
        program = read_source("main.cu",
                              "namespace ladder { int main() { used(); shape; x.never; ladder::never; } }")
        kept = tool.reachable([parts, program])
        self.assertEqual([(found.namespace, found.names[0]) for found in parts.declarations if id(found) in kept],
                         [("ladder", "shape"), ("ladder", "other"), ("ladder", "used")])

    def chosen(self, text, program):
        """What is left of the first declaration."""
        parts = read_source("a.hpp", text)
        tool.chosen([parts, read_source("main.cu", program)])
        return parts.declarations[0].text

    def test_members_that_nobody_names_are_left_out(self):
        text = """struct S {
  static constexpr int kUsed = 1;
  static constexpr int kUnused = 2;  // why
  int unused;

  S(int a);
  /// Calls f.
  void called() { f(); }
  void f();
  /// Nobody
  /// calls it.
  void g() { g(1); }
  void g(int);
  bool operator!=(int) const { return true; }

  int begin() const { return 0; }

  /// The last.
  void h() { f(); }
};"""
        self.assertEqual(self.chosen(text, "int main() { S s(S::kUsed); s.called(); }"), """struct S {
  static constexpr int kUsed = 1;
  int unused;

  S(int a);
  /// Calls f.
  void called() { f(); }
  void f();
  bool operator!=(int) const { return true; }

  int begin() const { return 0; }
};""")

    def test_what_only_unnamed_members_name_goes_with_them(self):
        text = "struct S {\n  void f() { helper(); }\n  int x;\n};\nvoid helper() {}"
        parts = read_source("a.hpp", text)
        kept = tool.chosen([parts, read_source("main.cu", "int main() { S s; }")])
        self.assertEqual([found.names for found in parts.declarations if id(found) in kept], [["S"]])

    def test_a_member_that_a_derived_struct_names_stays(self):
        text = "struct S {\n  void f();\n};"
        self.assertEqual(self.chosen(text, "struct T : S { void t() { f(); } }; int main() { T().t(); }"), text)
        self.assertEqual(self.chosen(text, "int main() { S s; s.f(); }"), text)
        self.assertEqual(self.chosen(text, "int main() { S s; f; }"), "struct S {\n};")

    def test_overloads_are_told_apart_by_how_many_arguments_they_take(self):
        text = """struct S {
  void f();
  void f(int a, int b = 0);
  void g(const int (&a)[2]);
};"""
        self.assertEqual(self.chosen(text, "int main() { S s; s.f(); s.g(x[h(1, 2)]); }"),
                         "struct S {\n  void f();\n  void g(const int (&a)[2]);\n};")
        self.assertEqual(self.chosen(text, "int main() { S s; s.f(1); s.f(); s.g({1, 2}); }"), text)
        self.assertEqual(self.chosen(text, "int main() { S s; s.f(1, (2, 3)); }"),
                         "struct S {\n  void f(int a, int b = 0);\n};")
        self.assertEqual(self.chosen(text, "int main() { S s; s.f(1, 2, 3); s.f<2>(); }"),
                         "struct S {\n  void f();\n  void f(int a, int b = 0);\n};")

    def test_names_are_looked_up_in_a_namespace_that_is_opened(self):
        parts = read_source("a.hpp", "namespace ladder { int near; int both; int far; } namespace ptx { int near; }")
        program = read_source("main.cu",
                              "namespace lesson { using namespace ladder; int both; int main() { near; both; } }")
        kept = tool.reachable([parts, program])
        self.assertEqual([(found.namespace, found.names) for found in parts.declarations if id(found) in kept],
                         [("ladder", ["near"])])

    def test_sentences_that_are_true_in_the_repository_alone_are_left_out(self):
        self.assertEqual(tool.true_here("  /// One. See common/x.hpp. Three\n  /// goes on.\n  int a;\n"),
                         "  /// One. Three goes on.\n  int a;\n")
        self.assertEqual(tool.true_here("// A shadow has it.\nint a;  // --core\n"), "int a;  // --core\n")
        self.assertEqual(tool.true_here("// One. Earlier\n// GPUs have none: a trap.\nint a;\n"), "// One.\nint a;\n")

    def test_a_heading_holds_the_first_paragraph(self):
        source = read_source("common/a.hpp", "/// @file\n/// One. A shadow has it.\n/// Two.\n///\n/// Three.\nint a;\n")
        self.assertEqual(tool.heading(source), "// ---- common/a.hpp: One. Two.\n//\n// Three.\n")

    def test_what_cannot_be_read_is_named(self):
        with self.assertRaisesRegex(Unreadable, r"file: where does this end: int a\("):
            read_source("file", "\nint a(")
        with self.assertRaisesRegex(Unreadable, "file: #pragma unroll: not known"):
            read_source("file", "#pragma unroll\nint a;")


class OfTheScript(unittest.TestCase):
    def run_script(self, *words):
        return subprocess.run([sys.executable, SCRIPT, *words], text=True, capture_output=True, check=False, timeout=600)

    def test_it_writes_the_file_and_what_it_was_made_of(self):
        with tempfile.TemporaryDirectory() as folder:
            output, depfile = pathlib.Path(folder) / "01.cu", pathlib.Path(folder) / "01.d"
            run = self.run_script("01_naive", output, "--depfile", depfile)
            self.assertEqual((run.returncode, run.stdout + run.stderr), (0, ""))
            self.assertEqual(output.read_text(encoding="utf-8"), tool.text_of("01_naive"))
            target, files = depfile.read_text(encoding="utf-8").strip().split(": ")
            self.assertEqual(target, str(output))
            self.assertIn(str(tool.ROOT / "01_naive/gemm.cuh"), files.split())
            self.assertIn(str(tool.ROOT / tool.MAIN), files.split())

    def test_an_unknown_lesson_is_named(self):
        run = self.run_script("08_dreams", "out.cu")
        self.assertEqual(run.returncode, 2)
        self.assertRegex(run.stderr, r"^make_single_file.py: error: 08_dreams: must be one of 01_naive, .*\n$")


if __name__ == "__main__":
    unittest.main()
