#!/usr/bin/env python3
"""Fails if a link or a picture of the site leads to nothing.

    check_links.py HTML_FOLDER

Checks every href and src of every page that stays within the site, with its anchor; and the addresses in the data of
the search and, without anchors, of the navigation. Exit code 1: some are dead, one line for each.
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


class Page(HTMLParser):
    """What a page links to, and the anchors that it has."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("href", "src") and value:
                self.links.append(value)
            if name == "id" or name == "name" and tag == "a":
                self.anchors.add(value)

    handle_startendtag = handle_starttag


def is_elsewhere(link):
    parts = urlsplit(link)
    return bool(parts.scheme or parts.netloc) or link.startswith("javascript:")


def dead_links(folder):
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.html"))}
    for path, page in pages.items():
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
    dead = list(dict.fromkeys(dead_links(folder)))
    print("\n".join(dead) if dead else "no dead links")
    return 1 if dead else 0


if __name__ == "__main__":
    sys.exit(main())
