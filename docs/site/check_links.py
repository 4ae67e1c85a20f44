#!/usr/bin/env python3
"""Fails if a link or a picture of the site leads to nothing, or if its text shows Markdown.

    check_links.py HTML_FOLDER

Checks every href and src of every page that stays within the site, with its anchor; and the addresses in the data of
the search and, without anchors, of the navigation. Doxygen leaves the stars of **bold text** that begins with a link or
ends with code; outside of code there must be none. It makes a list of a title that begins with "9."; no title may be one. Exit
code 1: something is wrong, one line for each.
"""
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# The scripts' data: ["title","page.html#anchor",...] and 'page.html#anchor' in the search index.
IN_SCRIPTS = re.compile(r"""["'](?:\.\./)*([\w./-]+\.html)(?:#([^"']*))?["']""")

# Doxygen's own: a class whose nested types are all private has a heading "Classes" in the list at its top only.
HEADINGS_WITHOUT_LIST = {"nested-classes"}


# Of the reference, where a star is a pointer's; and where it is on other pages.
REFERENCE = re.compile(r"_8\w+\.html$|_source\.html$|^(namespace|struct|class|union|globals|functions|dir_|code_|mistakes)")
CODE = {"code", "pre", "script", "style", "title", "textarea"}


class Page(HTMLParser):
    """What a page links to, the anchors that it has, and the text that shows Markdown."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors, self.markdown = [], set(), []
        self.in_code, self.in_title = 0, False
        self.feed(text)

    def handle_data(self, data):
        if "**" in data and not self.in_code:
            self.markdown.append(" ".join(data.split())[:80])

    def handle_endtag(self, tag):
        self.in_code -= tag in CODE
        self.in_title = self.in_title and tag != "div"

    def handle_starttag(self, tag, attributes):
        self.in_code += tag in CODE
        self.in_title = self.in_title or ("class", "title") in attributes
        if self.in_title and tag in ("ol", "ul"):
            self.markdown.append("the title is a list")
        for name, value in attributes:
            if name in ("href", "src") and value:
                self.links.append(value)
            if name == "id" or name == "name" and tag == "a":
                self.anchors.add(value)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        self.in_code -= tag in CODE


def is_elsewhere(link):
    parts = urlsplit(link)
    return bool(parts.scheme or parts.netloc) or link.startswith("javascript:")


def complaints(folder):
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.html"))}
    for path, page in pages.items():
        for text in [] if REFERENCE.search(path.name) else page.markdown:
            yield f"{path.relative_to(folder)}: shows Markdown: {text}"
        for link in page.links:
            if is_elsewhere(link):
                continue
            parts = urlsplit(link)
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            yield from problem(folder, pages, path, link, target, parts.fragment)
    for script in sorted(folder.rglob("*.js")):
        for name, anchor in IN_SCRIPTS.findall(script.read_text(encoding="utf-8")):
            yield from problem(folder, pages, script, name, (folder / name).resolve(), anchor)


def problem(folder, pages, source, link, target, anchor):
    where = source.relative_to(folder)
    if not target.exists():
        yield f"{where}: {link}: there is no such file"
    elif anchor and anchor not in HEADINGS_WITHOUT_LIST and target in pages and unquote(anchor) not in pages[target].anchors:
        yield f"{where}: {link}: {target.name} has no anchor '{anchor}'"


def main():
    folder = Path(sys.argv[1]).resolve() if len(sys.argv) == 2 else None
    if folder is None or not (folder / "index.html").exists():
        print("check_links.py: error: needs the folder of a site, with an index.html", file=sys.stderr)
        return 2
    wrong = list(dict.fromkeys(complaints(folder)))
    print("\n".join(wrong) if wrong else "no dead links, and no Markdown")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
