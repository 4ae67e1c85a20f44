"""The fingerprint of the sources that decide a record: their tokens, without comments, blanks and prose.

The sources are the roots and, transitively, what they include from the repository with `#include "..."`; with a header
X.hpp its X.cpp, X.cu, X_gpu.cpp and X_gpu.cu. What is host code alone (common/host) is left out: verification and printing
decide no figure. String literals that hold a blank are prose for readers and left out, too, but not in common/ptx, where
they are instructions. A root may be a pattern (02_tiled/broken/*.patch), which leaves out tests. Each mistake of a file
broken/mistakes.patch counts as a file of its own, broken/<mistake>.patch. Of a patch the lines count that it adds or removes;
any other file counts as it is. Of a lesson's lesson.cu only what it includes counts: it maps knobs
to kernels, and a record says its knobs. A record may name sources that it does not run (records.py): they
are left out, and with them what they alone include.
"""
import fnmatch
import functools
import hashlib
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HOST_ALONE = ("common/host/", "common/testing/", "common/cpu_device/", "common/instrumented/")
CPP = (".cuh", ".cu", ".hpp", ".cpp", ".h")
MISTAKES = "mistakes.patch"
NAMED = re.compile(r"^## (\w+)\n", re.MULTILINE)  # no line of a diff begins like this
MAPS_KNOBS = re.compile(r"(?<!/broken)/lesson[.]cu$")
SKIPPED = re.compile(r"//[^\n]*|/\*.*?\*/|\s+", re.DOTALL)
TOKEN = re.compile(rf"""(?P<skipped>{SKIPPED.pattern})|(?P<string>"(?:\\.|[^"\\\n])*")|'(?:\\.|[^'\\\n])+'|\d[\w.']*|\w+|.""",
                   re.DOTALL)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)


class Missing(Exception):
    """A root that the tree does not have."""


@functools.cache
def planted(text):
    """{name: (the line of its heading, what stands below that)} of the mistakes in the text of a file mistakes.patch."""
    before, *parts = NAMED.split(text)
    found, line = {}, before.count("\n") + 1
    for name, below in zip(parts[::2], parts[1::2]):
        found[name] = line, below
        line += 1 + below.count("\n")
    return found


class Tree:
    """Sources by path."""

    def read(self, path):
        """The text of a file or of a planted mistake; None if there is none."""
        text = self.read_file(path)
        if text is None and path.endswith(".patch"):
            folder, _, name = path.rpartition("/")
            mistakes = planted(self.read_file(f"{folder}/{MISTAKES}") or "")
            text = mistakes.get(name.removesuffix(".patch"), (0, None))[1]
        return text

    def matching(self, pattern):
        """The paths of files and planted mistakes."""
        found = []
        for path in self.files(pattern):
            folder, _, name = path.rpartition("/")
            found += [f"{folder}/{mistake}.patch" for mistake in planted(self.read_file(path))] if name == MISTAKES else [path]
        return sorted(found)


class WorkingTree(Tree):
    """The sources as they lie here."""

    def __init__(self, folder=ROOT):
        self.folder = folder

    @functools.cache
    def read_file(self, path):
        try:
            return (self.folder / path).read_text(encoding="utf-8")
        except OSError:
            return None

    def files(self, pattern):
        return [path.relative_to(self.folder).as_posix() for path in self.folder.glob(pattern)]


class Commit(Tree):
    """The sources of a commit of the history. @throws Missing if the history does not hold it"""

    def __init__(self, commit, folder=ROOT):
        self.folder = folder
        if git(folder, "merge-base", "--is-ancestor", commit, "HEAD") is None:
            raise Missing(f"commit {commit}")
        listed = git(folder, "ls-tree", "-r", "--full-tree", commit).splitlines()
        self.blobs = {path: facts.split()[2] for facts, path in (line.split("\t", 1) for line in listed)}

    def read_file(self, path):
        return blob(self.folder, self.blobs[path]) if path in self.blobs else None

    def files(self, pattern):
        return [path for path in self.blobs if fnmatch.fnmatchcase(path, pattern.replace("**/", "*"))]


def git(folder, *words):
    """What git prints; None if it fails, or is not there."""
    try:
        done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout


@functools.cache
def blob(folder, name):
    """Of most commits most files are the same."""
    return git(folder, "cat-file", "blob", name)


def tokens(path, text):
    """The text as it counts."""
    if path.endswith(".patch"):
        lines = re.findall(r"^[-+](?!--|\+\+).*", text, re.MULTILINE)
        return "\n".join(line[0] + tokens("line.cuh", line[1:]) for line in lines)
    if not path.endswith(CPP):
        return text
    kept = []
    for token in TOKEN.finditer(text):
        prose = token["string"] and " " in token["string"] and not path.startswith("common/ptx/")
        if not token["skipped"] and not prose:
            kept.append(token[0])
    return "\n".join(kept)


def beside(path):
    """The sources that may define what a header declares."""
    stem, dot, ending = path.rpartition(".")
    return [f"{stem}{more}" for more in (".cpp", ".cu", "_gpu.cpp", "_gpu.cu")] if dot and ending == "hpp" else []


def sources(tree, roots, left_out=()):
    """{path: what of it counts} of the roots and what they include, but for the paths left out, where `*` stands for any text.
    @throws Missing"""
    found, waiting = {}, []
    for root in roots:
        paths = [path for path in tree.matching(root) if "/test_" not in path] if "*" in root else \
            [root] * (tree.read(root) is not None)
        if not paths:
            raise Missing(root)
        waiting += paths
    while waiting:
        path = waiting.pop()
        text = None if path in found or any(fnmatch.fnmatchcase(path, name) for name in left_out) else tree.read(path)
        if text is None:
            continue
        found[path] = "" if MAPS_KNOBS.search(path) else counted(path, text)
        if not path.endswith(CPP):
            continue
        folder = path.rpartition("/")[0]
        for name in INCLUDE.findall(text):
            name = name if tree.read(name) is not None else f"{folder}/{name}"
            if not name.startswith(HOST_ALONE):
                waiting += [name, *beside(name)]
    return found


@functools.cache
def counted(path, text):
    """A hash of the tokens."""
    return hashlib.sha256(tokens(path, text).encode()).hexdigest()


def fingerprint(tree, roots, texts=(), left_out=()):
    """Of the sources, and of texts that count as they are. @throws Missing"""
    whole = hashlib.sha256("\n".join(texts).encode())
    for path, tokens_hash in sorted(sources(tree, roots, left_out).items()):
        whole.update(f"{path} {tokens_hash}\n".encode())
    return whole.hexdigest()[:12]


def changed(before, now, roots, left_out=()):
    """The files that count in one of two trees and are not the same in the other. @throws Missing"""
    old, new = sources(before, roots, left_out), sources(now, roots, left_out)
    return sorted(path for path in old.keys() | new.keys() if old.get(path) != new.get(path))
