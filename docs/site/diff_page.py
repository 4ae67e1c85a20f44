"""What a step changes in the kernel of the one that it builds on: the diff of two kernels as a page."""
import difflib
import html
import re
import sys

from site_files import ROOT

sys.path.insert(0, str(ROOT / "common/results"))
from lattice import diffs

CONTEXT = 4  # unchanged lines around a change
KEYWORDS = ("alignas auto bool break case char class const constexpr continue decltype do else enum extern false float for "
            "if inline int long namespace nullptr operator private public return sizeof static struct switch template this "
            "true typedef typename union unsigned using void volatile while __device__ __global__ __forceinline__ "
            "__launch_bounds__ __grid_constant__").split()
# In Doxygen's own classes, so that both show in the same colours.
TOKENS = re.compile(r"(?P<comment>//.*)|(?P<stringliteral>\"(?:[^\"\\]|\\.)*\")|(?P<preprocessor>^\s*#.*)|"
                    rf"(?P<keyword>\b(?:{'|'.join(KEYWORDS)})\b)")


def coloured(line):
    result, position = "", 0
    for token in TOKENS.finditer(line):
        result += html.escape(line[position:token.start()])
        result += f'<span class="{token.lastgroup}">{html.escape(token[0])}</span>'
        position = token.end()
    return result + html.escape(line[position:])


def number_cell(reference, path, line):
    if line is None:
        return "<td></td>"
    return f'<td class="number"><a href="{reference.source_page(path, line)}">{line}</a></td>'


def row(kind, old, new, text):
    mark = {"removed": "-", "added": "+", "same": " "}[kind]
    return f'<tr class="{kind}">{old}{new}<td class="mark">{mark}</td><td class="text">{coloured(text)}</td></tr>'


def fragment(step, base, reference):
    """The HTML of the diff: a row for each line, with its number in both files."""
    old_path, new_path = base.kernel.as_posix(), step.kernel.as_posix()
    old, new = ((ROOT / path).read_text(encoding="utf-8").splitlines() for path in (old_path, new_path))
    rows, behind = [], 0
    # Like the target's, without regard to white space.
    texts = [["".join(line.split()) for line in lines] for lines in (old, new)]
    for group in difflib.SequenceMatcher(None, *texts, autojunk=False).get_grouped_opcodes(CONTEXT):
        skipped = group[0][3] - behind
        if skipped:
            rows.append(f'<tr class="skipped"><td colspan="4">{skipped} lines that stay as they are</td></tr>')
        for kind, old_begin, old_end, new_begin, new_end in group:
            if kind == "equal":
                for i, j in zip(range(old_begin, old_end), range(new_begin, new_end)):
                    rows.append(row("same", number_cell(reference, old_path, i + 1), number_cell(reference, new_path, j + 1), new[j]))
                continue
            rows += [row("removed", number_cell(reference, old_path, i + 1), number_cell(None, None, None), old[i])
                     for i in range(old_begin, old_end)]
            rows += [row("added", number_cell(None, None, None), number_cell(reference, new_path, j + 1), new[j])
                     for j in range(new_begin, new_end)]
        behind = group[-1][4]
    if behind < len(new):
        rows.append(f'<tr class="skipped"><td colspan="4">{len(new) - behind} lines that stay as they are</td></tr>')
    return '<div class="diff"><table>' + "\n".join(rows) + "</table></div>\n"


def page(step, base):
    """The page around it, in Markdown."""
    return (f"# From {base.id} to {step.id}, line by line {{#{step.diff}}}\n\n"
            f"{step.cause[0].upper()}{step.cause[1:]}: what <a href=\"lesson_{step.id[:2]}.html\">{step.id}</a> changes in the "
            f'kernel of <a href="lesson_{base.id[:2]}.html">{base.id}</a>. Numbers of lines lead to the '
            f"whole file; the same text in a terminal: `cmake --build build --target {step.diff}`.\n\n"
            f"@htmlinclude[block] {step.diff}.fragment.html\n")
