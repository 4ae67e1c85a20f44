"""How the tests ended on a GPU, of the newest file that gpu_test_results.py wrote.

    <!-- tests: *-h200.json -->
    <!-- end -->

The word names the file in docs/results/tests.
"""
import json
from collections import Counter

from climb_table import BadInput
from stale import dated


def counted(number, word):
    return f"{number or 'none'} {word}"


def gpu_test_table(line, words, folder):
    """A paragraph: how many passed, which failed, and why others were skipped, the most frequent reason first."""
    if len(words) != 1:
        raise BadInput(f"{line}: needs the name of a file")
    path = max(folder.glob(words[0]), default=None)
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
