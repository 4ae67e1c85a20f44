"""Of the newest records that ctest_results.py wrote: the table of the tests under compute-sanitizer, and how the tests ended on a GPU.

    <!-- sanitizers: -->
    <!-- tests: tests_80-virtual -->    the word names the record
    <!-- end -->
"""
import json
from collections import Counter

from climb_table import BadInput
from page_requests import markdown
from record_files import newest
from stale import dated


def cell(test):
    """How many errors the tool counted; `always` where it complains of kernels that are right."""
    if test is None or test["outcome"] == "skipped":
        return ""
    if test["outcome"] == "failed":
        return "**failed**"
    if test["errors"] is None:  # of a run that had to report errors, and whose end was cut off
        return "always"
    return f"always: {test['errors']:,}" if test["errors"] else "0"


def sanitizer_table(line, results_folder):
    """A row for each test program, a column for each tool."""
    path = newest(results_folder, "tests/sanitizers")
    if path is None:
        raise BadInput(f"{line}: no such record in {results_folder}")
    try:
        results = json.loads(path.read_text(encoding="utf-8"))
        tests = {(test["program"], test["tool"]): test for test in results["tests"]}
        origin = f"{results['gpu']}, {results['toolkit']}, {dated(results)}, commit `{results['commit']}`"
        total = sum(test["time_s"] for test in results["tests"])
        outcomes = [test["outcome"] for test in results["tests"]]
    except (ValueError, TypeError, KeyError) as error:
        raise BadInput(f"{path}: is no result file: {error!r}") from error
    tools = [tool for tool in ("memcheck", "racecheck", "synccheck", "initcheck") if any(tool == t for _, t in tests)]
    rows = [[f"`{program}`", *(cell(tests.get((program, tool))) for tool in tools)]
            for program in sorted({program for program, _ in tests})]
    counts = ", ".join(f"{outcomes.count(outcome)} {outcome}" for outcome in ("passed", "failed", "skipped"))
    return markdown(["errors that it counted", *tools], rows) + ["", f"{counts}; {total:.0f} s of one GPU. {origin}."]


def counted(number, word):
    return f"{number or 'none'} {word}"


def gpu_test_table(line, words, results_folder):
    """A paragraph: how many passed, which failed, and why others were skipped, the most frequent reason first."""
    if len(words) != 1:
        raise BadInput(f"{line}: needs the name of a record")
    path = newest(results_folder, f"tests/{words[0]}")
    if path is None:
        return ["How the tests ended was not recorded yet."]
    try:
        results = json.loads(path.read_text(encoding="utf-8"))
        by_status = Counter(test["status"] for test in results["tests"])
        failed = [test["name"] for test in results["tests"] if test["status"] == "failed"]
        reasons = Counter(test["reason"] for test in results["tests"] if test["status"] == "skipped")
        origin = f"{results['gpu']}, {results['toolkit']}, {dated(results)}, commit `{results['commit']}`."
    except (ValueError, TypeError, KeyError) as error:
        raise BadInput(f"{path}: is no result file: {error!r}") from error
    names = ": " + "; ".join(f"`{name}`" for name in failed) if failed else ""
    why = f" ({'; '.join(f'{count}: {reason}' for reason, count in reasons.most_common())})" if reasons else ""
    return [f"Of {len(results['tests'])} tests {by_status['passed']} passed, {counted(by_status['failed'], 'failed')}{names}, and "
            f"{counted(by_status['skipped'], 'were skipped')}{why}. {origin}"]
