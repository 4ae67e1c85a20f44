"""The lab on the site: each planted mistake with its diff, who notices it on which device, and the message word for word."""
import html
import sys

from diff_page import coloured
from site_files import ROOT, relative

sys.path[:0] = [str(ROOT / "common/results"), str(ROOT / "common/lab")]
import lab_table
import mistakes

OUTCOMES = {"caught": "noticed", "missed": "not noticed", "hang": "had to be killed", "broken": "the tool failed",
            "alarm": "noticed, as in the right kernel: worth nothing"}
TELLING = ("caught", "hang")  # what deserves the reader's eye


def anchor(lesson, name):
    return f"{mistakes.number_of(lesson)}_{name}"


def diff_rows(diff):
    """A row for each line."""
    for line in diff.splitlines():
        if line.startswith("--- "):
            continue
        if line.startswith("+++ "):
            yield f'<tr class="skipped"><td colspan="2">{html.escape(line[4:].removeprefix("b/"))}</td></tr>'
        elif line.startswith("@@"):
            yield f'<tr class="skipped"><td colspan="2">{html.escape(line)}</td></tr>'
        else:
            kind = {"+": "added", "-": "removed"}.get(line[:1], "same")
            yield f'<tr class="{kind}"><td class="mark">{line[:1]}</td><td class="text">{coloured(line[1:])}</td></tr>'


def words_of(finding):
    report = finding.get("report", finding.get("message", ""))
    return "\n".join(report) if isinstance(report, list) else report


def device_findings(device, row, outcomes, wanted):
    """What each detector of a device said: a fold for each message, that of `wanted` open; the silent ones in a line."""
    told, silent = [], {}
    for name, finding in row["findings"].items():
        outcome, words = outcomes[name], words_of(finding)
        if not words:
            silent.setdefault(outcome, []).append(name)
            continue
        opened = ' open="open"' if name == wanted else ""
        told.append(f'<details class="{outcome}"{opened}><summary><b>{html.escape(name)}</b>: {OUTCOMES[outcome]}</summary>'
                    f'<pre class="message">{html.escape(words)}</pre></details>')
    lines = [f'<p class="silent"><b>{html.escape(", ".join(names))}</b>: {OUTCOMES[outcome]}</p>'
             for outcome, names in silent.items()]
    return f"<h4>{html.escape(device)}</h4>" + "".join(told + lines)


def opened_detector(row, outcomes, notice):
    """The one that should notice the mistake; on a device that does not have it, the first that says something."""
    telling = [name for name, finding in row["findings"].items() if outcomes[name] in TELLING and words_of(finding)]
    return notice if notice in telling else next(iter(telling), None)


def section(mistake, halves):
    title = mistake.name.replace("_", " ")
    found = []
    for results, rows, outcomes in halves:
        row, device = rows.get((mistake.lesson, mistake.name), (None, None))
        if row is None:
            found.append(f"<h4>{html.escape(results['device'])}</h4><p>Not tried yet.</p>")
            continue
        here = outcomes[mistake.lesson, mistake.name]
        found.append(device_findings(device, row, here, opened_detector(row, here, mistake.notice)))
    run = " ".join([f"build-cpu/bin/{mistake.program}", *mistake.run])
    return (f'<section class="mistake" id="{anchor(mistake.lesson, mistake.name)}" data-lesson="{mistake.lesson}" '
            f'data-title="{title}"><h3>{mistake.number} {title}</h3>'
            f'<p>{html.escape(mistake.mistake)} <span class="facts">Kind: {mistake.kind}.</span></p>'
            f'<div class="diff"><table>{"".join(diff_rows(mistake.diff))}</table></div>'
            f'<p class="facts"><code>{html.escape(run)}</code>, the patch: <code>{relative(mistake.file)}</code>, line {mistake.line}</p>'
            f'{"".join(found)}</section>\n')


def page():
    """The page in Markdown, and its fragment."""
    planted = mistakes.read_mistakes()
    halves = []
    for half in lab_table.HALVES:
        results = lab_table.newest(ROOT / "docs/results/lab", half)
        if results:
            rows = {lab_table.key(row): (row, part["device"]) for part in results["parts"] for row in part["mistakes"]}
            halves.append((results, rows, lab_table.outcomes_of(results)))
    lessons = "".join(f"<option>{lesson}</option>" for lesson in dict.fromkeys(mistake.lesson for mistake in planted))
    fragment = f"""
<div class="tool">
<div class="controls needs-script">
<label for="mistakes-lesson">Lesson</label><select id="mistakes-lesson">{lessons}</select>
<label for="mistakes-choice">Mistake</label><select id="mistakes-choice"></select>
<button type="button" id="mistakes-before">previous</button><button type="button" id="mistakes-next">next</button>
</div>
{"".join(section(mistake, halves) for mistake in planted)}
</div>
<script src="tools/mistakes.js" defer="defer"></script>
"""
    recorded = "; ".join(dict.fromkeys(f"{part['device']}, {part['date']}, commit <code>{part['commit'][:12]}</code>"
                                       for results, _, _ in halves for part in results["parts"]))
    text = ("# The lab: choose a mistake {#mistakes}\n\n"
            f"{len(planted)} mistakes are planted in the lessons. For each: what it changes, which detector notices it on which device, "
            "and what the detector says, word for word. Read the diff first, and guess. <a href=\"lab.html\">The handshake "
            "lab</a> explains the detectors and counts.\n\n"
            "@htmlinclude[block] mistakes.fragment.html\n\n"
            f"Recorded: {recorded}. Where a recording has only the beginning of a message, the message ends there.\n")
    return text, fragment
