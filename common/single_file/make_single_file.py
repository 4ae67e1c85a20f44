#!/usr/bin/env python3
"""Writes a lesson as one source file, which a learner takes home and builds with nvcc alone.

    make_single_file.py 05_ws_double_buffer OUTPUT [--depfile FILE]

Begins with main.cu.in, filled in for the lesson, and puts every header of the repository in the place of its #include,
once. Then it leaves out what the program never names. Four steps, each a function:

    read_sources()  a file, those that it includes before it, each cut into its top-level declarations
    specialised()   the same with the one width of tile that the lesson has
    chosen()        the declarations that main.cu.in names, those that they name, and so on, without members that nobody names
    written()       their text: first what the kernel is made of (instructions, then what uses them), then the kernel, then
                    how it is launched; with a heading for each file that they come from

Exit codes: 0 written; 1 a source cannot be read; 2 bad input, one line.
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

from declarations import Unreadable, arguments_of, code_of, members_of, read_source, tokens_of, uses_of  # noqa: E402
from script import write_whole  # noqa: E402

MAIN = "common/single_file/main.cu.in"
WIDTH = 110


@dataclasses.dataclass(frozen=True)
class Lesson:
    launch: str  # the call that launches the lesson's defaults, inside of its namespace
    multiple: int = 8  # n and k must be multiples of that
    clusters: bool = False
    settings: tuple = ()  # of the lesson's program, where its defaults at 4096 are not this kernel


LESSONS = {
    "01_naive": Lesson("launch_gemm(p, nullptr)", multiple=1),
    "02_tiled": Lesson("launch_gemm(p, nullptr)"),
    "03_double_buffer": Lesson("(p.n % 16 || p.k % 16 ? launch_gemm<3, true> : launch_gemm<3, false>)(p, nullptr)"),
    "04_warp_specialized": Lesson("launch_gemm(p, nullptr)"),
    "05_ws_double_buffer": Lesson("launch_gemm<4>(p, nullptr)"),
    "06_clusters_dsmem": Lesson("launch_gemm<4>(p, nullptr)", clusters=True),
}

# A program of one file needs less of these headers than the repository.
SHORT = "common/single_file"


def short_form(path, lesson):
    """The header whose declarations take the place of those of the same names in `path`, or None."""
    launch = f"{SHORT}/launch_clusters.hpp" if LESSONS[lesson].clusters else f"{SHORT}/launch.hpp"
    return {
        "common/host/problem/gemm.hpp": f"{SHORT}/gemm.hpp",
        "common/cuda/error.hpp": f"{SHORT}/error.hpp",
        "common/cuda/launch_config.hpp": launch,
        "common/cuda/launch.cuh": launch,
        "common/cuda/persistent_grid.hpp": launch,
        "common/cuda/tensor_map.hpp": f"{SHORT}/tensor_map.hpp",
    }.get(path)


# What only reports of the repository read: the name of a launch.
ONLY_FOR_REPORTS = re.compile(r'\.name = "\w+",\s*')

# Sentences that are only true in the repository.
ONLY_THERE = re.compile(r"\bshadow\b|CPU device|either device|--\w+|\bLADDER_[A-Z]|\bcommon/|\.cuh\b|earlier GPUs|GPUs before",
                        re.IGNORECASE)


def read_sources(lesson, root=ROOT):
    """All files that the lesson's program is made of; each comes after those that it includes."""
    sources, seen = [], set()

    def visit(path):
        if path in seen:
            return
        seen.add(path)
        replaced = set()
        if instead := short_form(path, lesson):
            visit(instead)
            [shorter] = [source for source in sources if source.path == instead]
            replaced = {name for found in shorter.declarations for name in found.names}
        try:
            text = (root / path).read_text(encoding="utf-8")
        except OSError as error:
            raise Unreadable(f"{path}: {error.strerror}") from None
        source = read_source(path, filled_in(text, lesson) if path == MAIN else ONLY_FOR_REPORTS.sub("", text))
        for include in source.includes if path == MAIN else sorted(source.includes, key=reading_order):
            visit(include)
        source.declarations = [found for found in source.declarations if replaced.isdisjoint(found.names)]
        sources.append(source)

    visit(MAIN)
    return sources


def reading_order(path):
    """First what kernels are made of, then how they are launched, then what is the lesson's own."""
    return 1 if path.startswith("common/cuda/") else 0 if path.startswith("common/") else 2


def filled_in(template, name):
    lesson = LESSONS[name]
    words = {"name": name, "namespace": f"lesson{name[:2]}", "launch": lesson.launch, "multiple": str(lesson.multiple)}
    return re.sub(r"@(\w+)@", lambda match: words[match.group(1)], template)


# ---- choosing

def specialised(sources, lesson):
    """The sources, with `if constexpr (kN == 128) ...` of the tensor cores decided for the lesson's tile."""
    text = "".join(found.text for source in sources if source.path == f"{lesson}/gemm.cuh" for found in source.declarations)
    tile = re.search(r"constexpr TileShape kTile\{\d+, (\d+), \d+\};", text)
    branch = re.compile(r"^( *)if constexpr \(kN == (\d+)\) (.*;)\n", re.MULTILINE)
    for source in sources:
        for found in source.declarations:
            if tile and found.names == ["WgmmaCore"]:
                rewrite(found, branch.sub(lambda match: f"{match[1]}{match[3]}\n" if match[2] == tile[1] else "", found.text))
    return sources


def rewrite(declaration, text):
    declaration.text, declaration.uses = text, uses_of(code_of(tokens_of(text)))


def chosen(sources):
    """The ids of the declarations that the program needs; of their members, only those that something names are left."""
    kept = reachable(sources)
    while without_unnamed_members([found for source in sources for found in source.declarations if id(found) in kept]):
        kept = reachable(sources)
    return kept


def without_unnamed_members(declarations):
    """Leaves out functions and constants of structs that are named neither as x.name, x->name or X::name, nor by a struct
    that names theirs, nor by a loop over them (begin, end). A call with more or fewer arguments than a function takes is one of
    another of that name. Returns whether there were any."""
    code = {id(found): code_of(tokens_of(found.text)) for found in declarations}
    structs = [found for found in declarations if members_of(found)]
    changed = False

    def is_named(name, owner, member, members):
        declared = [next(token.begin for token in code[id(owner)] if token.text == name and token.begin >= other.begin)
                    for other in members if name in other.names]
        for found in declarations:
            tokens = code[id(found)]
            bare = found in structs and owner.names[0] in (token.text for token in tokens)
            for i, token in enumerate(tokens):
                own = found is owner and (member.begin <= token.begin < member.end or token.begin in declared)
                qualified = i > 0 and tokens[i - 1].text in (".", "->", "::", "template")
                if token.text == name and not own and (bare or qualified) and takes(member, tokens, i + 1):
                    return True
        return name in ("begin", "end")

    def takes(member, tokens, opening):
        """Whether the member may be called with the arguments that begin there, if any do."""
        if member.arity is None or tokens[opening].text != "(":
            return True
        return member.arity[0] <= len(arguments_of(tokens, opening)) <= member.arity[1]

    for owner in structs:
        text, members = owner.text, members_of(owner)
        for member in reversed(members):
            if member.takes_no_room and not any(is_named(name, owner, member, members) for name in member.names):
                before, after = text[:member.begin].rstrip(" "), text[member.end:]
                # Of two empty lines, or one before the end, none is left.
                after = after.lstrip("\n") if before.endswith(("\n\n", "{\n")) else after.removeprefix("\n")
                text = before + after
        if text != owner.text:
            rewrite(owner, re.sub(r"\n\n(?=};|\n)", "\n", text))
            changed = True
    return changed


def reachable(sources, roots=None):
    """The declarations that main.cu.in leads to, or others. Names are looked up as C++ does, from the inside outwards, but for
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
        scope, opened_here = user.namespace, set()
        while True:
            opened_here |= opened.get(scope, set())
            # A macro has no namespace. What `using namespace` opens is found as if it were outside of all.
            here = [found for found in candidates
                    if found.namespace == scope or found.is_macro or (not scope and found.namespace in opened_here)]
            if here or not scope:
                return here
            scope = scope.rpartition("::")[0]

    kept, waiting = set(), list(sources[-1].declarations if roots is None else roots)
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
// Kernel Ladder, {name}, in one file, for CUDA 12.5 or later and a Hopper GPU (sm_90a):
//
//   nvcc -std=c++20 -gencode=arch=compute_90a,code=sm_90a {name}.cu -o {name}
//   ./{name} [SIZE | M N K]
//
// The kernel is at line {kernel}, its launch at line {launch}, the program at line {program}; before each stand its parts.
// Written by common/single_file/make_single_file.py of the repository.
"""


def written(lesson, sources, kept):
    own = f"{lesson}/gemm.cuh"
    # In one file it does no harm that macros stay defined.
    needed = {source.path: [found for found in source.declarations if id(found) in kept and "#undef" not in found.text]
              for source in sources}
    used = [source for source in sources if needed[source.path]]
    kernels = [found for found in needed[own] if "__global__" in found.text]
    parts_of_kernels = [found for path, declarations in needed.items() if path.startswith(("common/device/", "common/ptx/"))
                        for found in declarations]
    on_device = reachable(sources, kernels + parts_of_kernels) - {id(found) for found in needed[MAIN]}
    parts = [HEAD]
    includes = sorted({include for source in used for include in source.system_includes})
    # CUDA's own end in .h or have a folder; those of C++ have neither.
    groups = [[name for name in includes if name.endswith(".h") or "/" in name],
              [name for name in includes if not (name.endswith(".h") or "/" in name)]]
    parts += ["".join(f"#include <{name}>\n" for name in group) for group in groups if group]
    namespace = ""

    def enter(other):
        nonlocal namespace
        if namespace:
            parts.append(f"}}  // namespace {namespace}\n")
        if other and parts[-1].startswith("// ---- "):
            parts[-1] += f"namespace {other} {{\n"
        elif other:
            parts.append(f"namespace {other} {{\n")
        namespace = other

    def halves():
        """The sources twice: with what the kernel needs, and with what its launch and the program need. In either, a namespace
        is opened once: instructions come first, then what the repository makes of them, then what is the lesson's own."""
        for here in (True, False):
            found_here = [(source, [found for found in needed[source.path] if (id(found) in on_device) == here]) for source in used]
            yield from sorted(((source, declarations) for source, declarations in found_here if declarations),
                              key=lambda pair: {"ptx": 0, "ladder": 1}.get(pair[1][0].namespace, 2) if pair[0].path != MAIN else 3)

    for source, declarations in halves():
        if next((found.namespace for found in declarations if not found.is_macro), "") != namespace:
            enter("")
        is_rest = any(part.startswith(title(source.path)) for part in parts)
        parts.append(f"{title(source.path)}the rest\n" if is_rest else heading(source))
        for i, declaration in enumerate(declarations):
            moves = declaration.namespace != namespace and not declaration.is_macro
            long_heading = i == 0 and not moves and parts[-1].count("\n") > 1
            if moves:
                enter(declaration.namespace)
            text = true_here(declaration.text.strip("\n").rstrip() + "\n")
            # Lines that stand together stay together, and a heading of one line is directly above what it names.
            if declaration.stands_apart and (i > 0 or moves) or long_heading:
                parts.append(text)
            else:
                parts[-1] += text
    enter("")
    text = "\n".join(parts)
    kernel, launch, program = (text.count("\n", 0, text.index(line)) + 1
                               for line in (title(own), f"{title(own)}the rest\n", title(MAIN)))
    return text.replace(HEAD, HEAD.format(name=lesson, kernel=kernel, launch=launch, program=program), 1)


def text_of(lesson):
    """The whole file of one of LESSONS."""
    sources = specialised(read_sources(lesson), lesson)
    return written(lesson, sources, chosen(sources))


def title(path):
    """How the heading of a file begins."""
    return f"// ---- {path.removesuffix('.in')}: "


def heading(source):
    """The file's name, and what the file says about itself."""
    lines = true_here("".join(f"// {line}".rstrip() + "\n" for line in source.about.strip("\n").split("\n"))).split("\n")
    first = lines.index("//") if "//" in lines else len(lines)
    words = title(source.path).removeprefix("// ") + " ".join(line.removeprefix("// ") for line in lines[:first])
    return "".join(f"// {line}\n" for line in wrapped(words, WIDTH - 3)) + "\n".join(lines[first:])


def wrapped(words, width):
    return textwrap.wrap(words, width, break_long_words=False, break_on_hyphens=False)


def true_here(text):
    """The text with comments that leave out sentences of ONLY_THERE."""
    def shortened(match):
        block, prefix = match.group(0), match.group(1)
        words = " ".join(line.strip().lstrip("/").strip() for line in block.strip().split("\n"))
        if not ONLY_THERE.search(words):
            return block
        sentences = [sentence for sentence in re.split(r"(?<=[.!?])\s+", words) if not ONLY_THERE.search(sentence)]
        return "".join(f"{prefix} {line}\n" for line in wrapped(" ".join(sentences), WIDTH - len(prefix) - 1))

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
        text = text_of(options.lesson)
    except Unreadable as error:
        sys.exit(f"{parser.prog}: error: {error}")
    write_whole(options.output, text)
    if options.depfile:
        files = " ".join(str(ROOT / source.path).replace(" ", "\\ ") for source in sources)
        write_whole(options.depfile, f"{options.output}: {files}\n")


if __name__ == "__main__":
    main()
