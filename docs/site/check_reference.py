#!/usr/bin/env python3
"""Fails if a function that a header offers has no words in the reference: what it does, shapes, units, errors.

    check_reference.py XML_FOLDER          the folder that Doxygen wrote with GENERATE_XML

Needs none: constructors, destructors, operators, accessors of one line, what another function of the same name in the
same file says for all of them, and what the comment above a group of declarations says. Exit code 1: some have none; one
line for each.
"""
import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from site_files import ROOT

HEADERS = (".hpp", ".cuh")
LONGEST_ACCESSOR = 1  # lines


def has_words(member):
    return any("".join(member.find(part).itertext()).strip() for part in ("briefdescription", "detaileddescription"))


def needs_words(member):
    location = member.find("location")
    name, path = member.findtext("name"), location.get("file")
    owner = re.sub(r"<.*", "", member.findtext("qualifiedname") or member.findtext("definition") or "").split("::")
    if not path.endswith(HEADERS) or member.get("prot") != "public":
        return False
    if name.startswith(("operator", "~")) or name in owner[:-1]:
        return False
    body_start, body_end = int(location.get("bodystart", -1)), int(location.get("bodyend", -1))
    is_accessor = not member.findall("param") and 0 <= body_end - body_start < LONGEST_ACCESSOR
    return not is_accessor or member.get("static") == "no" and member.findtext("type") == "void"


def is_below_words(path, line):
    """Whether the declaration belongs to a group, without blank lines between, that has a comment above it."""
    for text in reversed((ROOT / path).read_text(encoding="utf-8").splitlines()[:line - 1]):
        text = text.strip()
        if text.startswith("///"):
            return True
        if not text or text.endswith(("{", "}", ":")):
            return False
    return False


def undocumented(folder):
    documented, silent = set(), set()
    for path in sorted(Path(folder).glob("*.xml")):
        for member in ElementTree.parse(path).iter("memberdef"):
            if member.get("kind") == "function" and needs_words(member):
                location, name = member.find("location"), member.findtext("name")
                if has_words(member) or is_below_words(location.get("file"), int(location.get("line"))):
                    documented.add((location.get("file"), name))
                else:
                    silent.add((location.get("file"), int(location.get("line")), name))
    return sorted(function for function in silent if (function[0], function[2]) not in documented)


def main():
    if len(sys.argv) != 2 or not Path(sys.argv[1], "index.xml").exists():
        print("check_reference.py: error: needs the folder of Doxygen's XML", file=sys.stderr)
        return 2
    found = undocumented(sys.argv[1])
    for path, line, name in found:
        print(f"{path}:{line}: {name}: nothing says what it does")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
