#!/usr/bin/env python3
"""Writes a lesson as one source file, which a learner takes home and builds with nvcc alone.

    make_single_file.py 05_ws_double_buffer OUTPUT [--depfile FILE]

Begins with main.cu.in, filled in for the lesson, and puts every header of the repository in the place of its #include,
once. Then it leaves out what the program never names. Three steps, each a function:

    read_sources()  a file, those that it includes before it, each cut into its top-level declarations
    reachable()     the declarations that main.cu.in names, those that they name, and so on
    written()       their text, with a line for each file that they come from

The cutting knows only as much of C++ as that takes: comments, strings, brackets and namespaces. What it cannot read is
an error, with file and line. Exit codes: 0 written; 1 a source cannot be read; 2 bad input, one line.
"""
import argparse
import dataclasses
import pathlib
import re
import sys
import textwrap

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "common/results"))

from whole_file import write_whole  # noqa: E402

MAIN = "common/single_file/main.cu.in"
PROGRAM = MAIN.removesuffix(".in")
WIDTH = 110


@dataclasses.dataclass(frozen=True)
class Lesson:
    launch: str  # the call that launches the lesson's defaults, inside of its namespace
    multiple: int = 8  # n and k must be multiples of that
    needs_hopper: bool = True
    settings: tuple = ()  # of the lesson's program, where its defaults at 4096 are not this kernel


LESSONS = {
    "01_naive": Lesson("launch_gemm<Along::columns>(p, stream)", multiple=1, needs_hopper=False),
    "02_tiled": Lesson("launch_gemm<ladder::WgmmaCore<kTile.n>, true>(p, stream)"),
    "03_double_buffer": Lesson("launch_gemm<3, MemcpyAsync<16>, ladder::WgmmaCore<kTile.n>>(p, stream)"),
    "04_warp_specialized": Lesson("launch_gemm<2>(p, 16, stream)"),
    "05_ws_double_buffer": Lesson("launch_gemm<Shape<2, 4>>(p, 16, ladder::Identity(), stream)"),
    "06_clusters_dsmem": Lesson("launch_gemm<Shape<128, 256, 2, 1>>(p, {8, true, false, 0}, stream)",
                                settings=("--tile", "128x256", "--cluster_m", "2", "--cluster_k", "1", "--begins",
                                          "after")),
}

# What the second of these headers declares, in a program of one file, takes the place of what the first does.
INSTEAD = {
    "common/cuda/error.hpp": "common/single_file/error.hpp",
    "common/cuda/tensor_map.hpp": "common/single_file/tensor_map.hpp",
}

# What the files are compiled for. Macros of the repository's other builds (LADDER_...) are not defined.
DEFINED = {"__CUDA_ARCH__": 900, "__CUDA_ARCH_FEAT_SM90_ALL": 1, "__CUDACC__": 1}

# Sentences that are only true in the repository.
ONLY_THERE = re.compile(r"\bshadow\b|CPU device|either device|--\w+|\bLADDER_[A-Z]|\bcommon/", re.IGNORECASE)


class Unreadable(Exception):
    """Which line of which source cannot be read, and why."""


TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)
      | (?P<directive>(?<![^\n])[ \t]*\#(?:[^\n\\]|\\\n|\\.)*)
      | (?P<string>R"\((?:.*?)\)"|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
      | (?P<number>\.?\d(?:'?[\w.])*)
      | (?P<word>[A-Za-z_]\w*)
      | (?P<newline>\n)
      | (?P<space>[ \t]+)
      | (?P<sign>::|->|.)""",
    re.VERBOSE | re.DOTALL)


@dataclasses.dataclass
class Token:
    kind: str
    text: str
    begin: int
    end: int


def tokens_of(text):
    return [Token(match.lastgroup, match.group(), match.start(), match.end()) for match in TOKEN.finditer(text)]


@dataclasses.dataclass
class Declaration:
    """A whole declaration or macro at the top level of a file or a namespace, with the comment before it."""
    file: str
    namespace: str  # "ladder", or "" outside of all
    text: str
    names: list  # that it declares
    uses: list  # (qualifier or None, name) of all that it names
    is_macro: bool
    stands_apart: bool  # after an empty line

    @property
    def opens(self):
        """The namespace X of `using namespace X`."""
        return self.names[0].removeprefix("namespace ") if self.names[0].startswith("namespace ") else None


@dataclasses.dataclass
class Source:
    """A file of the repository, read."""
    path: str
    about: str  # the words of its @file comment
    system_includes: list
    includes: list  # paths, from the root
    declarations: list


# ---- reading

def without_conditionals(text, path):
    """The text as the preprocessor leaves it for sm_90a; only #if and its like are obeyed."""
    lines, states = [], []  # of each open #if: (is this branch taken, was any)
    for number, line in enumerate(text.split("\n"), 1):
        match = re.match(r"\s*#\s*(if|ifdef|ifndef|elif|else|endif)\b(.*)", line)
        if not match:
            if all(taken for taken, _ in states):
                lines.append(line)
            continue
        word, condition = match.group(1), match.group(2).split("//")[0].strip()
        if word in ("ifdef", "ifndef"):
            condition = ("!" if word == "ifndef" else "") + f"defined({condition})"
        if word == "endif":
            states.pop()
        elif word.startswith("if"):
            reached = all(taken for taken, _ in states)
            holds = reached and condition_holds(condition, f"{path}:{number}")
            states.append((holds, holds or not reached))
        else:
            _, was_any = states.pop()
            holds = not was_any and (word == "else" or condition_holds(condition, f"{path}:{number}"))
            states.append((holds, was_any or holds))
    return "\n".join(lines)


def condition_holds(condition, where):
    words = re.sub(r"defined\s*\(?\s*(\w+)\s*\)?", lambda match: str(int(match.group(1) in DEFINED)), condition)
    words = re.sub(r"\b(?!LADDER_)[A-Za-z_]\w*\b", lambda match: str(DEFINED.get(match.group(), match.group())), words)
    words = re.sub(r"\bLADDER_\w+\b", "0", words)
    words = words.replace("&&", " and ").replace("||", " or ")
    words = re.sub(r"!(?!=)", " not ", words)
    if not re.fullmatch(r"(?:and|or|not|[\d\s()<>=!])+", words):
        raise Unreadable(f"{where}: a condition that only the compiler can judge: {condition}")
    return bool(eval(words, {"__builtins__": {}}))  # pylint: disable=eval-used


def expanded(text):
    """The text without macros that only rename: `#define A(...) b(__VA_ARGS__)`. And without marks of excerpts."""
    rename = re.compile(r"^#define (\w+)\(\.\.\.\) ([\w ]+)\(__VA_ARGS__\)\n", re.MULTILINE)
    for name, meaning in rename.findall(text):
        text = re.sub(rf"^#(?:define|undef) {name}\b.*\n", "", text, flags=re.MULTILINE)
        text = re.sub(rf"\b{name}\(", f"{meaning}(", text)
    return re.sub(r"^[ \t]*// \[\w+\]\n", "", text, flags=re.MULTILINE)


def read_source(path, text):
    text = expanded(without_conditionals(text, path))
    about = re.match(r"/// @file\n((?:///.*\n)*)", text)
    words = ""
    if about:
        words = re.sub(r"^/// ?", "", about.group(1), flags=re.MULTILINE)
        # Spaces in its place: later positions stay as they are.
        text = re.sub(r"[^\n]", " ", about.group()) + text[about.end():]
    source = Source(path, words, [], [], [])
    tokens = tokens_of(text)
    namespaces, i = [], 0
    begin = None  # of the comments that belong to what comes next
    while i < len(tokens):
        token = tokens[i]
        if token.kind in ("space", "newline"):
            i += 1
        elif token.kind == "comment":
            begin = token.begin if begin is None else begin
            i += 1
        elif token.kind == "directive":
            read_directive(source, "::".join(namespaces), text, token.begin if begin is None else begin, token)
            begin, i = None, i + 1
        elif token.text == "namespace":
            opening = next(j for j in range(i, len(tokens)) if tokens[j].text == "{")
            namespaces.append("".join(part.text for part in tokens[i + 1:opening] if part.kind != "space"))
            begin, i = None, opening + 1
        elif token.text == "}":
            namespaces.pop()
            i += 1
            while i < len(tokens) and tokens[i].kind in ("space", "comment"):  # "// namespace ..."
                i += 1
            begin = None
        else:
            after = end_of_declaration(tokens, i, path, text)
            start = token.begin if begin is None else begin
            code = [part for part in tokens[i:after] if part.kind not in ("space", "newline", "comment")]
            names = names_of(code)
            if code[0].text == "static_assert" and source.declarations:
                names = source.declarations[-1].names
            if not names:
                raise Unreadable(f"{path}:{line_of(text, token)}: what does this declare?")
            source.declarations.append(
                Declaration(path, "::".join(namespaces), text[start:tokens[after - 1].end], names, uses_of(code), False,
                            stands_apart(text, start)))
            begin, i = None, after
    return source


def line_of(text, token):
    return text.count("\n", 0, token.begin) + 1


def stands_apart(text, position):
    return "\n" in text[:position].rstrip(" ").removesuffix("\n")[-1:]


def read_directive(source, namespace, text, begin, token):
    words = token.text.strip()
    include = re.match(r'#\s*include\s*([<"])([^>"]+)[>"]', words)
    macro = re.match(r"#\s*(?:define|undef)\s+(\w+)", words)
    if include:
        (source.system_includes if include.group(1) == "<" else source.includes).append(include.group(2))
    elif macro:
        inner = tokens_of(re.sub(r"^\s*#\s*\w+", "", token.text).replace("\\\n", "\n"))
        code = [part for part in inner if part.kind not in ("space", "newline", "comment")]
        source.declarations.append(
            Declaration(source.path, namespace, text[begin:token.end], [macro.group(1)], uses_of(code), True,
                        stands_apart(text, begin)))
    elif words != "#pragma once":
        raise Unreadable(f"{source.path}: {words}: not known outside of a function")


def end_of_declaration(tokens, begin, path, text):
    """The index after the declaration: behind its `;`, or the `}` of a function, and a comment in the same line."""
    depth = 0
    for i in range(begin, len(tokens)):
        sign = tokens[i].text if tokens[i].kind == "sign" else ""
        depth += (sign in ("(", "{", "[")) - (sign in (")", "}", "]"))
        if depth == 0 and (sign == ";" or (sign == "}" and following(tokens, i) not in list(";(),.={["))):
            end = i + 1
            while end < len(tokens) and tokens[end].kind in ("space", "comment"):
                end += 1
            return end
    raise Unreadable(f"{path}:{line_of(text, tokens[begin])}: a declaration without an end")


def following(tokens, i):
    return next((token.text for token in tokens[i + 1:] if token.kind not in ("space", "newline", "comment")), "")


def closing(code, i):
    """The index of the bracket that closes the one at i; angle brackets only if that is one."""
    pairs = {"(": ")", "{": "}", "[": "]", "<": ">"}
    opening, depth = code[i].text, 0
    for j in range(i, len(code)):
        depth += (code[j].text == opening) - (code[j].text == pairs[opening])
        if depth == 0:
            return j
    return len(code) - 1


def names_of(code):
    """What a declaration declares: code is its tokens."""
    i = 0
    while code[i].text == "template":
        i = closing(code, i + 1) + 1
    words = [token.text for token in code]
    if words[i:i + 2] == ["using", "namespace"]:
        return ["namespace " + "".join(words[i + 2:-1])]
    if words[i] == "using":
        return [words[i + 1] if "=" in words else words[-2]]
    if words[i] in ("struct", "class", "enum"):
        while words[i] in ("struct", "class", "enum", "alignas", "(", "["):
            i = closing(code, i) + 1 if words[i] in "([" else i + 1
        return [words[i]]
    names = []
    while i < len(code):
        if words[i:i + 2] == ["[", "["]:
            i = closing(code, i) + 1
        elif words[i] == "(" and words[i - 1] in ("__launch_bounds__", "alignas", "decltype", "__align__"):
            i = closing(code, i) + 1
        elif words[i] == "(" and not names:
            return [words[i - 1]] if code[i - 1].kind == "word" else []
        elif words[i] in ("=", "{", ";", "[", ",", "("):
            # Of variables there may be several: `a = 1, b{2}`.
            if words[i] != "(" and code[i - 1].kind == "word" and (not names or words[i - 2] == ","):
                names.append(words[i - 1])
            i = closing(code, i) + 1 if words[i] in "({[" else i + 1
        else:
            i += 1
    return names


def uses_of(code):
    """Names that may mean declarations at the top level, each with what stands before its `::`."""
    uses = []
    for i, token in enumerate(code):
        before = code[i - 1].text if i else ""
        if token.kind != "word" or before in (".", "->"):
            continue
        uses.append((code[i - 2].text if before == "::" and i > 1 and code[i - 2].kind == "word" else None, token.text))
    return list(dict.fromkeys(uses))


def read_sources(lesson, root=ROOT):
    """All files that the lesson's program is made of; each comes after those that it includes."""
    sources, seen = [], set()

    def visit(path):
        if path in seen:
            return
        seen.add(path)
        replaced = set()
        if path in INSTEAD:
            visit(INSTEAD[path])
            replaced = {name for found in sources[-1].declarations for name in found.names}
        try:
            text = (root / path).read_text(encoding="utf-8")
        except OSError as error:
            raise Unreadable(f"{path}: {error.strerror}") from None
        source = read_source(path, filled_in(text, lesson) if path == MAIN else text)
        # The host's side last: what kernels are made of is read before how they are launched.
        for include in sorted(source.includes, key=lambda include: include.startswith("common/cuda/")):
            visit(include)
        source.declarations = [found for found in source.declarations if replaced.isdisjoint(found.names)]
        sources.append(source)

    visit(MAIN)
    return sources


def filled_in(template, name):
    lesson = LESSONS[name]
    words = {"name": name, "namespace": f"lesson{name[:2]}", "launch": lesson.launch, "multiple": str(lesson.multiple),
             "needs_hopper": "true" if lesson.needs_hopper else "false"}
    return re.sub(r"@(\w+)@", lambda match: words[match.group(1)], template)


# ---- choosing

def reachable(sources):
    """The declarations that main.cu.in leads to. Names are looked up as C++ does, from the inside outwards, but for
    arguments' namespaces and local names: these keep now and then what is not needed, and never leave out what is."""
    by_name, opened = {}, {}
    for source in sources:
        for declaration in source.declarations:
            for name in declaration.names:
                by_name.setdefault(name, []).append(declaration)
            if declaration.opens:
                opened.setdefault(declaration.namespace, set()).add(declaration.opens)

    def meant(user, qualifier, name):
        candidates = by_name.get(name, [])
        if qualifier is not None:
            return [found for found in candidates if found.namespace.split("::")[-1] == qualifier]
        scope = user.namespace
        while True:
            scopes = {scope} | opened.get(scope, set())
            # A macro has no namespace.
            here = [found for found in candidates if found.namespace in scopes or found.is_macro]
            if here or not scope:
                return here
            scope = scope.rpartition("::")[0]

    kept, waiting = set(), list(sources[-1].declarations)
    while waiting:
        declaration = waiting.pop()
        if id(declaration) not in kept:
            kept.add(id(declaration))
            for qualifier, name in declaration.uses:
                waiting += meant(declaration, qualifier, name)
    for source in sources:
        if any(id(found) in kept for found in source.declarations):
            kept |= {id(found) for found in source.declarations if found.opens}
    return kept


# ---- writing

HEAD = """\
// Kernel Ladder, {name}, in one file.
//
//   nvcc -std=c++20 -gencode=arch=compute_90a,code=sm_90a {name}.cu -o {name}
//   ./{name} [SIZE | M N K]
//
// The kernel is at line {kernel}, the program that verifies and times it at line {program}. Before them stand their
// parts, each after those that it is made of.
//
// Made by common/single_file/make_single_file.py of the repository: change that, not this.
"""

HOPPER = """\
#if defined(__CUDA_ARCH__) && !defined(__CUDA_ARCH_FEAT_SM90_ALL)
#error "wgmma exists on sm_90a alone: compile with -gencode=arch=compute_90a,code=sm_90a"
#endif
"""


def written(lesson, sources, kept):
    used = [source for source in sources if any(id(found) in kept for found in source.declarations)]
    parts = [HEAD]
    includes = sorted({include for source in used for include in source.system_includes})
    # CUDA's own end in .h or have a folder; those of C++ have neither.
    groups = [[name for name in includes if name.endswith(".h") or "/" in name],
              [name for name in includes if not (name.endswith(".h") or "/" in name)]]
    parts += ["".join(f"#include <{name}>\n" for name in group) for group in groups if group]
    if LESSONS[lesson].needs_hopper:
        parts.append(HOPPER)
    namespace = ""

    def enter(other):
        nonlocal namespace
        if namespace:
            parts.append(f"}}  // namespace {namespace}\n")
        if other:
            parts.append(f"namespace {other} {{\n")
        namespace = other

    for source in used:
        declarations = [found for found in source.declarations if id(found) in kept]
        if next((found.namespace for found in declarations if not found.is_macro), "") != namespace:
            enter("")
        parts.append(heading(source))
        for i, declaration in enumerate(declarations):
            moves = declaration.namespace != namespace and not declaration.is_macro
            if moves:
                enter(declaration.namespace)
            text = true_here(declaration.text.strip("\n").rstrip() + "\n")
            # Lines that stand together stay together.
            if declaration.stands_apart or (i == 0 and not moves):
                parts.append(text)
            else:
                parts[-1] += text
    enter("")
    text = "\n".join(parts)
    line = {path: text.count("\n", 0, text.index(f"// ---- {path}\n")) + 1 for path in (f"{lesson}/gemm.cuh", PROGRAM)}
    return text.replace(HEAD, HEAD.format(name=lesson, kernel=line[f"{lesson}/gemm.cuh"], program=line[PROGRAM]), 1)


def heading(source):
    """A line that names the file, and what the file says about itself."""
    about = "".join(f"// {line}".rstrip() + "\n" for line in source.about.strip("\n").split("\n"))
    return f"// ---- {source.path.removesuffix('.in')}\n{true_here(about)}"


def true_here(text):
    """The text with comments that leave out sentences of ONLY_THERE."""
    def shortened(match):
        block, prefix = match.group(0), match.group(1)
        if not ONLY_THERE.search(block):
            return block
        words = " ".join(line.strip().lstrip("/").strip() for line in block.strip().split("\n"))
        sentences = [sentence for sentence in re.split(r"(?<=[.!?])\s+", words) if not ONLY_THERE.search(sentence)]
        lines = textwrap.wrap(" ".join(sentences), WIDTH - len(prefix) - 1, break_long_words=False, break_on_hyphens=False)
        return "".join(f"{prefix} {line}\n" for line in lines)

    # A block of comment lines, up to one that is empty.
    return re.sub(r"^([ \t]*///?) .*\n(?:\1 .*\n)*", shortened, text, flags=re.MULTILINE)


def main():
    parser = argparse.ArgumentParser(description="Writes a lesson as one source file.")
    parser.add_argument("lesson", metavar="LESSON", help=", ".join(LESSONS))
    parser.add_argument("output", metavar="OUTPUT", type=pathlib.Path)
    parser.add_argument("--depfile", type=pathlib.Path, help="also write which files it was made of, for the build")
    options = parser.parse_args()
    if options.lesson not in LESSONS:
        parser.exit(2, f"{parser.prog}: error: {options.lesson}: must be one of {', '.join(LESSONS)}\n")
    try:
        sources = read_sources(options.lesson)
        text = written(options.lesson, sources, reachable(sources))
    except Unreadable as error:
        sys.exit(f"{parser.prog}: error: {error}")
    write_whole(options.output, text)
    if options.depfile:
        files = " ".join(str(ROOT / source.path).replace(" ", "\\ ") for source in sources)
        write_whole(options.depfile, f"{options.output}: {files}\n")


if __name__ == "__main__":
    main()
