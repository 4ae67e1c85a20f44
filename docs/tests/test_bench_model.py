#!/usr/bin/env python3
"""The pipeline bench of the site computes what `predict` does: `ctest -L model`.

    test_bench_model.py PREDICT

Runs docs/site/tools/model.js for a grid of pipelines, under node or else in headless Chromium, and for each the command that
the bench shows for it. Exit code 77, skipped: there is neither.
"""
import contextlib
import itertools
import json
import shutil
import subprocess
import sys
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

MODEL = Path(__file__).resolve().parents[1] / "site/tools/model.js"
SKIPPED = 77
PREDICT = None

# Whole times, so that `predict` prints every sum with all its digits.
PIPELINES = [{"load": load, "compute": compute, "store": store, "interval": interval, "slots": slots, "late": late}
             for load, compute, store, interval, slots, late in itertools.product(
                 (0, 7, 12, 40), (5, 12), (0, 9), (None, 0, 3, 20), (1, 2, 3, 5), (False, True))]
TILES = (0, 1, 2, 4, 13)
ANSWERS = """
JSON.stringify(%s.map(p => %s.map(tiles => ({
  command: costModel.command(p, tiles), total: costModel.total(p, tiles), perTile: costModel.perTile(p),
  closedForm: costModel.closedForm(p, tiles), schedule: costModel.schedule(p, tiles) }))))"""


def run_by_node(script):
    done = subprocess.run(["node", "-p", script], check=True, capture_output=True, text=True, timeout=60)
    return done.stdout


def run_by_chromium(script):
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    options = webdriver.ChromeOptions()
    with tempfile.TemporaryDirectory() as profile:
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={profile}"):
            options.add_argument(argument)
        browser = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
        try:
            return browser.execute_script("return eval(arguments[0])", script)
        finally:
            browser.quit()


def runner():
    """What can run a script here; None if nothing can."""
    if shutil.which("node"):
        return run_by_node
    with contextlib.suppress(ImportError):
        import selenium  # noqa: F401
        if shutil.which("chromedriver"):
            return run_by_chromium
    return None


def answers(pipelines, tiles):
    script = MODEL.read_text(encoding="utf-8") + ANSWERS % (json.dumps(pipelines), json.dumps(tiles))
    return json.loads(runner()(script))


def predict(command, *more):
    """The lines that it prints, each cut into words."""
    words = command.split()
    assert words[0] == "build/bin/predict"
    done = subprocess.run([PREDICT, *words[1:], *more], check=True, capture_output=True, text=True, timeout=60)
    return [line.split() for line in done.stdout.splitlines()]


def drawn(role, times, columns_per_unit):
    """As common/model/picture.hpp says it."""
    width = round(max(span[1] for time in times for span in time.values()) * columns_per_unit)
    line = ["."] * width
    for i, time in enumerate(times):
        begin, end = (round(edge * columns_per_unit) for edge in time[role])
        line[begin:end] = str(i % 10) * (end - begin)
    return "".join(line)


class BenchModel(unittest.TestCase):
    def test_totals_and_what_a_further_tile_adds(self):
        cases = [answer for pipeline in answers(PIPELINES, TILES) for answer in pipeline]
        self.assertEqual(len(cases), len(PIPELINES) * len(TILES))
        with ThreadPoolExecutor(2) as pool:
            printed = list(pool.map(lambda case: predict(case["command"])[-1], cases))
        for case, (_, total, *rest) in zip(cases, printed):
            self.assertEqual(f"{case['total']:g}", total, case["command"])
            known = rest[0] if len(rest) == 4 else None  # an empty cell where no closed form is known
            self.assertEqual(None if case["perTile"] is None else f"{case['perTile']:g}", known, case["command"])

    def test_closed_forms_are_the_totals(self):
        unknown = 0
        for pipeline in answers(PIPELINES, list(range(30))):
            for case in pipeline:
                if case["closedForm"] is None:
                    unknown += 1
                else:
                    self.assertAlmostEqual(case["closedForm"], case["total"], 9, case["command"])
        self.assertGreater(unknown, 0)

    def test_schedules_are_those_that_predict_draws(self):
        pipelines = [{"load": 2, "compute": 3, "store": store, "interval": interval, "slots": slots, "late": late}
                     for store, interval, slots, late in itertools.product((0, 2), (None, 1), (1, 2, 3), (False, True))]
        for [case] in answers(pipelines, [4]):
            _, *lines = predict(case["command"], "--timeline")
            columns = len(lines[0][1]) / case["total"]
            self.assertEqual(columns, int(columns), case["command"])
            for role, line in lines:
                self.assertEqual(drawn(role, case["schedule"], int(columns)), line, case["command"])


if __name__ == "__main__":
    PREDICT = sys.argv.pop(1)
    if runner() is None:
        print("skipped: neither node nor chromedriver with Python's selenium is here")
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)
