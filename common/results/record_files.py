"""Records in the folder docs/results.

A file holds one record, and its name begins with the date. Or it holds a list `records`, each with its name under `record`, in the order
of names: `experiments/h200-05.json` what programs of one lesson wrote on one GPU, `lab/h200.json` the mistakes of all lessons there.
"""
import json

from script import json_rows


class Part:
    """A record that shares its file with others; it reads like a file of its own."""

    def __init__(self, path, document):
        self.path, self.document = path, document
        self.name = f"{path.name}, {document['record']}"

    def __str__(self):
        return f"{self.path}, {self.document['record']}"

    def read_text(self, encoding=None):
        return json_rows(self.document)

    def relative_to(self, folder):
        return Part(self.path.relative_to(folder), self.document)


def shared(path):
    """The records of a file that holds several; none of any other file."""
    if path.name[:4].isdecimal():  # a date: do not read it in vain
        return []
    document = json.loads(path.read_text(encoding="utf-8"))
    return [Part(path, one) for one in document.get("records", [])]


def text_of(parts):
    """A file of these records; in each a run has a line."""
    documents = sorted((part.document for part in parts), key=lambda document: document["record"])
    return '{\n"records":[\n' + ",\n".join(json_rows(document).rstrip("\n") for document in documents) + "\n]\n}\n"


def each(results):
    """All records of the folder and those below: paths and Parts."""
    for path in sorted(results.rglob("*.json")):
        yield from shared(path) or [path]


def newest(results, name):
    """The newest record: of `experiments/slots` the one of this name in that folder, alone in its file or not; of a pattern with *
    the file whose name comes last; else the file of that name. None if there is none."""
    if "*" in name:
        return max(results.glob(name), default=None)
    if name.endswith(".json"):
        return results / name
    folder, _, record = name.rpartition("/")
    alone = {path.name[:10]: path for path in sorted((results / folder).glob(f"*-{record}.json"))}
    parts = {part.document["date"]: part for path in sorted((results / folder).glob("*.json")) for part in shared(path)
             if part.document["record"] == record}
    found = {**alone, **parts}
    return found[max(found)] if found else None
