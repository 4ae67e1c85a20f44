#!/usr/bin/env python3
"""Takes out of the site what Doxygen makes in any case and no reader misses, and puts pages first in the search.

    finish_site.py HTML_FOLDER

A file's page repeats what its text says, so links lead to the text, unless a macro or such is described on the page. Folders
have the page of all sources. Pages that no link leads to then go. The search has two lists, all and pages; it finds a page
by each word of its title. Run once, after Doxygen.
"""
import re
import sys
from pathlib import Path

ADDRESS = re.compile(r"""["'](?:\.\./)?([\w./-]+\.html)((?:#[^"']*)?)["']""")
FILE_PAGE = re.compile(r"_8\w+(?<!_source)\.html$")
ALL_MEMBERS = re.compile(r'(?: &#124;\n)?<a href="[\w-]+-members\.html">List of all members</a>')
ENTRY = re.compile(r"^  \['(?P<id>.*?)',\['(?P<rest>.*)\]\],?$", re.MULTILINE)
TITLE_AND_ADDRESS = re.compile(r"^(?P<title>.*?)',\['\.\./(?P<address>[^']+)'")
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


# --- Search ---------------------------------------------------------------------------------------------------------


def encoded(words):
    """As Doxygen writes what is searched for."""
    return "".join(letter if letter.isalnum() else "".join(f"_{byte:02x}" for byte in letter.encode()) for letter in words.lower())


def endings(title):
    """Of a title, from each word on that one may search for."""
    plain = title.replace("&apos;", "'").replace("&quot;", '"')
    return {plain[word.start():] for word in re.finditer(r"\w+", plain) if word[0].lower() not in UNSEARCHED}


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
    found = sorted((encoded(ending), rest) for rest in of_pages.values()
                   for ending in endings(TITLE_AND_ADDRESS.match(rest)["title"]))
    found = [(f"{words}_p{i}", rest) for i, (words, rest) in enumerate(found)]
    symbols = [(words, rest) for words, rest in entries["all"] if TITLE_AND_ADDRESS.match(rest)["address"] not in of_pages]
    for number in kept:
        letters[number] = write_list(folder / "search", names[number], found + symbols if names[number] == "all" else found)
    text = []
    for name, _ in tables:
        rows = ",\n".join(f'  {i}: "{columns[name][number]}"' for i, number in enumerate(kept))
        text.append(f"var {name} =\n{{\n{rows}\n}};\n")
    data.write_text("\n".join(text), encoding="utf-8")


def main():
    folder = Path(sys.argv[1]) if len(sys.argv) == 2 else None
    if folder is None or not (folder / "search/searchdata.js").exists():
        print("finish_site.py: error: needs the folder of a site that Doxygen has just made, with its search", file=sys.stderr)
        return 2
    take_out_repeated_pages(folder)
    put_pages_first(folder)
    take_out_unlinked_pages(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
