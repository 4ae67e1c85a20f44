"""What the makers of the site share: which files belong to it, and where Doxygen puts them."""
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

PAGE_FOLDERS = ["common", "docs"]
SOURCE_SUFFIXES = {".cuh", ".hpp", ".cu", ".cpp"}
# Of these every public function has words (check_reference.py): not tests, not how the CPU device does it.
NO_SOURCES = re.compile(r"(^|/)(tests|shadow|broken|exercise)/|(^|/)test_[^/]*$|^common/.*\.cpp$|"
                        r"^common/cpu_device/(?!(cpu_device|kernel/engine|observe/(clock|counters))\.hpp$)")
# What the site shows is what a learner meets: kernels, what they are made of, lesson 07's pipeline, the clock that
# predictions count in; and the headers of these folders that a lesson includes. Pages may link to other files as text.
SHOWN = re.compile(r"^(?!07_)\d\d_[^/]*/.*\.cuh$|^06_[^/]*/any_shape/plan\.hpp$|^07_[^/]*/[^/]*$|^common/(device|ptx)/|"
                   r"^common/cpu_device/observe/")
SHOWN_IF_INCLUDED = re.compile(r"^common/(cuda|host/problem)/")
OF_EXERCISES = re.compile(r"^\d\d_[^/]*/exercise/")
NESTED = re.compile(r"^namespace (lesson\d\d::\w+)", re.MULTILINE)
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)


def lessons():
    """Their folders, in the order of the ladder."""
    return sorted(path.parent for path in ROOT.glob("[0-9][0-9]_*/README.md"))


def relative(path):
    return path.relative_to(ROOT).as_posix()


def sources():
    """Of which check_reference.py demands words."""
    folders = lessons() + [ROOT / "common"]
    files = [path for folder in folders for path in sorted(folder.rglob("*")) if path.suffix in SOURCE_SUFFIXES]
    return [path for path in files if not NO_SOURCES.search(relative(path))]


def shown_sources():
    """Of which the site has pages."""
    shown = {path for path in sources() if SHOWN.search(relative(path))}
    included = {name for path in shown if path.parts[len(ROOT.parts)][0].isdigit()
                for name in INCLUDE.findall(path.read_text(encoding="utf-8"))}
    return [path for path in sources()
            if path in shown or relative(path) in included and SHOWN_IF_INCLUDED.search(relative(path))]


def silent_namespaces():
    """Of steps and variants, each in a namespace below its lesson's, the site has the text alone, no page for each symbol."""
    return sorted({name for path in shown_sources() for name in NESTED.findall(path.read_text(encoding="utf-8"))})


def pages():
    """Every page of the repository but what is written of exercises, with hints that `ladder learn` gives one by one."""
    folders = lessons() + [ROOT / folder for folder in PAGE_FOLDERS]
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    return found + sorted(page for folder in folders for page in folder.rglob("*.md") if not OF_EXERCISES.match(relative(page)))


class Reference:
    """What Doxygen's tag file says of sources: the page of each file, and the place of each symbol."""

    def __init__(self, tag_file):
        self.file_pages, self.symbols = {}, {}
        for compound in ElementTree.parse(tag_file).getroot():
            name, page = compound.findtext("name"), compound.findtext("filename")
            if compound.get("kind") == "file":
                path = Path(compound.findtext("path") or "") / name
                self.file_pages[relative(path) if path.is_absolute() else path.as_posix()] = page
                continue
            if compound.get("kind") in ("class", "struct"):
                self._add(name, page)
            for member in compound.findall("member"):
                if member.get("kind") in ("function", "variable", "typedef", "enumeration"):
                    place = f"{member.findtext('anchorfile')}#{member.findtext('anchor')}"
                    self._add(f"{name}::{member.findtext('name')}", place)

    def _add(self, qualified, place):
        self.symbols.setdefault(re.split("::", qualified)[-1], {}).setdefault(qualified, place)

    def source_page(self, path, line=None):
        """The page that shows the file's text; None for files that Doxygen does not read."""
        page = self.file_pages.get(path)
        if page is None:
            return None
        page = page if page.endswith(".html") else page + ".html"
        return page.replace(".html", "_source.html") + (f"#l{line:05}" if line else "")

    def place_of(self, name, scope=""):
        """Of a symbol as a page names it: `Pipeline`, `ptx::tma_load`, `producer_acquire`. Of several the one in the
        namespace `scope`, else that of the only namespace that has it; None if that leaves a choice."""
        candidates = {full: place for full, place in self.symbols.get(name.split("::")[-1], {}).items()
                      if full == name or full.endswith("::" + name)}
        mine = [place for full, place in candidates.items() if scope and full.startswith(scope + "::")]
        if mine:
            return mine[0]
        shared = {full: place for full, place in candidates.items() if not full.startswith("lesson")}
        return next(iter(shared.values())) if len(shared) == 1 else None
