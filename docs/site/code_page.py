"""A lesson in one file, as a page: folded by file and function, and every PTX instruction leads to the page that explains it."""
import html
import re
import sys

from diff_page import coloured
from site_files import ROOT, lessons

sys.path.insert(0, str(ROOT / "common/single_file"))
import make_single_file

MBARRIERS, TMA = "docs/concepts/mbarriers_and_phases.md", "docs/concepts/tma.md"
FRAGMENTS = "docs/concepts/tensor_core_fragments.md"
CLUSTERS, GLOSSARY = "docs/concepts/clusters_and_dsmem.md", "docs/concepts/glossary.md"
LESSON_05, LESSON_06 = "05_ws_double_buffer/README.md", "06_clusters_dsmem/README.md"

# Where each function of common/ptx is explained. None: it is what its comment says.
EXPLAINED_ON = {
    "cp_async_16": "04_warp_specialized/deeper/roles_without_wgmma.md",
    "cp_async_ca_16": "03_double_buffer/deeper/copies_and_l1.md", "cp_async_mbarrier_arrive": MBARRIERS,
    "cp_async_mbarrier_arrive_noinc": MBARRIERS,
    "mbarrier_init": MBARRIERS, "mbarrier_arrive": MBARRIERS, "mbarrier_arrive_expect_bytes": MBARRIERS,
    "mbarrier_try_wait": MBARRIERS, "mbarrier_wait": MBARRIERS, "fence_mbarrier_init": MBARRIERS,
    "tma_prefetch": TMA, "tma_load": TMA, "tma_store": TMA, "tma_store_commit": TMA, "tma_store_wait_read": TMA,
    "tma_store_wait": TMA, "fence_proxy_async": TMA, "elect_one": TMA,
    "wgmma_fence": FRAGMENTS, "wgmma_commit_group": FRAGMENTS, "wgmma_wait_group": FRAGMENTS, "keep_in_registers": FRAGMENTS,
    "wgmma_m64n64k16": FRAGMENTS, "wgmma_m64n128k16": FRAGMENTS, "wgmma_m64n192k16": FRAGMENTS, "wgmma_m64n256k16": FRAGMENTS,
    "wgmma_m64k16": FRAGMENTS,
    "mma_m16n8k16": FRAGMENTS, "ldmatrix_x4": FRAGMENTS, "ldmatrix_x4_trans": FRAGMENTS, "stmatrix_x4": FRAGMENTS,
    "stmatrix_x4_trans": FRAGMENTS, "matrix_descriptor": FRAGMENTS,
    "cluster_block_rank": CLUSTERS, "cluster_sync": CLUSTERS, "cluster_address": CLUSTERS, "map_shared": CLUSTERS,
    "mbarrier_arrive_remote": CLUSTERS, "mbarrier_arrive_remote_release": CLUSTERS, "mbarrier_try_wait_cluster": CLUSTERS,
    "mbarrier_wait_cluster": CLUSTERS, "store_async": CLUSTERS, "tma_load_multicast": CLUSTERS,
    "named_barrier_sync": GLOSSARY, "named_barrier_or": GLOSSARY, "named_barrier_arrive": GLOSSARY,
    "setmaxnreg_inc": LESSON_05, "setmaxnreg_dec": LESSON_05,
    "griddepcontrol_wait": LESSON_06, "griddepcontrol_launch_dependents": LESSON_06,
    "shared_address": None, "tanh_approx": None, "multiprocessor": None, "grid_id": None, "lane_index": None,
    "warp_in_warpgroup": None, "warpgroup_index": None, "globaltimer_ns": None, "globaltimer_low_ns": None,
    "clock_cycles": None, "clock_cycles_low": None, "bulk_copy_to_block": None,
    "exp2_approx": None, "tma_load_3d": None, "tma_store_3d": None,
}
DEFINITION = re.compile(r"^__device__ __forceinline__ [\w ]+?[*&]? ?(\w+)\(", re.MULTILINE)
INSTRUCTION = re.compile(r"((?:^///.*\n)+)(?:template <.*\n)?" + DEFINITION.pattern.removeprefix("^"), re.MULTILINE)
FILE = re.compile(r"^// ---- (?P<name>\S+): (?P<words>.*)$")


class WrongTable(Exception):
    """EXPLAINED_ON and common/ptx differ; in one line."""


def check_table(wrappers):
    missing, gone = sorted(wrappers - EXPLAINED_ON.keys()), sorted(EXPLAINED_ON.keys() - wrappers)
    if missing:
        raise WrongTable(f"docs/site/code_page.py: EXPLAINED_ON does not say where ptx::{missing[0]} is explained")
    if gone:
        raise WrongTable(f"docs/site/code_page.py: EXPLAINED_ON has {gone[0]}, and common/ptx has no such function")


def wrappers_of_ptx():
    return {name for path in (ROOT / "common/ptx").glob("*.cuh") for name in DEFINITION.findall(path.read_text(encoding="utf-8"))}


def names():
    """The lessons that there is a single file of."""
    return [path.name for path in lessons() if path.name in make_single_file.LESSONS]


CALL = re.compile(r"\b(?:ptx::)?(" + "|".join(sorted(EXPLAINED_ON, key=len, reverse=True)) + r")\b(?=&lt;|\()")


class Code:
    """The lines of one file as HTML."""

    def __init__(self, text, link):
        self.lines, self.link, self.calls = text.splitlines(), link, {}

    def row(self, index):
        number, text = index + 1, self.lines[index]
        shown = coloured(text)
        if not text.lstrip().startswith("//"):
            shown = CALL.sub(lambda call: self.linked(call, number), shown)
        return f'<div class="row" id="L{number}"><a class="number" href="#L{number}">{number}</a><code>{shown or " "}</code></div>'

    def linked(self, call, number):
        page = EXPLAINED_ON[call[1]]
        defines = self.lines[number - 1].startswith("__device__")
        if not defines:
            self.calls.setdefault(call[1], []).append(number)
        return f'<a class="instruction" href="{self.link(ROOT / page)}">{call[0]}</a>' if page else call[0]

    def rows(self, begin, end):
        """Lines [begin, end). What lies between a line at the margin that opens a brace and the line that closes it is folded."""
        result, at = [], begin
        while at < end:
            text = self.lines[at]
            opens = text.endswith("{") and not text.startswith((" ", "namespace", "//", "}")) or self.ends_signature(at)
            close = next((i for i in range(at + 1, end) if self.lines[i].startswith("}")), None) if opens else None
            if close is None or close == at + 1:
                result.append(self.row(at))
                at += 1
                continue
            body = "".join(self.row(i) for i in range(at + 1, close))
            result.append(f'<details open="open"><summary>{self.row(at)}</summary>{body}</details>')
            at = close
        return "".join(result)

    def ends_signature(self, at):
        """Whether this indented line is the last of a signature that began at the margin."""
        if not (self.lines[at].startswith("    ") and self.lines[at].endswith(") {")):
            return False
        while at > 0 and self.lines[at].startswith("    "):
            at -= 1
        return bool(re.match(r"(__global__|__device__|inline|template|static|void|int|constexpr)\b", self.lines[at])) and \
            not self.lines[at].endswith(("{", ";"))

    def heading(self, at):
        """The name of the file whose heading begins there, and the first sentence about it."""
        found = FILE.match(self.lines[at])
        if found["words"] == "the rest":
            return f"{found['name']}: the rest", ""
        words = [found["words"]]
        while self.lines[at + 1].startswith("// "):
            at += 1
            words.append(self.lines[at].removeprefix("// "))
        return found["name"], re.split(r"(?<=\.) ", " ".join(words))[0]

    def html(self, open_files):
        starts = [i for i, line in enumerate(self.lines) if FILE.match(line)]
        result = [f'<div class="lesson-code">{self.rows(0, starts[0])}']
        for begin, end in zip(starts, starts[1:] + [len(self.lines)]):
            name, words = self.heading(begin)
            opened = ' open="open"' if name in open_files else ""
            result.append(f'<details class="file"{opened}><summary><b>{name}</b> <span>{html.escape(words)}</span></summary>'
                          f'{self.rows(begin, end)}</details>')
        return "".join(result) + "</div>"


def instructions(text):
    """{function: the instruction that its comment begins with}"""
    found = {}
    for comment, name in INSTRUCTION.findall(text):
        quoted = re.search(r"`([^`]+)`", comment)
        if quoted:
            found[name] = quoted[1]
    return found


def page(lesson, link):
    """The page in Markdown, and its fragment."""
    number, text = lesson[:2], make_single_file.text_of(lesson)
    code = Code(text, link)
    body = code.html({f"{lesson}/gemm.cuh"})
    named, kernel = instructions(text), next(
        i for i, line in enumerate(code.lines, 1) if line.startswith(make_single_file.title(f"{lesson}/gemm.cuh")))
    rows = "".join(
        f"<tr><td>{name_link(name, link)}</td><td>{html.escape(named.get(name, ''))}</td><td>{line_links(lines)}</td></tr>"
        for name, lines in sorted(code.calls.items(), key=lambda call: call[1]) if EXPLAINED_ON[name])
    table = f"""
<details class="list"><summary>The instructions of this file, and where it calls them</summary>
<div class="scrolls"><table class="markdownTable">
<thead><tr><th>function</th><th>instruction</th><th>lines</th></tr></thead><tbody>{rows}</tbody>
</table></div></details>""" if rows else ""
    fragment = f"""
<div class="tool">
{table}
<div class="controls needs-script">
<button type="button" data-fold="open">unfold all</button><button type="button" data-fold="closed">fold all</button>
<a href="#L{kernel}">to the kernel</a></div>
{body}
</div>
<script src="tools/code.js" defer="defer"></script>
"""
    leads = " Names of instructions lead to the page that explains them." if rows else ""
    return (f"# {number} in one file {{#code_{number}}}\n\n"
            f'The kernel of <a href="lesson_{number}.html">lesson {number}</a> and all that it is made of, each part before those '
            "that use it, with a short program that verifies and times it. A line with a triangle folds what belongs to it."
            f"{leads} To take it home: `cmake --build build --target single_file_{number}`.\n\n"
            f"@htmlinclude[block] code_{number}.fragment.html\n", fragment)


def name_link(name, link):
    return f'<a class="instruction" href="{link(ROOT / EXPLAINED_ON[name])}"><code>{name}</code></a>'


def line_links(lines):
    return ", ".join(f'<a href="#L{line}">{line}</a>' for line in lines)
