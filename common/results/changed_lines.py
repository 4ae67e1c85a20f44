"""How many lines of code a step changes in the kernel of the one that it builds on.

    <!-- changed: 04.1 -->
    <!-- changed: attention.2 -->
    <!-- end -->

Counted are the lines that `git diff -w` adds and removes between the two kernels, without comments and blank lines.
"""
import re
import subprocess
import tempfile
from pathlib import Path

from climb_table import BadInput, read_page
from lattice import diffs, diffs_of_attention


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
