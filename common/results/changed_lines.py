"""How many lines of code a lesson changes in the kernel of one that it builds on.

    <!-- changed: 02 03 -->
    <!-- end -->

Counted are the lines that `git diff -w` adds and removes between the two gemm.cuh, without comments and blank lines.
"""
import re
import subprocess
import tempfile
from pathlib import Path

from climb_table import BadInput, read_page


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
    """The lines that stand for the request `line`, whose words are the numbers of the two lessons."""
    kernels = [list(root.glob(f"{number}_*/gemm.cuh")) for number in words]
    if len(words) != 2 or not all(len(found) == 1 for found in kernels):
        raise BadInput(f"{line}: needs the numbers of two lessons")
    (old,), (new,) = kernels
    count = changed_lines(read_page(old), read_page(new))
    return [f"{count} lines of code change in [gemm.cuh](../{new.parent.name}/gemm.cuh) from [that of {words[0]}]"
            f"(../{old.parent.name}/gemm.cuh); `cmake --build build --target diff_{words[0]}_{words[1]}` prints them."]
