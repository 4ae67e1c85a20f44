"""The handshake lab on the site: the long tables of docs/lab.md folded by lesson, with a filter (tools/lab.js).

Without scripts the folds open by hand, and the filter is not shown.
"""
import html
import re

TABLE_BEGIN, TABLE_END = re.compile(r"^<!-- lab: (matrix|messages|mutants) -->$"), "<!-- end -->"
SURVIVORS = "| file | mutant |"
MISTAKE = re.compile(r"^\| \[(\w+) ")
DEVICE = re.compile(r"^on (?:the |an )(.*)$")
NOTICED = ("yes", "hang")
FOLD_END = "</details>"  # make_pages.py passes such a line on as HTML
TITLES = {"any": "06, any shape"}

FILTER = """<div class="tool lab-filter needs-script">
<div class="controls">
<label for="lab-words">With the words</label><input type="search" id="lab-words" size="16"/>
<label for="lab-lesson">of lesson</label><select id="lab-lesson"><option value="">any</option></select>
<label for="lab-detector">noticed by</label><select id="lab-detector"><option value="">anything</option></select>
</div>
<p class="facts" id="lab-count" aria-live="polite"></p>
</div>"""


def raw(text):
    return ["", "@htmlonly[block]", text, "@endhtmlonly", ""]


def cells(row):
    return [cell.strip() for cell in row.strip().strip("|").split("|")]


def group(lesson, header, rule, rows):
    """The lesson's rows as a table of their own in a fold, which says how many they are."""
    names, facts = cells(header), f"{len(rows)} mistake{'s' * (len(rows) > 1)}"
    device = DEVICE.match(names[0])
    if device:
        noticed = sum(any(cell in NOTICED for cell in cells(row)) for row in rows)
        facts += f", {noticed} noticed on the {device[1]}"
    about = f' data-device="{html.escape(device[1])}"' if device else ""
    return [*raw(f'<details class="lab-group" data-lesson="{lesson}"{about}><summary><b>{TITLES.get(lesson, lesson)}</b>: '
                 f"{facts}</summary>"), header, rule, *rows, "", FOLD_END]


def folded(lines):
    """The page's lines, with a fold for each lesson of a table that has a row for each mistake."""
    result, table, groups, at = [], None, {}, 0
    while at < len(lines):
        begin = TABLE_BEGIN.match(lines[at])
        if begin and begin[1] == "matrix":
            result += raw(FILTER)
        table = begin[1] if begin else table if lines[at] != TABLE_END else None
        if table and MISTAKE.match(lines[at + 2] if at + 2 < len(lines) and lines[at].startswith("| ") else ""):
            header, rule, groups, at = lines[at], lines[at + 1], {}, at + 2
            while at < len(lines) and MISTAKE.match(lines[at]):
                groups.setdefault(MISTAKE.match(lines[at])[1], []).append(lines[at])
                at += 1
            for lesson, rows in groups.items():
                result += group(lesson, header, rule, rows)
            continue
        if table and lines[at].startswith(SURVIVORS):
            end = next(i for i in range(at, len(lines)) if not lines[i].startswith("|"))
            result += [*raw(f'<details class="lab-rows"><summary>All {end - at - 2}</summary>'), *lines[at:end], "", FOLD_END]
            at = end
            continue
        result.append(lines[at])
        at += 1
    return result + raw('<script src="tools/lab.js" defer="defer"></script>')
