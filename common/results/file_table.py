"""The list of the result files, with what each says of where it was recorded.

    <!-- files: . -->
    <!-- end -->

The word is the folder, seen from docs/results; folders below it are included.
"""
import json

from climb_table import BadInput
from page_requests import left_aligned
from record_files import Part, each


def facts(path):
    """The cells behind the name: what is in the file, date, GPU, driver, toolkit, clocks, power, commit."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if "traceEvents" in content:
            origin = content["metadata"]
            return ["timeline", origin["date"], origin["device"], "", origin["toolkit"], "", "", f"`{origin['commit']}`"]
        if "bounds" in content:
            return ["predictions", content["date"], content["gpu"], "", "", "", "", f"`{content['commit']}`"]
        for key in ("mistakes", "mutants"):
            if key in content:
                return [f"{len(content[key])} {key}", content["date"], content["device"], "", "", "", "",
                        f"`{content['commit'][:7]}`"]
        if "tests" in content:
            return [f"{len(content['tests'])} tests", content["date"], content["gpu"], content["driver"], content["toolkit"],
                    "", "", f"`{content['commit']}`"]
        entries = content.get("runs", content.get("launches"))
        kind = "profiles" if "launches" in content else "runs"
        clock, power = (span(entries, key) for key in ("clock_mhz", "power_watts"))
        return [f"{len(entries)} {kind}", content["date"], content["gpu"], content["driver"], content["toolkit"], clock, power,
                f"`{content['commit']}`"]
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise BadInput(f"{path}: is no result file: {error!r}") from error


def span(entries, key):
    """The least and the most of a figure."""
    values = [entry[key] for entry in entries if entry.get(key) is not None]
    return f"{min(values):.0f}–{max(values):.0f}" if values else ""


def file_table(line, words, results):
    """The lines that stand for `<!-- files: FOLDER -->`."""
    found = list(each(results / words[0])) if len(words) == 1 else []
    if not found:
        raise BadInput(f"{line}: needs a folder with result files")
    rows = []
    for one in found:
        path = getattr(one, "path", one).relative_to(results)
        name = f", {one.document['record']}" if isinstance(one, Part) else ""
        rows.append([f"[{path}]({path}){name}", *facts(one)])
    return left_aligned(["file", "holds", "date", "device", "driver", "toolkit", "SM clock, MHz", "power, W", "commit"], rows)
