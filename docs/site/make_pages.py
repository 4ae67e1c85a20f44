#!/usr/bin/env python3
"""Turns the repository's Markdown into the pages of the site, in the order of its navigation.

    make_pages.py --list-sources OUTPUT_FOLDER                    what Doxygen reads for the reference
    make_pages.py --reference TAG_FILE --html HTML_FOLDER OUTPUT_FOLDER

Pages are written to be read on a git host. For Doxygen each gets a name, its headings get anchors, links to other pages,
to sources and to code in backticks lead to where Doxygen puts them, `<!-- snippet: FILE NAME -->` becomes \\snippet, and
`<!-- figure: NAME -->` the picture that make_figures.py has drawn. Other files that are linked are copied to the site.
Pages with scripts (live_pages.py, mistake_page.py, code_page.py) are made here, too, and linked from the pages that
they belong to. inputs.doxy, which Doxyfile includes, lists the result. Exit code 2: bad input, one line.
"""
import argparse
import html
import json
import re
import shutil
import sys
from pathlib import Path

import code_page
import diff_page
import lab_page
import live_pages
import mistake_page
import site_files
from site_files import ROOT, relative

REPOSITORY_PAGES = {"README.md": "index", "CONTRIBUTING.md": "contributing", "common/README.md": "common",
                    "common/cpu_device/README.md": "cpu_device", "docs/results/README.md": "results",
                    "docs/concepts.md": "concepts"}
LARGE = 400_000  # bytes of a record that stays in the repository
LESSON = re.compile(r"(\d\d)_[^/]*/(\w+)\.md$")  # its page, and where it has two the second
FENCE = re.compile(r"^(\s*)```(\w*)\s*$")
HEADING = re.compile(r"^(#+) +(.*?)(?: +\{#([\w-]+)\})? *$")
LINK = re.compile(r'\[((?:[^\[\]]|`[^`]*`)*)\]\(([^()\s]+)(?: "\w+")?\)')  # perhaps with a title
IMAGE = re.compile(r"!\[([^\[\]]*)\]\(([^()\s]+)\)")
CODE = re.compile(r"(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
FIGURE = re.compile(r"^<!-- figure: (\S+) -->$")
SNIPPET = re.compile(r"^<!-- snippet: (\S+) (\S+) -->$")
FOLD = re.compile(r"^(<details><summary>[^<]*</summary>|</details>)$")
NEXT = re.compile(r"^Next: <a [^\n]*\n?", re.MULTILINE)
SNIPPET_END = "<!-- end -->"
SYMBOL = re.compile(r"^(?=.*[A-Z_:(])(?:[A-Za-z_]\w*::)*[A-Za-z_]\w*(?:\(\))?$")  # plain words are knobs, not code


class BadInput(Exception):
    """What is wrong with a page, in one line."""


def label_of(page):
    """The page's name in the site: its URL without .html."""
    path = relative(page)
    if path in REPOSITORY_PAGES:
        return REPOSITORY_PAGES[path]
    if lesson := LESSON.match(path):
        return f"lesson_{lesson[1]}" + (f"_{lesson[2]}" if lesson[2] != "README" else "")
    deeper = re.match(r"(\d\d)_[^/]*/deeper/(\w+)\.md$", path)
    if deeper:
        return f"deeper_{deeper[1]}_{deeper[2]}"
    room = re.match(r"((?:common|\d\d_[^/]*)/.*)/README\.md$", path)
    if room:
        return f"room_{re.sub(r'[^A-Za-z0-9]', '_', room[1])}"
    given = HEADING.match(page.read_text(encoding="utf-8").partition("\n")[0])
    if given and given[3]:
        return given[3]
    return re.sub(r"\W+", "_", path.removesuffix(".md").removesuffix("/README").removeprefix("docs/"))


def slug(title):
    """The anchor that git hosts give a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def title_of(page):
    for line in page.read_text(encoding="utf-8").splitlines():
        heading = HEADING.match(line)
        if heading:
            return heading[2]
    raise BadInput(f"{relative(page)}: has no title")


class Site:
    """All pages, and what links between them become."""

    def __init__(self, reference, html_folder, figures):
        self.reference, self.html_folder, self.figures = reference, html_folder, figures
        self.pages = site_files.pages()
        self.labels = {page: label_of(page) for page in self.pages}
        if len(set(self.labels.values())) != len(self.labels):
            raise BadInput("two pages have the same name: " + ", ".join(sorted(self.labels.values())))
        self.live = LivePages(self)

    def link(self, page, target):
        """Where a link of a page leads in the site; None where the site does without the file."""
        if re.match(r"[a-z]+:", target):
            return target
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or not file.is_relative_to(ROOT):
            raise BadInput(f"{relative(page)}: the link '{target}' leads to nothing")
        if file.is_file() and file.stat().st_size > LARGE:
            return None
        return self.place(file, anchor)

    def place(self, file, anchor=""):
        """Where the site shows a file or folder of the repository."""
        if file.is_dir() and (file / "README.md") in self.labels:
            file = file / "README.md"
        if mistakes := self.live.mistakes.get(file):
            return f"mistakes.html#{mistakes.get(anchor, next(iter(mistakes.values())))}"
        if file in self.labels:
            label = self.labels[file]
            return f"{label}.html" + (f"#{label}_{anchor}" if anchor else "")
        if file.is_dir():
            return self.folder_page(file)
        return self.reference.source_page(relative(file)) or self.copied(file)

    def folder_page(self, folder):
        return f"folder_{re.sub(r'[^A-Za-z0-9]', '_', relative(folder))}.html"

    def copied(self, file):
        """A file that is neither page nor source goes along as it is; as text, unless browsers know what it is or save it."""
        name = relative(file) + ("" if file.suffix in (".json", ".svg", ".png", ".ipynb") else ".txt")
        to = self.html_folder / "files" / name
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, to)
        return f"files/{name}"

    def code(self, page, span):
        """Code in backticks, as a link where it names something of the reference."""
        lesson = re.match(r"(\d\d)_", relative(page))
        name = span.removesuffix("()")
        place = SYMBOL.match(span) and self.reference.place_of(name, f"lesson{lesson[1]}" if lesson else "")
        text = code_span(span)
        return f'<a class="code-link" href="{place}">{text}</a>' if place else text

    def prose(self, page, text):
        """A paragraph outside of code blocks. Links may hold code, code holds no links."""
        def code_outside_links(part):
            return CODE.sub(lambda match: self.code(page, match[2]), part)

        text = IMAGE.sub(lambda match: self.image(page, match[1], match[2]), text)
        result, position = "", 0
        for match in LINK.finditer(text):
            if any(span.start() < match.start() < span.end() for span in CODE.finditer(text)):
                continue
            label = CODE.sub(lambda code: code_span(code[2]), match[1])
            result += code_outside_links(text[position:match.start()])
            address = self.link(page, match[2])
            result += f'<a href="{address}">{label}</a>' if address else f"{label} (in the repository)"
            position = match.end()
        return result + code_outside_links(text[position:])

    def image(self, page, words, target):
        drawn = ' class="drawn"' if target.endswith(".svg") else ""
        return f'@htmlonly<img{drawn} src="{self.link(page, target)}" alt="{html.escape(words)}"/>@endhtmlonly'

    def figure(self, page, name):
        if name not in self.figures:
            raise BadInput(f"{relative(page)}: there is no figure '{name}'; there are {', '.join(self.figures)}")
        facts = self.figures[name]
        images = "".join(f'<picture><source media="(max-width: 1099px)" srcset="figures/{name}.phone.{theme}.svg"/>'
                         f'<img class="on-{theme}" src="figures/{name}.{theme}.svg" alt="{html.escape(facts["alt"])}"/></picture>'
                         for theme in ("light", "dark"))
        sources = ", ".join(f'<a href="{self.copied(ROOT / path)}">{path}</a>' for path in facts["sources"])
        return ["", "@htmlonly[block]", f'<figure class="{facts["width"]}">{images}',
                f"<figcaption>{facts['caption']} Drawn from {sources}.</figcaption></figure>", "@endhtmlonly", ""]


class LivePages:
    """The pages that are made from recorded data and sources for a reader with scripts, and the links to them."""

    def __init__(self, site):
        self.site = site
        self.mistakes, self.with_mistakes = {}, {}
        for planted in mistake_page.mistakes.read_mistakes():
            name = mistake_page.anchor(planted.lesson, planted.name)
            self.mistakes.setdefault(planted.file, {})[f"L{planted.line}"] = name
            self.with_mistakes.setdefault(planted.number, name)
        self.with_code = [lesson[:2] for lesson in code_page.names()]

    def labels(self):
        return ["bench", "timelines", "mistakes", *[f"code_{number}" for number in self.with_code]]

    def write(self, output):
        """@returns the pages; their scripts and data go to the site."""
        code_page.check_table(code_page.wrappers_of_ptx())
        tools = self.site.html_folder / "tools"
        tools.mkdir(exist_ok=True)
        for script in sorted((Path(__file__).parent / "tools").glob("*.js")):
            shutil.copyfile(script, tools / script.name)
        text, fragment, data = live_pages.timelines_page(self.site.place)
        (tools / "timelines_data.js").write_text(data, encoding="utf-8")
        made = {"timelines": (text, fragment), "bench": live_pages.bench_page(self.site.place),
                "mistakes": mistake_page.page()}
        made |= {f"code_{lesson[:2]}": code_page.page(lesson, self.site.place) for lesson in code_page.names()}
        for label, (_, fragment) in made.items():
            (output / f"{label}.fragment.html").write_text(fragment, encoding="utf-8")
        return [write_page(output, label, made[label][0]) for label in self.labels()]

    def links(self, label):
        """The line below a page's title that leads to its live pages. A git host does not have them, so pages do not link there."""
        found = live_pages.links(label, self.with_code, self.with_mistakes)
        words = " · ".join(f'<a href="{address}">{name}</a>' for name, address in found)
        return ["", "@htmlonly[block]", f'<p class="on-the-site">On this site: {words}</p>', "@endhtmlonly", ""] if found else []


def code_span(code):
    """Code in backticks, as Doxygen takes it: a single quote would end a span of one backtick."""
    marks = "``" if "'" in code else "`"
    return marks + " ".join(code.split()) + marks


def lesson_number(page):
    match = LESSON.match(relative(page))
    return match[1] if match else None


def page_of_step(step, lessons):
    """Of a lesson's pages the first that links to the step's kernel."""
    its = [page for page in lessons if lesson_number(page) == step.id[:2]]
    return next((page for page in its if f"]({(ROOT / step.kernel).relative_to(page.parent)})" in page.read_text(encoding="utf-8")), its[-1])


def converted(site, page, children):
    """The page's text for Doxygen. `children` are the names of the pages below it in the navigation."""
    label, lines = site.labels[page], page.read_text(encoding="utf-8").splitlines()
    lines = lab_page.folded(lines) if label == "lab" else lines
    number = lesson_number(page)
    result, paragraph, fence, indented, skipping, blank, title_seen = [], [], None, False, False, True, False
    for line in lines + [""]:
        if paragraph and ends_paragraph(line):
            result += site.prose(page, "\n".join(paragraph)).split("\n")
            paragraph = []
        if skipping:  # the text of a snippet: Doxygen puts in its own
            skipping = line != SNIPPET_END
            continue
        opening = FENCE.match(line)
        if opening:
            fence = None if fence is not None else opening[1]
            result.append(line if fence is None or opening[2] else f"{opening[1]}```{{.unparsed}}")
            continue
        if fence is not None:
            result.append(line)
            continue
        indented = line.startswith("    ") and (blank or indented) and not in_list(result)
        blank = not line.strip()
        snippet, figure, heading = SNIPPET.match(line), FIGURE.match(line), HEADING.match(line)
        if blank or indented:
            result.append(line)
        elif FOLD.match(line):
            result += lab_page.raw(line.replace("<details>", '<details class="fold">'))
        elif snippet:
            result += ["", f"\\snippet {snippet[1]} {snippet[2]}", ""]
            skipping = True
        elif figure:
            result += site.figure(page, figure[1])
        elif heading and not title_seen:
            title_seen = True
            # The main page has its title from Doxyfile.
            result += [f"# {plain(heading[2])} {{#{'mainpage' if label == 'index' else label}}}"] + site.live.links(label)
        elif heading:
            if number and heading[2].startswith("Predict"):
                result += made_of(site, page)
            if number and heading[2] in ("Walk through", "Measure"):
                result += change_link(children)
                children = []
            result += ["", heading_of(len(heading[1]), f"{label}_{heading[3] or slug(heading[2])}", site.prose(page, heading[2])), ""]
        else:
            paragraph.append(line)
    return "\n".join(result + paragraph) + "\n"


def ends_paragraph(line):
    """Links and code may go over the end of a line, not over these."""
    return not line.strip() or FENCE.match(line) or HEADING.match(line) or FOLD.match(line) or line.startswith(("<!--", "|"))


def heading_of(level, anchor, text):
    """Not Markdown's: Doxygen would put it into the navigation, between the pages."""
    return f'<h{level} id="{anchor}">{text}</h{level}>'


def plain(title):
    return title.replace("`", "")


def in_list(lines):
    """Whether what stands above belongs to an item of a list, whose paragraphs are indented too."""
    for line in reversed(lines):
        if line.strip():
            return bool(re.match(r"\s*([-*]|\d+\.) ", line)) or line.startswith("  ") and not line.startswith("    ")
    return False


def change_link(children):
    diffs = [child for child in children if child.startswith("diff_")]
    steps = {step.diff: (step, base) for step, base in diff_page.diffs()}
    return [f'<a class="to-diff" href="{diff}.html">From {steps[diff][1].id} to {steps[diff][0].id}, line by line: '
            f"{steps[diff][0].cause}</a><br>" for diff in diffs] + [""]


def made_of(site, page):
    """The headers that the lesson's kernel includes, each with the sentence that says its purpose."""
    kernel = page.parent / "gemm.cuh"
    if not kernel.exists():
        return []
    lines = []
    for include in re.findall(r'#include "([^"]+)"', kernel.read_text(encoding="utf-8")):
        if (ROOT / include).exists():
            place = site.place(ROOT / include)
            lines.append(f'- <a href="{place}">{code_span(include)}</a>: {purpose(ROOT / include)}')
    return [*lab_page.raw('<details class="fold"><summary>Made of</summary>'), *lines, "", *lab_page.raw("</details>")] if lines else []


def purpose(header):
    """The first sentence of the header's @file comment."""
    text = header.read_text(encoding="utf-8").partition("/// @file\n")[2]
    words = " ".join(line.removeprefix("///").strip() for line in text.split("\n\n")[0].splitlines()
                     if line.startswith("///"))
    sentence = re.split(r"(?<=[.:]) ", words)[0].rstrip(".:")
    return sentence + "."


# --- Navigation -----------------------------------------------------------------------------------------------------


class Section:
    """A page with pages below it. A page of the repository is its index, else one is made."""

    def __init__(self, label, title, words, children):
        self.label, self.title, self.words, self.children = label, title, words, children


def order_of_links(index, pages):
    """Pages in the order in which the index page links them, the others behind."""
    text = index.read_text(encoding="utf-8") if index.exists() else ""
    places = {(index.parent / target.partition("#")[0]).resolve(): place
              for place, target in reversed(list(enumerate(match[2] for match in LINK.finditer(text))))}
    return sorted(pages, key=lambda page: (places.get(page, len(places)), page))


def below(site, pattern):
    return [page for page in site.pages if re.match(pattern, relative(page))]


def sections(site):
    """The navigation: names of pages below the start page, and the sections among them."""
    lessons = [page for page in site.pages if lesson_number(page)]
    index = ROOT / "docs/concepts.md"
    concepts = order_of_links(index, below(site, r"docs/concepts/"))
    names = lambda pages: [site.labels[page] for page in pages]
    made = []
    if concepts:
        made.append(Section("concepts", "Concepts", "What several lessons use, each explained once.", names(concepts)))
    made.append(Section("live", "Try it", "Change the times of a pipeline, look into a recorded timeline, choose a mistake, unfold a "
                        "lesson's code.", site.live.labels()))
    taken = {child for section in made for child in section.children} | {section.label for section in made} | {"index", *names(lessons)}
    others = [label for label in site.labels.values() if label not in taken]
    ordered = ["cpu_device", "cost_model", "sanitizers", "results", "decisions", "common", "contributing"]
    top = names(lessons) + [section.label for section in made] + [label for label in ordered if label in others]
    # What has no place yet: write_site hangs rooms below their folder's page, and ends the list with the others.
    rest = [label for label in others if label not in top]
    return made, top, rest


def page_above(site, page):
    """Of a page below a lesson or common/: the README of the nearest folder above it that has one."""
    folders = [folder for folder in page.parents if folder.is_relative_to(ROOT) and folder != ROOT]
    indexes = [folder / "README.md" for folder in folders]
    above = [index for index in indexes if index in site.labels and index != page]
    return above[0] if above and not relative(page).startswith("docs/") else None


def subpages(names):
    return ["", *[f"- @subpage {name}" for name in names], ""] if names else []


def neighbours(site, lessons, at):
    """Links to the lessons before and behind, instead of the line of the page on a git host."""
    links = [f'<a rel="{name}" href="{site.labels[lessons[i]]}.html">{words.format(html.escape(plain(title_of(lessons[i]))))}</a>'
             for i, name, words in ((at - 1, "prev", "← {}"), (at + 1, "next", "{} →")) if 0 <= i < len(lessons)]
    return "\n".join(["", "@htmlonly[block]", f'<nav class="neighbours">{"".join(links)}</nav>', "@endhtmlonly", ""])


def hidden(lines):
    """For Doxygen's navigation alone: the page has links of its own to the pages below it."""
    return ["", "@htmlonly[block]", '<div class="for-navigation">', "@endhtmlonly", *lines, "@htmlonly[block]", "</div>",
            "@endhtmlonly", ""]


def write_site(site, output):
    made, top, rest = sections(site)
    by_label = {section.label: section for section in made}
    diffs = diff_page.diffs()
    below_page, lessons = {}, [page for page in site.labels if lesson_number(page)]
    for page, label in site.labels.items():
        below_page[label] = [step.diff for step, _ in diffs if page_of_step(step, lessons) == page]
    for index in site.pages:
        rooms = [page for page in site.pages if site.labels[page] in rest and page_above(site, page) == index]
        below_page[site.labels[index]] += [site.labels[page] for page in order_of_links(index, rooms)]
        rest = [label for label in rest if label not in below_page[site.labels[index]]]
    below_page["common"] += [site.folder_page(folder).removesuffix(".html") for folder in linked_folders(site)]

    written = []
    for page, label in site.labels.items():
        text = converted(site, page, below_page[label])
        if page in lessons:
            text = NEXT.sub("", text) + neighbours(site, lessons, lessons.index(page))
        if label == "index":
            text += "\n".join(["", heading_of(2, "index_all-pages", "All pages"), *subpages(top + rest + ["sources"])])
        elif label in by_label:
            text += "\n".join(hidden(subpages(by_label[label].children)))
        elif below_page[label]:
            text += "\n".join(hidden(subpages(below_page[label])))
        written.append(write_page(output, label, text))
    for section in made:
        if section.label not in site.labels.values():
            text = "\n".join([f"# {section.title} {{#{section.label}}}", "", section.words, *subpages(section.children)])
            written.append(write_page(output, section.label, text))
    for step, base in diffs:
        (output / f"{step.diff}.fragment.html").write_text(diff_page.fragment(step, base, site.reference), encoding="utf-8")
        written.append(write_page(output, step.diff, diff_page.page(step, base)))
    written += site.live.write(output)
    for folder in linked_folders(site):
        written.append(write_folder(site, output, folder))
    return written + [write_sources(site, output), write_namespaces(output)]


def write_sources(site, output):
    """The list of all files that the site shows, by folder, each with the sentence that says its purpose."""
    lines, folder = ["# Sources {#sources}", "", "Kernels, and what they are made of. Programs, tests and the CPU device are in the repository."], None
    for file in site_files.shown_sources():
        if file.parent != folder:
            folder = file.parent
            lines += ["", heading_of(2, "sources_" + re.sub(r"\W", "_", relative(folder)), f"{relative(folder)}/"), ""]
        lines.append(f'- <a href="{site.reference.source_page(relative(file))}">{code_span(file.name)}</a>: {purpose(file)}')
    return write_page(output, "sources", "\n".join(lines) + "\n")


def write_namespaces(output):
    """What each namespace is for. Doxygen shows only those of which something is said."""
    said = {"ladder": "What lessons share: what kernels are made of, and what runs, verifies and measures them.",
            "ptx": "Inline assembler, one function for each instruction. On the CPU device its shadows stand in.",
            "cpu_device": "The emulator that runs kernels without a GPU."}
    for page in site_files.pages():
        if page.name == "README.md" and lesson_number(page):
            said[f"lesson{lesson_number(page)}"] = f"The kernel of lesson {plain(title_of(page))}."
    path = output / "namespaces.dox"
    path.write_text("".join(f"/// @namespace {name}\n/// {words}\n\n" for name, words in said.items()), encoding="utf-8")
    return path


def linked_folders(site):
    folders = set()
    for page in site.pages:
        for match in LINK.finditer(page.read_text(encoding="utf-8")):
            target = (page.parent / match[2].partition("#")[0]).resolve()
            if target.is_dir() and target.is_relative_to(ROOT) and target / "README.md" not in site.labels:
                folders.add(target)
    return sorted(folders)


def write_folder(site, output, folder):
    """A page that lists a folder's files: what a git host shows for it."""
    label = site.folder_page(folder).removesuffix(".html")
    lines = [f"# {relative(folder)}/ {{#{label}}}", ""]
    for file in sorted(folder.iterdir()):
        if file.is_file() and not file.name.startswith("."):
            place = site.place(file)
            words = f": {purpose(file)}" if file.suffix in site_files.SOURCE_SUFFIXES else ""
            lines.append(f'- <a href="{place}">{code_span(file.name)}</a>{words}')
    return write_page(output, label, "\n".join(lines) + "\n")


def write_page(output, label, text):
    path = output / f"{label}.md"
    path.write_text(text, encoding="utf-8")
    return path


def write_inputs(path, files, main_page=None, silent=()):
    lines = ["INPUT = \\"] + [f'  "{file}" \\' for file in files] + [""]
    if main_page:
        lines.append(f'USE_MDFILE_AS_MAINPAGE = "{main_page}"')
    if silent:
        lines.append("EXCLUDE_SYMBOLS = " + " ".join(f"{name} {name}::*" for name in silent))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list-sources", action="store_true",
                        help="only write inputs.doxy, the sources that the site shows, and sources.doxy, all that must have words")
    parser.add_argument("--reference", type=Path, help="Doxygen's tag file of the sources")
    parser.add_argument("--html", type=Path, help="the folder of the site")
    parser.add_argument("output", type=Path, help="the folder for pages")
    arguments = parser.parse_args()
    if arguments.list_sources:
        namespaces = write_namespaces(arguments.output)
        write_inputs(arguments.output / "inputs.doxy", [*site_files.shown_sources(), namespaces],
                     silent=site_files.silent_namespaces())
        write_inputs(arguments.output / "sources.doxy", [*site_files.sources(), namespaces])
        return 0
    figures = json.loads((arguments.html / "figures/figures.json").read_text(encoding="utf-8"))
    site = Site(site_files.Reference(arguments.reference), arguments.html, figures)
    arguments.output.mkdir(parents=True, exist_ok=True)
    for old in arguments.output.glob("*.md"):
        old.unlink()
    written = write_site(site, arguments.output)
    write_inputs(arguments.output / "inputs.doxy", written + site_files.shown_sources(), arguments.output / "index.md",
                 site_files.silent_namespaces())
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (BadInput, code_page.WrongTable, live_pages.WrongTable) as error:
        print(f"make_pages.py: error: {error}", file=sys.stderr)
        sys.exit(2)
