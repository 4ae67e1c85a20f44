#!/usr/bin/env python3
"""Takes out of the site what Doxygen makes in any case and no reader misses, and puts pages first in the search.

    finish_site.py HTML_FOLDER [URL]

A file's page repeats what its text says, so links lead to the text, unless a macro or such is described on the page. Folders
have the page of all sources. Pages that no link leads to then go. The search has two lists, all and pages; it finds a page
by each word of its title. The menu of a phone gets the lessons. Every page says what it is about to those that show a link to
it; they get a picture where URL, the address of the site, is known. Run once, after Doxygen.
"""
import html
import json
import re
import sys
from pathlib import Path

ADDRESS = re.compile(r"""["'](?:\.\./)?([\w./-]+\.html)((?:#[^"']*)?)["']""")
FILE_PAGE = re.compile(r"_8\w+(?<!_source)\.html$")
ALL_MEMBERS = re.compile(r'(?: &#124;\n)?<a href="[\w-]+-members\.html">List of all members</a>')
ENTRY = re.compile(r"^  \['(?P<id>.*?)',\['(?P<rest>.*)\]\],?$", re.MULTILINE)
TITLE_AND_ADDRESS = re.compile(r"^(?P<title>.*?)',\['\.\./(?P<address>[^']+)'")
TITLE = re.compile(r"<title>(?:Kernel Ladder: )?(.*?)</title>")
PARAGRAPH = re.compile(r"<p\b[^>]*>(.*?)</p>", re.DOTALL)
SHOWN_OF_LINKS = 200  # characters
LOW = 500  # pixels: the height of a screen that has no room for the navigation
FRAGMENT = re.compile(r'<div class="fragment">(.*?)</div><!-- fragment -->', re.DOTALL)
INDENTED = re.compile(r'<pre class="fragment">(.*?)</pre>', re.DOTALL)
LINE = re.compile(r'<div class="line">( *)(?!\s|</div>)')
PERCENT = re.compile(r"(?<=\d) %(?=[\s<.,;:)])")
CODE = re.compile(r'<span class="(?:keyword\w*|comment|preprocessor|stringliteral)">')
COMMAND = re.compile(r"(?:\w+=\S+ )*(?:cmake|ctest|nvcc|bash|python3|git|cd|(?:build[\w-]*/bin|common|docs|\.ci)/\S+)(?: |$)")
CELL = re.compile(r"<td\b.*?</td>", re.DOTALL)
NAME = re.compile(r"(?<=<code>)[\w:.]+(?=[<(])")
OPTION = re.compile(r"(?<=[ >])--?\w[^\s<]*")
WHOLE = r'<span class="word">\g<0></span>'  # a word that does not break behind a hyphen
LONG_COMMAND = re.compile(r"<code>(?=[^<]* )([^<]{30,})</code>")
REPORT = re.compile(r">(?:[^<>]*: )?(?:\d+ )?(?:errors?|warning): |>(?:block|warps?) [^<>]* waited |>race in ")
LISTS_OF_SEARCH = ("all", "pages")
UNSEARCHED = {"a", "an", "and", "as", "at", "by", "for", "how", "in", "is", "it", "its", "not", "of", "on", "one", "or", "that", "the",
              "to", "what", "with"}


def read(path):
    return path.read_text(encoding="utf-8")


def scripts(folder):
    """Those that hold addresses: the navigation and the search."""
    return [*folder.glob("*.js"), *folder.glob("search/*.js")]


# --- Pages ----------------------------------------------------------------------------------------------------------


def repeated_pages(folder):
    """{page: where links to it lead instead}"""
    described = {name for path in [*folder.glob("*.html"), *scripts(folder)] for name, anchor in ADDRESS.findall(read(path)) if anchor}
    instead = {path.name: "sources.html" for path in folder.glob("dir_*.html")}
    for path in folder.glob("*_8*.html"):
        source = path.name.replace(".html", "_source.html")
        if FILE_PAGE.search(path.name) and path.name not in described and (folder / source).exists():
            instead[path.name] = source
    return instead


def take_out_repeated_pages(folder):
    instead = repeated_pages(folder)
    for name in instead:
        (folder / name).unlink()
    for path in [*folder.glob("*.html"), *scripts(folder)]:
        text = old = read(path)
        text = ADDRESS.sub(lambda found: found[0].replace(found[1], instead.get(found[1], found[1])), text)
        text = ALL_MEMBERS.sub("", text).replace(f'<a href="{path.name}">Go to the documentation of this file.</a>', "")
        if text != old:
            path.write_text(text, encoding="utf-8")


def take_out_unlinked_pages(folder):
    pages = {path.name: path for path in folder.glob("*.html")}
    reached = set()
    ahead = {"index.html"} | {name for path in scripts(folder) for name, _ in ADDRESS.findall(read(path))}
    while ahead:
        name = ahead.pop()
        if name in pages and name not in reached:
            reached.add(name)
            ahead |= {linked for linked, _ in ADDRESS.findall(read(pages[name]))}
    for name in pages.keys() - reached:
        pages[name].unlink()


# --- Phones ----------------------------------------------------------------------------------------------------------


def treat_low_screens_as_phones(folder):
    """A phone on its side has room for a page, but none for the navigation beside it."""
    for path in folder.glob("*.css"):
        text = read(path)
        text = re.sub(r"@media (screen and )?\(max-width: 767px\)", rf"\g<0>, \g<1>(max-height: {LOW}px)", text)
        text = re.sub(r"\(min-width: ?768px\)", rf"\g<0> and (min-height: {LOW + 1}px)", text)
        path.write_text(text, encoding="utf-8")
    menu = folder / "menu.js"
    menu.write_text(read(menu).replace("$(window).outerWidth()<768", f"matchMedia('(max-width: 767px), (max-height: {LOW}px)').matches"), encoding="utf-8")


def kind_of_listing(inside):
    """A report, a program or commands, which wrap on a phone, or none: columns of text, which scroll."""
    lines = [html.unescape(re.sub("<[^>]*>", "", line)) for line in re.findall(r'<div class="line">(.*?)</div>', inside)]
    if REPORT.search(inside):
        return " report"
    if CODE.search(inside):
        return " program"
    return " commands" if all(COMMAND.match(line) for line in lines if line) else ""


def marked_listing(found):
    """Code begins at the left edge. A phone sets each line's indentation itself: a line that goes on stands behind it, and one that
    is aligned with a bracket above is not."""
    kind, inside = kind_of_listing(found[1]), found[1]
    if kind in (" program", " commands"):
        edge, above = min(map(len, LINE.findall(inside)), default=0), 0

        def indented(line):
            nonlocal above
            blanks = len(line[1]) - edge
            shown = min(blanks, above + 4)
            above = blanks if blanks == shown else above
            blanks = f'<span class="indent">{" " * blanks}</span>' if blanks else ""
            return f'<div class="line" style="--goes-on: {shown + 4}ch">{blanks}'

        inside = LINE.sub(indented, inside)
    if kind == " commands":
        inside = OPTION.sub(WHOLE, inside)
    return f'<div class="fragment{kind}">{inside}</div><!-- fragment -->'


def in_lines(found):
    """Commands, as Doxygen writes all other listings."""
    if not all(COMMAND.match(html.unescape(line)) for line in found[1].strip("\n").split("\n")):
        return found[0]
    lines = "".join(f'<div class="line">{line}</div>\n' for line in found[1].strip("\n").split("\n"))
    return f'<div class="fragment">{lines}</div><!-- fragment -->'


def wrap_listings(folder):
    """Says of each listing whether its lines wrap, keeps the words of a command in a paragraph whole, and lets a name in a table
    break behind its underscores."""
    for path in folder.glob("*.html"):
        text = FRAGMENT.sub(marked_listing, INDENTED.sub(in_lines, read(path)))
        text = LONG_COMMAND.sub(lambda found: '<code class="long">' + re.sub(r"\S+", WHOLE, found[1]) + "</code>", text)
        text = re.sub(f"{PARAGRAPH.pattern}|{CELL.pattern}", lambda found: PERCENT.sub("&#160;%", found[0]), text, flags=re.DOTALL)
        text = CELL.sub(lambda cell: NAME.sub(lambda name: re.sub(r"(?<=[^_])_(?=\w)", "_<wbr>", name[0]), cell[0]), text)
        path.write_text(text, encoding="utf-8")


# --- Search ---------------------------------------------------------------------------------------------------------


def encoded(words):
    """As Doxygen writes what is searched for."""
    return "".join(letter if letter.isalnum() else "".join(f"_{byte:02x}" for byte in letter.encode()) for letter in words.lower())


def endings(words):
    """From each word on that one may search for."""
    return {words[word.start():] for word in re.finditer(r"\w+", words) if word[0].lower() not in UNSEARCHED}


def searched_words(title, address):
    """[(words, whether they are of the name)] of a page: of its title, and of its name where that has others: `tma`, `lesson 05`."""
    of_title = endings(html.unescape(title))
    known = {ending.split()[0].lower() for ending in of_title}
    of_name = endings(address.removesuffix(".html").replace("_", " "))
    return [(words, False) for words in of_title] + [(words, True) for words in of_name if words.split()[0].lower() not in known]


def write_list(folder, name, entries):
    """A file for each first letter, with the older Doxygen's frame around it. @returns the letters."""
    frame = next(iter(folder.glob(f"{name}_0.html")), None)
    frame = read(frame) if frame else None
    for path in folder.glob(f"{name}_*"):
        path.unlink()
    letters = "".join(sorted({words[0] for words, _ in entries}))
    for place, letter in enumerate(letters):
        lines = ",\n".join(f"  ['{words}',['{rest}]]" for words, rest in entries if words[0] == letter)
        (folder / f"{name}_{place:x}.js").write_text(f"var searchData=\n[\n{lines}\n];\n", encoding="utf-8")
        if frame:
            (folder / f"{name}_{place:x}.html").write_text(frame.replace(f"{name}_0.js", f"{name}_{place:x}.js"), encoding="utf-8")
    return letters


def put_pages_first(folder):
    """Each list of the search is in files by first letters; a file holds a line for each name."""
    data = folder / "search/searchdata.js"
    tables = re.findall(r"var (\w+) =\n\{\n(.*?)\n\};", read(data), re.DOTALL)
    columns = {name: dict(re.findall(r'(\d+): "(.*)"', rows)) for name, rows in tables}
    names, letters = columns["indexSectionNames"], columns["indexSectionsWithContent"]
    kept = [number for name in LISTS_OF_SEARCH for number in names if names[number] == name]
    for number in names.keys() - set(kept):
        for path in folder.glob(f"search/{names[number]}_*"):
            path.unlink()
    entries = {names[number]: [(entry["id"], entry["rest"]) for path in sorted(folder.glob(f"search/{names[number]}_*.js"))
                               for entry in ENTRY.finditer(read(path))] for number in kept}
    of_pages = {TITLE_AND_ADDRESS.match(rest)["address"]: rest for _, rest in entries["pages"]}
    found = sorted((encoded(words), of_name, rest) for address, rest in of_pages.items()
                   for words, of_name in searched_words(TITLE_AND_ADDRESS.match(rest)["title"], address))
    found = [(f"{words}_p{i}", rest) for i, (words, _, rest) in enumerate(found)]
    symbols = [(words, rest) for words, rest in entries["all"] if TITLE_AND_ADDRESS.match(rest)["address"] not in of_pages]
    for number in kept:
        letters[number] = write_list(folder / "search", names[number], found + symbols if names[number] == "all" else found)
    text = []
    for name, _ in tables:
        rows = ",\n".join(f'  {i}: "{columns[name][number]}"' for i, number in enumerate(kept))
        text.append(f"var {name} =\n{{\n{rows}\n}};\n")
    data.write_text("\n".join(text), encoding="utf-8")


# --- Menu, and what links show ----------------------------------------------------------------------------------------


def title(text):
    return html.unescape(TITLE.search(text)[1])


def put_lessons_into_menu(folder):
    """Doxygen's data of the menu, which a phone has instead of the navigation."""
    path = folder / "menudata.js"
    text, start = read(path), '{text:"Start",url:"index.html"},\n'
    if text.count(start) != 1:
        sys.exit("finish_site.py: error: menudata.js has no start page, or several")
    lessons = [{"text": title(read(page)), "url": page.name} for page in sorted(folder.glob("lesson_[0-9][0-9]*.html"))]
    entries = "".join(f"{{text:{json.dumps(each['text'], ensure_ascii=False)},url:\"{each['url']}\"}},\n" for each in lessons)
    path.write_text(text.replace(start, start + entries), encoding="utf-8")


def description(text):
    """The first paragraph, as far as a link shows it."""
    for paragraph in PARAGRAPH.findall(text.partition('<div class="contents">')[2]):
        words = html.unescape(" ".join(re.sub(r"<[^>]*>", "", paragraph).split()))
        if len(words) >= 30 and not words.startswith("On this site:"):
            return words if len(words) <= SHOWN_OF_LINKS else words[:SHOWN_OF_LINKS].rsplit(" ", 1)[0] + " ..."
    return None


def say_what_pages_are_about(folder, url):
    for path in folder.glob("*.html"):
        text = read(path)
        about = None if path.name.endswith("_source.html") else description(text)
        if about is None:
            continue
        facts = [("name", "description", about), ("property", "og:type", "website"), ("property", "og:title", title(text)),
                 ("property", "og:description", about)]
        if url:
            facts += [("property", "og:url", f"{url}/{path.name}"), ("property", "og:image", f"{url}/figures/link.png"),
                      ("name", "twitter:card", "summary_large_image")]
        tags = "".join(f'<meta {kind}="{name}" content="{html.escape(words)}"/>\n' for kind, name, words in facts)
        path.write_text(text.replace("</head>", tags + "</head>", 1), encoding="utf-8")


def main():
    folder = Path(sys.argv[1]) if len(sys.argv) in (2, 3) else None
    if folder is None or not (folder / "search/searchdata.js").exists():
        print("finish_site.py: error: needs the folder of a site that Doxygen has just made, with its search", file=sys.stderr)
        return 2
    take_out_repeated_pages(folder)
    put_pages_first(folder)
    treat_low_screens_as_phones(folder)
    wrap_listings(folder)
    take_out_unlinked_pages(folder)
    put_lessons_into_menu(folder)
    say_what_pages_are_about(folder, sys.argv[2].rstrip("/") if len(sys.argv) == 3 else "")
    return 0


if __name__ == "__main__":
    sys.exit(main())
