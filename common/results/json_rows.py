"""A result file as text: an object with a line for each field, and where a field is a list a line for each of its elements.

So a run is a line, and the whole is one JSON document. The programs write the same: common/host/base/json.hpp.
"""
import json


def json_rows(document):
    fields = [f"{text_of(name)}:{rows_of(value)}" for name, value in document.items()]
    return "{\n" + ",\n".join(fields) + "\n}\n"


def rows_of(value):
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(map(text_of, value)) + "\n]"
    return text_of(value)


def text_of(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
