"""What pages show of the tree itself, so that it is what there is: excerpts of sources, how much a step changes, exercises, records.

    <!-- snippet: 05_ws_double_buffer/gemm.cuh load_tiles -->
    <!-- snippet: common/device/wgmma_core.cuh start kN=128 -->
    <!-- end -->

What lies between the two lines `// [load_tiles]` of the file; the site shows it with Doxygen's \\snippet. kN=128 shows, of lines that
begin with `if constexpr (kN == NUMBER)`, what holds for this number.

    <!-- changed: 04.1 -->
    <!-- changed: attention.2 -->
    <!-- end -->

How many lines of code a step changes in the kernel of the one that it builds on: those that `git diff -w` adds and removes between the
two kernels, without comments and blank lines.

    <!-- exercises: 04 -->
    <!-- exercises: 02 a 1 5 -->
    <!-- exercises: 04.a -->
    <!-- end -->

The first word is the lesson's number, for a table of all or of those named behind it, or one exercise, for a line that invites to
it. There are no links: `ladder learn` makes the file that a learner begins with, and says what one can do when it is done.

    <!-- files: . -->
    <!-- end -->

The records in a folder of docs/results and those below, with what each says of where it was recorded.
"""
import json
import re
import subprocess
import tempfile
import textwrap
from pathlib import Path

from climb_table import BadInput, read_page
from lattice import diffs, diffs_of_attention
from page_requests import left_aligned
from record_files import Part, each


def one_case(line, code, name, number):
    """The code of one value of a constant, without the condition."""
    case = re.compile(rf"^( *)if constexpr \({name} == (\d+)\) ", re.MULTILINE)
    if number not in {found[1] for found in case.findall(code)}:
        raise BadInput(f"{line}: there is no line 'if constexpr ({name} == {number})'")
    lines = [code_line for code_line in code.split("\n") if (found := case.match(code_line)) is None or found[2] == number]
    return case.sub(r"\1", "\n".join(lines))


def code_excerpt(line, words, root):
    """The lines that stand for the request `line`, whose words are the file, from the repository's root, and the name."""
    if len(words) not in (2, 3) or len(words) == 3 and not re.fullmatch(r"\w+=\d+", words[2]):
        raise BadInput(f"{line}: needs a file and a name, and perhaps NAME=NUMBER")
    path, name = words[:2]
    parts = read_page(root / path).split(f"// [{name}]\n")
    if len(parts) != 3:
        raise BadInput(f"{line}: {path} needs the line // [{name}] twice")
    # The second marker is indented as the code is.
    code = one_case(line, parts[1].rstrip(" "), *words[2].split("=")) if len(words) == 3 else parts[1].rstrip(" ")
    return ["```cpp", *textwrap.dedent(code).strip("\n").split("\n"), "```"]


def code(text):
    """The lines that are more than a comment, without their comments."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    lines = [re.sub(r"\s*//.*", "", line).rstrip() for line in text.splitlines()]
    return "".join(line + "\n" for line in lines if line)


def changed_lines(old, new):
    """Added and removed, of two texts."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("old", "new")]
        for path, text in zip(paths, (old, new)):
            path.write_text(code(text), encoding="utf-8")
        counts = subprocess.run(["git", "diff", "--no-index", "-w", "--numstat", *paths], capture_output=True, text=True,
                                timeout=60, check=False).stdout.split()
    return sum(map(int, counts[:2]))


def changed_text(line, words, root):
    """The lines that stand for the request `line`, whose word is the id of a step."""
    known = {step.id: (step, base) for step, base in diffs(root) + diffs_of_attention(root)}
    if len(words) != 1 or words[0] not in known:
        raise BadInput(f"{line}: needs one of the steps {', '.join(known)}")
    step, base = known[words[0]]
    count = changed_lines(read_page(root / base.kernel), read_page(root / step.kernel))
    name = base.label if base.id.startswith("attention") else base.id
    return [f"{count} lines of code change from [{name}](../{base.kernel.as_posix()}): `cmake --build build --target {step.diff}`."]


HEADER = ["exercise", "kind", "what to do"]


def row(folder):
    """The cells of the exercise in this folder."""
    path = folder / "exercise.md"
    head = path.read_text(encoding="utf-8").partition("\n---\n")[0]  # common/exercise/exercise_file.cpp reads the rest
    fields = dict(line.partition(": ")[::2] for line in head.splitlines()[1:])
    try:
        kind, title = fields["kind"], fields["title"]
    except KeyError as error:
        raise BadInput(f"{path}: has no field {error}") from error
    name = f"{folder.parents[1].name[:2]}.{folder.name.partition('_')[0]}"
    return [name, kind, title]


def exercise_table(line, words, root):
    """The lines that stand for `<!-- exercises: NN -->`."""
    lesson, _, chosen = (words or [""])[0].partition(".")
    if not lesson or chosen and words[1:]:
        raise BadInput(f"{line}: needs the number of a lesson, perhaps with some of its exercises, or one exercise")
    folders = sorted((path.parent for path in root.glob(f"{lesson}_*/exercise/{chosen or '*'}_*/exercise.md")),
                     key=lambda folder: (folder.name[0].isdigit(), folder.name))  # short exercises, with letters, come first
    if not folders:
        raise BadInput(f"{line}: there is no exercise {words[0]}" if chosen else f"{line}: lesson {lesson} has no exercises")
    rows = [row(folder) for folder in folders if not words[1:] or folder.name.partition("_")[0] in words[1:]]
    if words[1:] and [cells[0] for cells in rows] != [f"{lesson}.{word}" for word in words[1:]]:
        raise BadInput(f"{line}: names exercises that there are not, or in another order")
    if chosen:
        return [f"**Try it:** {rows[0][2]}: `build/bin/ladder learn {words[0]}`."]
    return [f"`build/bin/ladder learn {rows[0][0]}` opens and checks the first:", "", *left_aligned(HEADER, rows)]


def facts(path):
    """The cells behind the name: what is in the file, date, GPU, driver, toolkit, clocks, power, commit."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if "traceEvents" in content:
            origin = content["metadata"]
            return ["timeline", origin["date"], origin["device"], "", origin["toolkit"], "", "", f"`{origin['commit']}`"]
        if "bounds" in content:
            return ["predictions", content["date"], content["gpu"], "", "", "", "", f"`{content['commit']}`"]
        for key in ("mistakes", "mutants"):
            if key in content:
                return [f"{len(content[key])} {key}", content["date"], content["device"], "", "", "", "",
                        f"`{content['commit'][:7]}`"]
        if "tests" in content:
            return [f"{len(content['tests'])} tests", content["date"], content["gpu"], content["driver"], content["toolkit"],
                    "", "", f"`{content['commit']}`"]
        entries = content.get("runs", content.get("launches"))
        kind = "profiles" if "launches" in content else "runs"
        clock, power = (span(entries, key) for key in ("clock_mhz", "power_watts"))
        return [f"{len(entries)} {kind}", content["date"], content["gpu"], content["driver"], content["toolkit"], clock, power,
                f"`{content['commit']}`"]
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise BadInput(f"{path}: is no result file: {error!r}") from error


def span(entries, key):
    """The least and the most of a figure."""
    values = [entry[key] for entry in entries if entry.get(key) is not None]
    return f"{min(values):.0f}–{max(values):.0f}" if values else ""


def file_table(line, words, results):
    """The lines that stand for `<!-- files: FOLDER -->`."""
    found = list(each(results / words[0])) if len(words) == 1 else []
    if not found:
        raise BadInput(f"{line}: needs a folder with result files")
    rows = []
    for one in found:
        path = getattr(one, "path", one).relative_to(results)
        name = f", {one.document['record']}" if isinstance(one, Part) else ""
        rows.append([f"[{path}]({path}){name}", *facts(one)])
    return left_aligned(["file", "holds", "date", "device", "driver", "toolkit", "SM clock, MHz", "power, W", "commit"], rows)
