#!/usr/bin/env python3
"""Tests of page_tables.py: `python3 common/results/test_page_tables.py`."""
import contextlib
import io
import json
import re
import sys
import tempfile
import unittest
import xml.etree.ElementTree
from pathlib import Path
from unittest import mock

sys.dont_write_bytecode = True
import climb_picture  # noqa: E402
import climb_table  # noqa: E402
import concept_pictures  # noqa: E402
import experiment_tables  # noqa: E402
import cube_table  # noqa: E402
import sm_picture  # noqa: E402
import idea_pictures  # noqa: E402
import lab_table  # noqa: E402
import lanes_picture  # noqa: E402
import lattice  # noqa: E402
import page_requests  # noqa: E402
import page_tables  # noqa: E402
import profiles  # noqa: E402
import ratio_plot  # noqa: E402
import ctest_results  # noqa: E402
from climb_table import BadInput  # noqa: E402
from page_requests import off_by  # noqa: E402
from records import random_shapes  # noqa: E402
from stale import todays_fingerprint  # noqa: E402


ROOT = Path(__file__).resolve().parents[2]
# Where the recorded climb goes down; the page of the lesson says so. (step, base, shape)
KNOWN_DESCENTS = []


def run(lesson, tflops, clock=1000, size=64, **settings):
    """As programs write it: without what was not measured, which is None here."""
    fields = {"lesson": lesson, "core": "fma", "m": size, "n": size, "k": size, "settings": settings,
              "time_us_median": 10, "tflops": tflops, "clock_mhz": clock, "verified": True}
    return {name: value for name, value in fields.items() if value is not None}


def step(number, tflops, **settings):
    """A run of a step of the climb."""
    return dict(run(page_tables.step_of(number).lesson, tflops, **settings), rung=number)


def page_tables_of(*arguments):
    """The exit code of page_tables.py, and what it prints."""
    output = io.StringIO()
    with mock.patch.object(sys, "argv", ["page_tables.py", *map(str, arguments)]), contextlib.redirect_stdout(output):
        return page_tables.main(), output.getvalue()


class WithResults(unittest.TestCase):
    """A folder of results, and pages that are filled from it."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = page_tables.RESULTS = Path(folder.name)
        self.record("r.json", run("01_x", 100, slots="1"), run("01_x", 200, clock=800, slots="2"),
                    run("cublas_gemmex", 400, b="row-major"))

    def record(self, name, *runs):
        results = {"date": "today", "commit": "abc", "gpu": "G", "driver": "1", "toolkit": "T", "runs": runs}
        (self.folder / name).write_text(json.dumps(results), encoding="utf-8")

    def filled(self, text):
        page = self.folder / "page.md"
        page.write_text(text, encoding="utf-8")
        return page_tables.filled(page)[0]


class FileTable(WithResults):
    def test_a_row_says_where_a_file_was_recorded_with_the_range_of_the_clock(self):
        text = self.filled("<!-- files: . -->\n<!-- end -->\n")
        self.assertIn("| [r.json](r.json) | 3 runs | today | G | 1 | T | 800–1000 |  | `abc` |", text)

    def test_a_record_that_shares_its_file_has_a_row_and_is_found_by_its_name(self):
        def one(name, date, tflops):
            return {"date": date, "commit": "abc", "record": name, "gpu": "G", "driver": "1", "toolkit": "T", "runs": [run("01_x", tflops, slots="1")]}
        (self.folder / "experiments").mkdir()
        for gpu, date, tflops in (("h100", "2026-01-03", 123), ("h200", "2026-01-02", 124)):
            (self.folder / f"experiments/{gpu}-05.json").write_text(
                json.dumps({"records": [one("slots", date, tflops), one("other", "2026-01-04", 125)]}), encoding="utf-8")
        self.record("experiments/2026-01-01-h300-slots.json", run("01_x", 126, slots="1"))
        text = self.filled("<!-- files: experiments -->\n<!-- end -->\n")
        self.assertIn("| [experiments/h100-05.json](experiments/h100-05.json), slots | 1 runs | 2026-01-03 |", text)
        self.assertIn("| 123 |", self.filled("<!-- table: experiments/slots rows=slots -->\n<!-- end -->\n"))
        self.assertIn("Not recorded yet.", self.filled("<!-- table: experiments/none rows=slots -->\n<!-- end -->\n"))

    def test_a_folder_without_files_is_refused(self):
        with self.assertRaisesRegex(BadInput, "needs a folder"):
            self.filled("<!-- files: nothing -->\n<!-- end -->\n")


class Fold(WithResults):
    def test_the_lines_below_a_table_are_folded_and_the_table_is_not(self):
        for name, rest in (("r.json", "today"), ("no-*.json", "")):
            plain, folded = (self.filled(f"<!-- table: {name} rows=slots{fold} -->\n<!-- end -->\n") for fold in ("", " fold"))
            with self.subTest(name):
                table, _, below = plain.partition("\n\n")
                self.assertIn(rest, below)
                below = below.removesuffix("\n<!-- end -->\n")
                self.assertEqual(folded.replace(" fold -->", " -->"), plain if not rest else
                                 f"{table}\n\n<details><summary>Source</summary>\n\n{below}\n\n</details>\n<!-- end -->\n")

    def test_a_table_may_be_folded_with_the_lines_below_it(self):
        for name, recorded in (("r.json", True), ("no-*.json", False)):
            plain, folded = (self.filled(f"<!-- table: {name} rows=slots{fold} -->\n<!-- end -->\n") for fold in ("", " fold_all"))
            request, _, rest = plain.partition(" -->\n")
            rest = rest.removesuffix("\n<!-- end -->\n")
            self.assertEqual(folded, f"{request} fold_all -->\n<details><summary>The table</summary>\n\n{rest}\n\n</details>\n<!-- end -->\n"
                             if recorded else plain.replace(" -->", " fold_all -->", 1))


class Without(WithResults):
    def test_columns_can_be_left_out_after_predictions_and_with_them_what_is_said_of_the_library(self):
        text = self.filled("<!-- table: r.json rows=slots predicted=gain:,2.5 without=TFLOP/s,%_library -->\n<!-- end -->\n")
        self.assertIn("\n| slots | µs | SM clock, MHz | × first | predicted | off by | × first, per clock |\n", text)
        self.assertIn("\n| `2` | 10 | 800 | 2.00 | 2.5 | −20 % | 2.50 |\n", text)
        self.assertNotIn("Percent of the library", text)

    def test_a_column_that_there_is_not_is_refused(self):
        with self.assertRaisesRegex(BadInput, "without= names 'TFLOPS', which is no column"):
            self.filled("<!-- table: r.json rows=slots without=TFLOPS -->\n<!-- end -->\n")


class Parts(WithResults):
    def setUp(self):
        super().setUp()
        (self.folder / "experiments").mkdir()
        self.rows = [{"part": "load", "settings": {"size": size, "blocks": blocks}, "clocks": clocks, "clocks_q1": 0.9 * clocks,
                      "clocks_q3": 1.1 * clocks, "bytes": 8192}
                     for size, blocks, clocks in (("8 KB", "one SM", 400), ("8 KB", "all SMs", 50.25), ("16 KB", "all SMs", 800))]
        self.rows.append({"part": "ask", "settings": {}, "clocks": 7, "clocks_q1": 7, "clocks_q3": 7, "ideal_clocks": 4})
        self.record("experiments/2026-01-01-g-parts.json", *self.rows)

    def table(self, words):
        return self.filled(f"<!-- parts: {words} -->\n<!-- end -->\n").splitlines()[1:]

    def test_settings_make_rows_and_columns_in_the_order_of_the_record(self):
        self.assertEqual(self.table("load rows=size columns=blocks"), [
            "| clocks | one SM | all SMs |", "| --- | --: | --: |", "| 8 KB | 400 | 50.2 |", "| 16 KB |  | 800 |", "",
            "G, today, commit `abc`.", "<!-- end -->"])

    def test_without_columns_each_figure_has_one_and_rows_can_be_chosen(self):
        self.assertEqual(self.table("load rows=size figures=clocks,spread,bytes,ideal only=blocks:all_SMs")[:4], [
            "|  | clocks | ± % | bytes a clock | ideal |", "| --- | --: | --: | --: | --: |", "| 8 KB | 50.2 | 10.0 | 163.0 |  |",
            "| 16 KB | 800 | 10.0 | 10.2 |  |"])
        self.assertIn("|  | 7.0 | 4 |", self.table("ask rows=size figures=clocks,ideal only=blocks:"))

    def test_rows_that_would_share_a_place_none_and_unknown_figures_are_refused(self):
        for words, complaint in (("load rows=size", "several rows"), ("nothing rows=size", "no row"), ("load", "needs rows="),
                                 ("load rows=size columns=blocks figures=clocks,bytes", "one of them"),
                                 ("load rows=size figures=colour", "needs rows=")):
            with self.assertRaisesRegex(BadInput, complaint):
                self.table(words)

    def test_what_is_no_record_is_refused_and_none_is_said(self):
        path = self.folder / "experiments/2026-01-01-g-parts.json"
        path.write_text('{"runs": [{"part": "load"}]}', encoding="utf-8")
        with self.assertRaisesRegex(BadInput, "is no record of parts"):
            self.table("load rows=size")
        path.unlink()
        self.assertEqual(self.table("load rows=size")[0], "Not recorded yet.")


class StaleRecords(WithResults):
    def test_a_page_says_that_a_record_is_of_an_earlier_kernel(self):
        head = {"date": "today", "commit": "abc", "gpu": "G", "driver": "1", "toolkit": "T", "record": "slots"}
        for fingerprint, when in ((todays_fingerprint("slots"), "today"), ("0123456789ab", "today, of an earlier kernel"),
                                  (None, "today, of an earlier kernel")):
            record = {**head, "fingerprint": fingerprint, "runs": [run("03_x", 800, slots="3")]}
            (self.folder / "r.json").write_text(json.dumps(record), encoding="utf-8")
            self.assertIn(f"\nG, {when}, commit `abc`; ", self.filled("<!-- table: r.json rows=slots -->\n<!-- end -->\n"))


class Exercises(WithResults):
    """Exercises of a lesson in a source tree of its own."""

    def setUp(self):
        super().setUp()
        for name in ("ROOT", "FIGURES"):
            patch = mock.patch.object(page_tables, name, self.folder)
            patch.start()
            self.addCleanup(patch.stop)
        self.describe("2_b", title="B", kind="find", trains="do b")
        self.describe("1_a", title="A", kind="write", trains="do a")
        self.page = self.folder / "04_x" / "README.md"
        self.page.write_text("before\n<!-- exercises: 04 -->\n<!-- end -->\nafter\n", encoding="utf-8")

    def describe(self, name, lesson="04_x", **fields):
        folder = self.folder / lesson / "exercise" / name
        folder.mkdir(parents=True, exist_ok=True)
        lines = [f"{field}: {text}" for field, text in fields.items()]
        (folder / "exercise.md").write_text("\n".join(["---", *lines, "---", "", "## Hint", "title: not this", ""]), encoding="utf-8")

    def test_a_row_has_the_name_the_kind_and_the_title_and_the_command_is_there_once(self):
        self.assertEqual(page_tables.filled(self.page)[0].splitlines()[2:8], [
            "`build/bin/ladder learn 04.1` opens and checks the first:", "",
            "| exercise | kind | what to do |", "| --- | --- | --- |",
            "| 04.1 | write | A |",
            "| 04.2 | find | B |"])

    def test_short_exercises_have_letters_and_come_first(self):
        self.describe("b_short", title="C", kind="write", trains="do c")
        self.assertEqual(page_tables.filled(self.page)[0].splitlines()[2:7], [
            "`build/bin/ladder learn 04.b` opens and checks the first:", "",
            "| exercise | kind | what to do |", "| --- | --- | --- |",
            "| 04.b | write | C |"])

    def test_a_page_is_out_of_date_when_a_description_changes_or_comes(self):
        self.assertEqual(page_tables_of("--check"), (1, f"{self.page}: not up to date; run common/results/page_tables.py\n"))
        for change in ({"name": "2_b", "title": "C"}, {"name": "3_c", "title": "B"}):
            self.assertEqual(page_tables_of(), (0, f"{self.page}: updated\n"))
            self.assertEqual(page_tables_of("--check"), (0, ""))
            self.describe(**change, kind="find", trains="do b")
            self.assertEqual(page_tables_of("--check")[0], 1)

    def test_a_table_may_have_some_exercises_of_a_lesson(self):
        self.describe("a_short", title="C", kind="write")
        self.page.write_text("<!-- exercises: 04 a 2 -->\n<!-- end -->\n", encoding="utf-8")
        self.assertEqual(page_tables.filled(self.page)[0].splitlines()[5:7], ["| 04.a | write | C |", "| 04.2 | find | B |"])
        for words in ("04 2 a", "04 a 7"):
            with self.assertRaisesRegex(BadInput, "names exercises that there are not, or in another order"):
                self.filled(f"<!-- exercises: {words} -->\n<!-- end -->\n")

    def test_one_exercise_is_a_line_of_its_own(self):
        self.page.write_text("<!-- exercises: 04.2 -->\n<!-- end -->\n", encoding="utf-8")
        self.assertEqual(page_tables.filled(self.page)[0].splitlines()[1:-1], [
            "**Try it:** B: `build/bin/ladder learn 04.2`."])

    def test_what_is_missing_is_named(self):
        for words, complaint in (("", "needs the number"), ("05", "lesson 05 has no exercises"), ("04.3", "no exercise 04.3"),
                                 ("04.b", "no exercise 04.b")):
            with self.assertRaisesRegex(BadInput, complaint):
                self.filled(f"<!-- exercises: {words} -->\n<!-- end -->\n")
        self.describe("2_b", kind="find")
        with self.assertRaisesRegex(BadInput, "2_b/exercise.md: has no field 'title'"):
            page_tables.filled(self.page)


class IdeaPictures(WithResults):
    ROWS, CUT = "straddling_rows aligned=4096 columns=5000", "stream_k few=7 many=8 clusters=5 steps=80"

    def picture(self, words):
        self.filled(f"<!-- picture: {words} -->\n<!-- end -->\n")
        (path, svg), = page_tables.pictures(self.folder / "page.md").items()
        self.assertEqual(path, page_tables.FIGURES / f"{words.split()[0]}.svg")
        return svg

    def test_the_page_shows_the_picture_and_says_what_is_on_it(self):
        text = self.filled(f"<!-- picture: {self.ROWS} -->\n<!-- end -->\n")
        self.assertIn("with 4096 columns eight rows take 8 requests, with 5000 columns 21; a cluster of two takes 15,", text)
        self.assertIn("](../docs/figures/straddling_rows.svg)", text)

    def test_a_row_that_begins_within_a_line_touches_two(self):
        self.assertEqual([idea_pictures.lines_touched(5000, row) for row in range(9)], [1] + 7 * [2] + [1])
        self.assertEqual([idea_pictures.requests_of_row(5000, row, False) for row in range(9)], [1, 3, 3, 3, 2, 3, 3, 3, 1])
        self.assertEqual(idea_pictures.requests(4096), 8)
        self.assertRegex(self.picture(self.ROWS), ">7 of one block,</text>\n.*>8 of the other<")

    def test_each_step_of_each_tile_is_computed_once_and_never_two_at_a_time(self):
        for tiles, clusters, steps in ((7, 5, 80), (8, 5, 80), (3, 7, 128), (6, 6, 80), (9, 5, 80), (150, 66, 79), (117, 66, 50)):
            shared = idea_pictures.share_last_wave(tiles, clusters, steps)
            work = [idea_pictures.work_of(cluster, tiles, clusters, steps, shared) for cluster in range(clusters)]
            of_tiles = dict.fromkeys(range(tiles), 0)
            for pieces in work:
                for tile, begin, end in pieces:
                    of_tiles[tile] += steps * (end - begin)
                for (_, _, end), (_, begin, _) in zip(pieces, pieces[1:]):
                    self.assertLessEqual(end, begin)
            for tile, count in of_tiles.items():
                self.assertAlmostEqual(count, steps, msg=f"tile {tile} of {tiles}")
            self.assertLessEqual(idea_pictures.time_of(work), -(-tiles // clusters))

    def test_tiles_are_shared_as_the_kernels_share_them(self):
        folder = page_tables.ROOT / "06_clusters_dsmem/any_shape"
        sharing, test_plan = ((folder / name).read_text(encoding="utf-8") for name in ("sharing.hpp", "test_plan.cpp"))
        for name, value in (("kMinSteps", idea_pictures.FEWEST_STEPS), ("kPartSteps", idea_pictures.PART_STEPS),
                            ("kMaxParts", idea_pictures.MOST_PARTS), ("kStoreSteps", idea_pictures.STORE_STEPS)):
            self.assertIn(f"constexpr int {name} = {value};", sharing)
        number = r"(\d+)"
        checks = re.findall(rf"is\(share_last_wave\({number}, {number}, {number}\), {number}, {number}, {number}, {number}\)", test_plan)
        self.assertGreater(len(checks), 5)
        for check in checks:
            tiles, clusters, steps, *shared = map(int, check)
            with self.subTest(check):
                self.assertEqual(idea_pictures.share_last_wave(tiles, clusters, steps), idea_pictures.Sharing(*shared))

    def test_what_is_shared_is_drawn_with_how_long_it_takes(self):
        picture = self.picture(self.CUT)
        for words in (">7 tiles, whole: 2 tiles' time<", ">7 tiles, 2 of them in equal parts: 1.5 tiles' time<",
                      ">8 tiles, 3 of them with rests: 1.74 tiles' time<"):
            self.assertIn(words, picture)

    def test_both_themes_have_a_colour_for_every_class_that_is_not_a_size(self):
        for words in (self.ROWS, self.CUT):
            svg = self.picture(words)
            light, dark = svg.split("@media (prefers-color-scheme: dark)")
            for name in set(re.findall(r'class="([\w-]+)"', svg)) - {"small"}:
                self.assertIn(f".{name} {{", light)
                self.assertIn(f".{name} {{", dark)

    def test_an_unknown_picture_and_a_missing_number_are_refused(self):
        with self.assertRaisesRegex(BadInput, "there is no picture 'rows'; there are straddling_rows, stream_k"):
            self.picture("rows")
        with self.assertRaisesRegex(BadInput, "needs few=NUMBER and many=NUMBER and clusters=NUMBER and steps=NUMBER"):
            self.picture("stream_k few=7 many=8 clusters=5")
        with self.assertRaisesRegex(BadInput, "needs few=NUMBER and many=NUMBER and clusters=NUMBER and steps=NUMBER"):
            self.picture("stream_k few=7 many=8 clusters=5 steps=0")


class RatioPlot(WithResults):
    REQUEST = "<!-- ratios: {} picture=p.svg -->\n<!-- end -->\n"

    def setUp(self):
        super().setUp()
        self.figures = page_tables.FIGURES = self.folder / "figures"
        self.figures.mkdir()

    def runs(self, size, ours, best, **more):
        return [{**run("06_x", ours, size=size), "choice": f"plan of {size}", **more},
                run("cublas_gemmex", best, size=size, b="row-major"), run("cublaslt", best / 2, size=size, b="transposed")]

    def record_ratios(self, name, *ratios):
        self.record(name, *(one for i, ratio in enumerate(ratios) for one in self.runs(64 << i, 100 * ratio, 100)))

    def picture(self, name):
        page = self.folder / "page.md"
        page.write_text(self.REQUEST.format(name), encoding="utf-8")
        (path, svg), = page_tables.pictures(page).items()
        self.assertEqual(path, self.figures / "p.svg")
        return svg

    def test_a_second_run_with_ordinary_launches_is_told_apart(self):
        ordinary = [run("06_x", tflops, size=size, pdl="off") for size, tflops in ((64, 60), (128, 135))]
        self.record("x.json", *self.runs(64, 100, 100), *self.runs(128, 125, 100), *ordinary)
        text = self.filled(self.REQUEST.format("x.json"))
        self.assertIn("2 shapes, each", text)
        self.assertIn("geometric mean **1.12**, worst 1.00, 1 above 1.00. With ordinary launches the mean is 0.90 and the worst 0.60. "
                      "The worst:", text)

    def test_text_says_mean_worst_and_how_many_are_above_and_lists_the_worst_first(self):
        self.record_ratios("x-1.json", 1.25, 0.8, 1, 0.9, 1.1, 0.95)
        text = self.filled(self.REQUEST.format("x-*.json"))
        self.assertIn("6 shapes, each against the fastest of four library variants in the same interleaved run: geometric mean "
                      "**0.99**, worst 0.80, 2 above 1.00.", text)
        self.assertIn("geometric mean 0.99, worst 0.80](../docs/figures/p.svg)", text)
        rows = re.findall(r"\| ([\d³]+) \| (\d+) \| plan of (\d+) \| 10\.0 \| cublasGemmEx, B row-major \| 10\.0 \| ([\d.]+) \|", text)
        self.assertEqual([row[0] for row in rows], ["128³", "512³", "2048³", "256³", "1024³"])
        self.assertEqual(rows[0][1:], ("43", "128", "0.80"))  # a cube of n has n / 3 flops a byte
        self.assertIn("G, today, commit `abc`.", text)

    def test_shapes_of_a_seed_are_told_from_those_of_the_day(self):
        def of_shape(sizes, ratio):
            return [{**one, **dict(zip("mnk", sizes))} for one in self.runs(64, 100 * ratio, 100)]

        first, second = random_shapes(16, 2)
        self.record("r.json", *of_shape(first, 1.1), *of_shape(second, 0.9), *of_shape((64, 64, 64), 0.8))
        request = "<!-- ratios: r.json picture=p.svg fixed=16:2 -->\n<!-- end -->\n"
        self.assertIn("mean **0.93** (0.99 over the 2 from a fixed seed, 0.80 over the 1 from a seed of that day), worst 0.80",
                      self.filled(request))
        svg = xml.etree.ElementTree.fromstring(*page_tables.pictures(self.folder / "page.md").values())
        dots = {dot.find("{*}title").text[:3]: dot.get("class") for dot in svg.findall(".//{*}circle[{*}title]")}
        self.assertEqual(dots, {"64³": "drawn", "353": "shape", "276": "shape"})
        self.assertIn("seed of that day", [text.text for text in svg.findall(".//{*}text")])
        short = self.filled(request.replace("fixed", "table=no fixed"))
        self.assertIn("p.svg)\n\n3 shapes: geometric mean **0.93**, worst 0.80.\n<!--", short)
        self.assertNotIn("| M×N×K |", short)
        with self.assertRaisesRegex(BadInput, "table=yes: only table=no means something"):
            self.filled(request.replace("fixed", "table=yes fixed"))
        with self.assertRaisesRegex(BadInput, "fixed=16 is not SEED:COUNT"):
            self.filled(request.replace("16:2", "16"))

    def test_text_says_that_results_are_not_verified(self):
        self.record("r.json", *self.runs(64, 1, 2, verified=False))
        self.assertIn("commit `abc`; not all results are verified.", self.filled(self.REQUEST.format("r.json")))

    def test_the_picture_has_a_dot_for_each_shape_at_its_place(self):
        self.record_ratios("r.json", 0.8, 1.2)
        svg = xml.etree.ElementTree.fromstring(self.picture("r.json"))
        dots = svg.findall(".//{*}circle")
        self.assertEqual([dot.find("{*}title").text for dot in dots], ["64³: 0.80, plan of 64", "128³: 1.20, plan of 128"])
        one, = svg.findall(".//{*}line[@class='one']")
        mean, = svg.findall(".//{*}line[@class='mean']")
        self.assertGreater(float(dots[0].get("cy")), float(mean.get("y1")))
        self.assertGreater(float(mean.get("y1")), float(one.get("y1")))
        self.assertGreater(float(one.get("y1")), float(dots[1].get("cy")))
        self.assertGreater(float(dots[1].get("cx")), float(dots[0].get("cx")))
        words = [text.text for text in svg.findall(".//{*}text")]
        self.assertIn("geometric mean 0.98", words)
        self.assertTrue({"0.8", "1.0", "1.2", "20", "50"} <= set(words), words)

    def test_intensities_are_on_a_scale_of_factors_whatever_they_are(self):
        for least, most in ((1, 1), (0.9, 3), (15, 2700), (100, 100), (21, 43)):
            ticks = ratio_plot.ticks(least, most)
            self.assertTrue(ticks[0] <= max(least, 1) and most <= ticks[-1] and len(ticks) > 1, ticks)

    def test_both_themes_have_a_colour_for_every_class(self):
        self.record_ratios("r.json", 1)
        svg = self.picture("r.json fixed=16:1")
        light, dark = svg.split("@media (prefers-color-scheme: dark)")
        for name in set(re.findall(r'class="([\w-]+)"', svg)):
            self.assertIn(f".{name} {{", light)
            self.assertIn(f".{name} {{", dark)

    def test_before_the_first_recording_there_is_neither_text_nor_picture(self):
        self.assertIn("-->\nNot recorded yet.\n<!--", self.filled(self.REQUEST.format("x-*.json")))
        self.assertEqual(page_tables.pictures(self.folder / "page.md"), {})

    def test_a_picture_that_is_missing_or_old_fails_the_check_and_is_drawn(self):
        self.record_ratios("r.json", 1)
        page = self.folder / "page.md"
        page.write_text(self.REQUEST.format("r.json"), encoding="utf-8")

        self.assertEqual(page_tables_of(page)[0], 0)
        picture = self.figures / "p.svg"
        drawn = picture.read_text(encoding="utf-8")
        self.assertEqual(page_tables_of("--check", page), (0, ""))
        picture.write_text(drawn.replace("1.00", "2.00"), encoding="utf-8")
        code, said = page_tables_of("--check", page)
        self.assertEqual(code, 1)
        self.assertIn("p.svg: not up to date", said)
        picture.unlink()
        self.assertEqual(page_tables_of("--check", page)[0], 1)
        page_tables_of(page)
        self.assertEqual(picture.read_text(encoding="utf-8"), drawn)

    def test_a_picture_that_no_page_shows_or_that_two_describe_differently_is_named(self):
        for name in ("a", "b"):
            (self.figures / f"{name}.svg").write_text("<svg/>", encoding="utf-8")
        pages = [self.folder / "one.md", self.folder / "two.md"]
        pages[0].write_text("![what a shows](../docs/figures/a.svg)\n", encoding="utf-8")
        pages[1].write_text("![what a shows](../figures/a.svg)\n", encoding="utf-8")
        self.assertEqual(page_tables.unshown(pages), [f"{self.figures / 'b.svg'}: no page shows this picture"])
        pages[1].write_text("![what b shows](figures/b.svg) ![another](../../docs/figures/a.svg)\n", encoding="utf-8")
        self.assertEqual(page_tables.unshown(pages), [f"a.svg: is described in different words by {pages[0]} and {pages[1]}"])

    def test_what_cannot_be_a_dot_is_refused_by_name(self):
        self.record("two.json", *self.runs(64, 1, 2), *self.runs(64, 2, 2))
        self.record("alone.json", self.runs(64, 1, 2)[0])
        self.record("libraries.json", *self.runs(64, 1, 2)[1:])
        for name, complaint in (("two", "64³ has several runs"), ("alone", "no library ran 64³"), ("libraries", "libraries alone")):
            with self.assertRaisesRegex(BadInput, complaint):
                self.filled(self.REQUEST.format(f"{name}.json"))
        with self.assertRaisesRegex(BadInput, "needs a result file and picture=NAME.svg"):
            self.filled("<!-- ratios: two.json -->\n<!-- end -->\n")


class SanitizerTable(WithResults):
    CASE = '<testcase name="{}" time="2.04" status="{}"><system-out>{}</system-out></testcase>'

    def collected(self, *cases):
        junit = self.folder / "junit.xml"
        junit.write_text(f"<testsuite>{''.join(self.CASE.format(*case) for case in cases)}</testsuite>", encoding="utf-8")
        return ctest_results.collect("sanitizers", junit, self.folder / "r.json")

    def test_a_row_says_what_each_tool_counted_of_a_program(self):
        results = self.collected(
            ("a_test: memcheck", "run", "ERROR SUMMARY: 0 errors"),
            ("a_test: initcheck", "run", "ERROR SUMMARY: 1372 errors ERROR SUMMARY: 1352 errors were not printed"),
            ("b_test: racecheck", "fail", "RACECHECK SUMMARY: 3 hazards displayed"), ("b_test: memcheck", "notrun", ""))
        (self.folder / "tests").mkdir()
        (self.folder / "tests" / "2026-11-21-g-sanitizers.json").write_text(json.dumps(results), encoding="utf-8")
        text = self.filled("<!-- sanitizers: -->\n<!-- end -->\n")
        self.assertIn("| errors that it counted | memcheck | racecheck | initcheck |", text)
        self.assertIn("| `a_test` | 0 |  | always: 1,372 |\n| `b_test` |  | **failed** |  |", text)
        self.assertIn("2 passed, 1 failed, 1 skipped; 8 s of one GPU. G, T, today, commit `abc`.", text)
        self.assertIn("| 4 tests | today | G |", self.filled("<!-- files: tests -->\n<!-- end -->\n"))

    def test_a_false_alarm_may_only_change_its_number(self):
        place = "Uninitialized access to 0x48 on access by cudaMemcpy source"
        said = {"ERROR SUMMARY: 7 errors": "failed", f"{place} ERROR SUMMARY: 7 errors": "passed", place: "failed",
                f"{place} ERROR SUMMARY: 0 errors": "failed", f"x.cpp: FAILED: {place} ERROR SUMMARY: 7 errors": "failed"}
        for text, outcome in said.items():
            with self.subTest(text), contextlib.redirect_stdout(io.StringIO()):
                self.assertEqual(self.collected(("07_streams_test: initcheck", "fail", text))["tests"][0]["outcome"], outcome)
                other = self.collected(("01_naive_test: initcheck", "fail", text))
                self.assertEqual(other["tests"][0]["outcome"], "failed")

    def test_a_run_of_nothing_is_refused(self):
        with self.assertRaisesRegex(BadInput, "no tests"):
            self.collected()


class GpuTests(WithResults):
    CASE = SanitizerTable.CASE
    SKIPPED = "x.cpp:1: SKIPPED:\nexplicitly with message:\n  needs 2 GPUs\n\n===\ntest cases: 1 | 1 skipped\n"

    def text_of(self, *cases):
        junit = self.folder / "junit.xml"
        junit.write_text(f"<testsuite>{''.join(self.CASE.format(*case) for case in cases)}</testsuite>", encoding="utf-8")
        results = ctest_results.collect("tests", junit, self.folder / "r.json")
        (self.folder / "tests").mkdir(exist_ok=True)
        (self.folder / "tests" / "2026-11-21-g-tests.json").write_text(json.dumps(results), encoding="utf-8")
        return self.filled("<!-- tests: tests -->\n<!-- end -->\n")

    def test_it_says_how_many_passed_and_why_others_did_not_run(self):
        text = self.text_of(("a: 1", "run", "All tests passed"), ("a: 2", "notrun", self.SKIPPED), ("b: 1", "notrun", self.SKIPPED),
                            ("c", "notrun", "first line\nskipped: there is no python3\n"))
        self.assertIn("Of 4 tests 1 passed, none failed, and 3 were skipped. G, T, today, commit `abc`.", text)
        self.assertIn("| 2 | needs 2 GPUs |\n| 1 | skipped: there is no python3 |\n", text)

    def test_one_reason_in_other_words_is_one_reason(self):
        text = self.text_of(("a: 1", "notrun", self.SKIPPED.replace("message:", "messages:")), ("a: 2", "notrun", self.SKIPPED),
                            ("b", "notrun", "06_x needs code for sm_90a, which alone has wgmma; this build is\nfor 90\n"),
                            ("c", "notrun", "skipped: yours needs code for sm_90a, which\n\nall is well\n"))
        self.assertIn("| 2 | needs 2 GPUs |\n| 2 | needs code for sm_90a |\n", text)

    def test_what_failed_is_named(self):
        self.assertIn("Of 2 tests 1 passed, 1 failed: `a: 2`, and none were skipped.",
                      self.text_of(("a: 1", "run", ""), ("a: 2", "fail", "")))

    def test_a_file_that_is_missing_is_said_and_one_that_is_not_whole_refused(self):
        self.assertIn("was not recorded yet", self.filled("<!-- tests: none -->\n<!-- end -->\n"))
        (self.folder / "tests").mkdir()
        (self.folder / "tests" / "2026-11-21-g-tests.json").write_text("{}", encoding="utf-8")
        with self.assertRaisesRegex(BadInput, "is no result file"):
            self.filled("<!-- tests: tests -->\n<!-- end -->\n")


class AblationTable(WithResults):
    def test_each_row_says_how_much_longer_the_lesson_takes_without_something(self):
        (self.folder / "experiments").mkdir()
        self.record("experiments/2026-01-01-g-ablate_05.json", run("05_x", 1))
        self.record("experiments/2026-01-02-g-ablate_05.json", run("05_x", 100, without="(as it is)"),
                    run("05_x", 50, without="stores by TMA") | {"time_us_median": 20, "clock_mhz": 600})
        text = self.filled("<!-- ablation: 05 06 -->\n<!-- end -->\n")
        self.assertIn("| 05, 64³: (as it is) | 10 | 100 |  |  | 1000 |\n| 05, 64³: stores by TMA | 20 | 50 | +100.0 % | +20.0 % | 600 |", text)
        self.assertIn("| 06: not recorded yet |", text)
        self.assertIn("\nG, today, commit `abc`.\n", text)

    def test_a_table_of_the_most_names_lesson_and_shape_once(self):
        (self.folder / "experiments").mkdir()
        self.record("experiments/2026-01-02-g-ablate_05.json", run("05_x", 100, without="(as it is)"),
                    run("05_x", 60, without="a") | {"time_us_median": 20}, run("05_x", 50, without="b") | {"time_us_median": 30})
        text = self.filled("<!-- ablation: 05 most=1 -->\n<!-- end -->\n")
        self.assertIn("| 05, 64³, without | µs | TFLOP/s | time | clocks | SM clock, MHz |", text)
        self.assertIn("| (as it is) | 10 | 100 |  |  | 1000 |\n| b | 30 | 50 | +200.0 % | +200.0 % | 1000 |\n\n", text)

    def test_no_lesson_is_refused(self):
        with self.assertRaisesRegex(BadInput, "needs the numbers"):
            self.filled("<!-- ablation: -->\n<!-- end -->\n")


class CodeExcerpts(WithResults):
    def test_the_code_between_two_markers_is_shown_without_its_indentation(self):
        (self.folder / "k.cuh").write_text("a\n  // [x]\n  b {\n    c\n  }\n  // [x]\nd\n", encoding="utf-8")
        self.assertEqual(page_tables.code_excerpt("", ["k.cuh", "x"], self.folder), ["```cpp", "b {", "  c", "}", "```"])

    def test_of_several_cases_only_the_one_that_is_asked_for_is_shown(self):
        (self.folder / "k.cuh").write_text("// [x]\na\n  if constexpr (kN == 64) b(64);\n  if constexpr (kN == 128) b(128);\n// [x]\n",
                                           encoding="utf-8")
        self.assertEqual(page_tables.code_excerpt("", ["k.cuh", "x", "kN=128"], self.folder), ["```cpp", "a", "  b(128);", "```"])
        with self.assertRaisesRegex(BadInput, "there is no line .* == 96"):
            page_tables.code_excerpt("", ["k.cuh", "x", "kN=96"], self.folder)
        with self.assertRaisesRegex(BadInput, "perhaps NAME=NUMBER"):
            page_tables.code_excerpt("", ["k.cuh", "x", "kN"], self.folder)

    def test_a_file_without_the_markers_is_refused(self):
        (self.folder / "k.cuh").write_text("// [x]\nb\n", encoding="utf-8")
        with self.assertRaisesRegex(BadInput, "twice"):
            page_tables.code_excerpt("", ["k.cuh", "x"], self.folder)


class PageTables(WithResults):
    def test_a_row_says_the_gain_over_the_first_in_time_and_per_clock(self):
        text = self.filled("a\n<!-- table: r.json rows=slots -->\n<!-- end -->\nb\n")
        self.assertIn("| `1` | 10 | 100 | 25 % | 1000 | 1.00 | 1.00 |", text)
        self.assertIn("| `2` | 10 | 200 | 50 % | 800 | 2.00 | 2.50 |", text)

    def test_the_shapes_of_a_file_are_named_if_they_are_few_and_counted_if_they_are_many(self):
        for count, said in ((2, "at 64³, 65³."), (11, "at 11 shapes.")):
            self.record("r.json", *(run("01_x", 100, size=64 + i) for i in range(count)))
            text = self.filled("<!-- table: r.json rows=rung -->\n<!-- end -->")
            self.assertIn(f"commit `abc`; {said}", text)

    def test_a_table_names_cublas_only_if_it_took_part(self):
        self.record("r.json", run("01_x", 100), run("cublaslt", 300, b="row-major"))
        text = self.filled("<!-- table: r.json rows=rung -->\n<!-- end -->")
        self.assertIn("commit `abc`. Percent of the library:", text)
        text = self.filled("<!-- table: r.json rows=rung columns=core -->\n<!-- end -->")
        self.assertIn("commit `abc`; interleaved with cuBLAS at 64³.", text)
        self.record("r.json", {**run("01_x", 100), "verified": False}, run("cublaslt", 300, b="row-major"))
        text = self.filled("<!-- table: r.json rows=rung -->\n<!-- end -->")
        self.assertIn("commit `abc`; not all results are verified. Percent of the library:", text)

    def test_a_name_with_a_star_is_the_newest_file_and_without_one_a_line_says_so(self):
        request = "<!-- table: *-steps.json rows=slots -->\n<!-- end -->"
        self.assertIn("Not recorded yet.", self.filled(request))
        self.record("1-steps.json", run("01_x", 100, slots="1"))
        self.record("2-steps.json", run("01_x", 700, slots="1"))
        self.assertIn("| `1` | 10 | 700 |", self.filled(request))

    def test_percentages_are_of_the_fastest_library_at_the_size_of_the_row(self):
        self.record("r.json", run("01_x", 100, slots="1"), run("cublas_gemmex", 400, b="row-major"),
                    run("cublaslt", 500, b="transposed"), run("cublaslt", 900, size=128, b="row-major"))
        text = self.filled("<!-- table: r.json rows=slots -->\n<!-- end -->\n")
        self.assertIn("| slots | µs | TFLOP/s | % library | SM clock, MHz |", text)
        self.assertIn("| `1` | 10 | 100 | 20 % | 1000 |", text)
        self.assertIn("in the same interleaved run (cublasLt, best of 8, B transposed at 64³).", text)

    def test_a_prediction_stands_beside_what_was_measured(self):
        self.record("q.json", run("01_x", 100, slots="1"), run("01_x", 200, slots="2"))
        text = self.filled("<!-- table: q.json rows=slots predicted=tflops:,250 -->\n<!-- end -->")
        self.assertIn("| TFLOP/s | predicted, TFLOP/s | off by |", text)
        self.assertRegex(text, r"\| `1` \| \d+ \| 100 \|  \|  \|")
        self.assertRegex(text, r"\| `2` \| \d+ \| 200 \| 250 \| −20 % \|")
        text = self.filled("<!-- table: q.json rows=slots predicted=gain:,2.4 -->\n<!-- end -->")
        self.assertRegex(text, r"\| × first \| predicted \| off by \| × first, per clock \|\n")
        self.assertRegex(text, r"\| `2` .* \| 2.00 \| 2.4 \| −17 % \| 2.00 \|")
        for words, message in (("tflops:1", "needs 2 numbers for the column 'TFLOP/s'"), ("tflops:1,2,3", "needs 2 numbers"),
                               ("joules:1,2", "needs tflops, gain, clocks, and"), ("1,2", "needs tflops, gain, clocks, and"),
                               ("clocks:1,2", "needs 2 numbers for the column 'clocks of a step'"),
                               ("tflops:1,many", "predicted=: could not convert")):
            with self.assertRaisesRegex(BadInput, message):
                self.filled(f"<!-- table: q.json rows=slots predicted={words} -->\n<!-- end -->")

    def test_clocks_of_a_step_are_those_of_the_busiest_multiprocessor(self):
        self.record("q.json", step("03", 100, size=4096), step("05", 100, size=5000))  # of tiles of 128 × 128 and 128 × 256, and of 64 k
        text = self.filled("<!-- table: q.json predicted=clocks:20, -->\n<!-- end -->")
        self.assertIn("| SM clock, MHz | clocks of a step | predicted | off by |", text)
        self.assertIn(f"| 1000 | {10 * 1000 / (8 * 64):.0f} | 20 | 0 % |", text)
        self.assertIn(f"| 1000 | {10 * 1000 / (7 * 79):.0f} |  |  |", text)

    def test_of_a_range_only_what_lies_outside_was_not_predicted(self):
        for predicted, measured, error in (("", 1, ""), ("250", 250, "0 %"), ("250", 249.9, "0 %"), ("250", 500, "+100 %"),
                                           ("1.1–1.2", 1.15, "0 %"), ("1.1–1.2", 1.32, "+10 %"), ("1.1–1.2", 0.99, "−10 %")):
            self.assertEqual(off_by(predicted, measured, of_speed=True), error)

    def test_an_error_is_that_of_the_predicted_time_and_negative_where_it_took_longer(self):
        self.assertEqual(off_by("100", 125), "−20 %")
        self.assertEqual(off_by("100", 80, of_speed=True), "−20 %")
        self.assertEqual(off_by("100", 80), "+25 %")

    def test_what_stands_around_a_table_is_kept_and_filling_again_changes_nothing(self):
        text = self.filled("a\n<!-- table: r.json rows=slots -->\nold\n<!-- end -->\nb\n")
        self.assertTrue(text.startswith("a\n<!-- table:") and text.endswith("<!-- end -->\nb\n"))
        self.assertNotIn("old", text)
        self.assertEqual(text, self.filled(text))

    def test_two_settings_make_rows_and_columns(self):
        self.record("p.json", *(run("01_x", 100 * s * c, slots=str(s), copy=str(c)) for s in (1, 2) for c in (1, 3)))
        text = self.filled("<!-- table: p.json rows=copy columns=slots -->\n<!-- end -->")
        self.assertIn("| TFLOP/s by copy | slots 1 | slots 2 |", text)
        self.assertIn("| `3` | 300 | 600 |", text)

    def test_runs_that_would_share_a_place_are_refused(self):
        self.record("p.json", run("01_x", 1, slots="1", copy="a"), run("01_x", 2, slots="1", copy="a", size=32))
        with self.assertRaisesRegex(BadInput, "share a place"):
            self.filled("<!-- table: p.json rows=copy columns=slots -->\n<!-- end -->")

    def test_other_ways_are_compared_with_the_kernel_in_time_and_bytes(self):
        one, two = run("01_x", 200), run("01_x", 100, instead="two kernels")
        one.update(time_us_median=10, global_bytes=1e6)
        two.update(time_us_median=20, global_bytes=3e6)
        self.record("w.json", one, two)
        text = self.filled("<!-- table: w.json rows=instead -->\n<!-- end -->")
        self.assertIn("| in one kernel, 64³ | 10 | 200 | 1000 | 1.00 | 1 |", text)
        self.assertIn("| two kernels, 64³ | 20 | 100 | 1000 | 2.00 | 3 |", text)

    def test_lessons_are_compared_with_the_fastest_library_at_each_size(self):
        self.record("l.json", run("05_x", 100), dict(run("06_x", 150), choice="64x64"), run("06_x", 600, size=128),
                    run("cublaslt", 300, b="row-major"), run("cublas_gemmex", 200, b="transposed"),
                    run("cublaslt", 300, size=128, b="transposed"))
        text = self.filled("<!-- table: l.json rows=size -->\n<!-- end -->")
        self.assertIn("| M×N×K | fastest library | µs | 05, µs | 05, % of it | 06, µs | 06, % of it | chosen |", text)
        self.assertIn("| 64³ | cublasLt, best of 8, B row-major | 10.0 | 10.0 | 33.3 % | 10.0 | 50.0 % | 64x64 |", text)
        self.assertIn("| 128³ | cublasLt, best of 8, B transposed | 10.0 |  |  | 10.0 | 200.0 % |  |", text)
        self.assertIn("| geometric mean |  |  |  | 33.3 % |  | 100.0 % |  |", text)

    def test_rungs_of_a_lesson_are_compared_with_the_library_apart(self):
        off, on = ({**run("06_x", speed, pdl=pdl), "choice": "64x64"} for speed, pdl in ((150, "off"), (240, "on")))
        self.record("l.json", off, on, run("cublaslt", 300, b="row-major"))
        text = self.filled("<!-- table: l.json rows=size -->\n<!-- end -->")
        self.assertIn("| 06, pdl off, µs | 06, pdl off, % of it | 06, pdl on, µs | 06, pdl on, % of it | chosen |", text)
        self.assertIn("| 10.0 | 50.0 % | 10.0 | 80.0 % | 64x64 |", text)

    def test_a_rung_that_is_compared_with_the_library_is_called_as_in_the_climb(self):
        self.record("l.json", step("06.1", 100), step("06", 200), dict(step("any", 300), choice="64x64"),
                    run("cublaslt", 300, b="row-major"))
        text = self.filled("<!-- table: l.json rows=size -->\n<!-- end -->")
        self.assertIn("| 06, µs | 06, % of it | 06.1, µs | 06.1, % of it | any, µs | any, % of it | chosen |", text)
        self.assertIn("| 10.0 | 66.7 % | 10.0 | 33.3 % | 10.0 | 100.0 % | 64x64 |", text)
        text = self.filled("<!-- table: l.json rows=size only=rung:any -->\n<!-- end -->")
        self.assertIn("| M×N×K | fastest library | µs | any, µs | any, % of it | chosen |", text)

    def test_a_step_of_03_from_before_the_setting_l1_is_called_as_today(self):
        self.record("l.json", step("03.1", 100, slots="1"), step("03", 200, slots="3"))
        text = self.filled("<!-- table: l.json rows=rung columns=slots -->\n<!-- end -->")
        self.assertIn("| `03.2` | 100 |", text)
        self.assertNotIn("03.1", text)
        self.record("l.json", step("03.1", 100, slots="1", l1="always"), step("03.2", 110, slots="1", l1="auto"))
        self.assertIn("| `03.1` | 100 |", self.filled("<!-- table: l.json rows=rung columns=slots -->\n<!-- end -->"))

    def test_launches_by_calls_stand_beside_those_through_a_graph(self):
        library = run("cublaslt", 300, b="row-major")
        self.record("e.json", dict(run("06_x", 150), eager_us=12.34), run("06_x", 150, size=128), dict(library, eager_us=20.0),
                    dict(run("cublas_gemmex", 200, b="row-major"), eager_us=15.0))
        text = self.filled("<!-- table: e.json rows=launch -->\n<!-- end -->")
        self.assertIn("| through a graph, µs | by calls, µs | fastest library by calls, µs |", text)
        self.assertRegex(text, r"\| 64³ \| .*06.* \| 10\.0 \| 12\.3 \| 15\.0 \|")
        self.assertRegex(text, r"\| 128³ \| .*06.* \| 10\.0 \|  \|  \|")

    def test_energy_is_shown_of_all_runs_that_have_it_with_watts_from_joules_and_time(self):
        kernel = dict(run("05_x", 150, clock=1500), joules=0.005)
        self.record("e.json", kernel, dict(run("cublaslt", 300, b="row-major"), power_watts=321))
        text = self.filled("<!-- table: e.json rows=energy -->\n<!-- end -->")
        self.assertIn("|  | µs | clock, MHz | 1000 cycles | W | J a launch |", text)
        self.assertRegex(text, r"05.*, 64³ \| 10\.0 \| 1500 \| 15 \| 500 \| 0\.005 \|")
        self.assertRegex(text, r"cublasLt.*, 64³ \| 10\.0 \| 1000 \| 10 \| 321 \|  \|")

    def test_only_narrows_the_runs_down(self):
        text = self.filled("<!-- table: r.json rows=slots only=slots:2,lesson:01_x -->\n<!-- end -->")
        self.assertNotIn("`1`", text)
        with self.assertRaisesRegex(BadInput, "no run"):
            self.filled("<!-- table: r.json only=size:4096 -->\n<!-- end -->")

    def test_the_climb_is_that_of_the_newest_result_file(self):
        self.record("s.json", step("01", 77), run("cublas_gemmex", 100, b="row-major"))
        self.assertIn("77", self.filled("<!-- steps: -->\n<!-- end -->\n"))

    def climb(self):
        """Six steps at three sizes, and a skinny one, with two libraries."""
        speeds = {"02": 100, "03.1": 120, "03": 150, "04.1": 120, "04.2": 130, "04": 140}
        runs = [step(number, speed, size=size) for size in (64, 128, 256) for number, speed in speeds.items()]
        skinny = [dict(step(number, speed / 2), n=1024) for number, speed in speeds.items()]
        return runs + skinny + [run("cublas_gemmex", 100, size=128, b="row-major"), run("cublaslt", 200, size=128, b="transposed")]

    def test_the_climb_shows_every_shape_with_the_gain_over_what_a_step_builds_on_and_its_cause(self):
        self.record("s.json", *self.climb())
        text = self.filled("<!-- steps: -->\n<!-- end -->\n")
        self.assertIn("| step | over | its one cause | 64³ | 128³ | 256³ | 64×1024×64 |", text)
        cause = page_tables.step_of("03").cause
        self.assertRegex(text, rf"\| \[03\]\(\.\./03_double_buffer/gemm.cuh\) .* \| 03\.1 \| {cause} "
                               r"\| 150<br>1.25× \| 150 \(75 %\)<br>1.25× \| 150<br>1.25× \| 75.0<br>1.25× \|")
        self.assertRegex(text, r"04\.1\]\(.*?1_tma.cuh\) .* \| 02 \| .* \| 120<br>1.20× \|")
        self.assertIn("From 02 to 04 at 128³: 1.20 × 1.08 × 1.08 = 1.40.", text)
        self.assertNotIn("is slower than", text)  # 04.1 does not build on 03

    def test_percentages_are_of_the_fastest_variant_of_the_library_which_is_named(self):
        self.record("s.json", *self.climb())
        text = self.filled("<!-- steps: -->\n<!-- end -->\n")
        self.assertIn("| cublasGemmEx, B row-major |  |  |  | 100 (50 %) |", text)
        self.assertIn("of its fastest variant in the same interleaved run (cublasLt, best of 8, B transposed at 128³).", text)

    def test_a_step_whose_base_was_not_recorded_has_no_gain(self):
        self.record("s.json", step("04", 100))
        self.assertRegex(self.filled("<!-- steps: -->\n<!-- end -->\n"), r"\| \[04\].* \|  \| .* \| 100 \|")

    def test_the_climb_names_a_step_that_is_slower_than_what_it_builds_on(self):
        self.record("s.json", step("02", 100), step("03", 99.7), step("04.1", 90), step("02", 77, size=128), step("04.1", 78, size=128))
        text = self.filled("<!-- steps: -->\n<!-- end -->\n")
        self.assertIn("04.1 is slower than 02 at 64³.", text)
        self.assertEqual(text.count("is slower than"), 1)

    def cube(self, size=64):
        return [run("05_cube", 100 * int(slots) * int(blocks) + (50 if roles == "on" else 0), size=size, roles=roles, slots=slots,
                    blocks=blocks) for roles in ("off", "on") for blocks, slots in cube_table.PLACES]

    def test_the_picture_of_an_sm_colours_what_a_lesson_uses(self):
        _, alt, picture = sm_picture.drawn("line", ["03"])
        self.assertEqual(alt, "An SM and the memories: lesson 03 uses memory, L2, shared memory, tensor cores and registers")
        self.assertEqual((picture.count('class="copy"'), picture.count('class="multiply"'), picture.count('class="part"')), (4, 1, 3))
        self.assertEqual(picture.count('class="way"'), 4)
        for words in ([], ["05"], ["02", "03"]):
            with self.assertRaisesRegex(BadInput, "needs one of the lessons 01, 02, 03, 04, 06"):
                sm_picture.drawn("line", words)

    def test_clocks_of_a_step_stand_beside_those_predicted(self):
        results = self.folder / "docs" / "results"
        (results / "experiments").mkdir(parents=True)
        tile = self.folder / cube_table.TILE
        tile.parent.mkdir(parents=True)
        tile.write_text("constexpr TileShape kTile{16, 32, 64};\n", encoding="utf-8")
        runs = self.cube()
        runs[6]["time_us_median"] *= 2
        self.record("docs/results/experiments/2026-01-01-g-cube.json", *runs)
        words = ["sizes=64", "table=steps", "predicted=1,2,3,4,5,6", "without=7,8,9,10,11,12"]
        text = cube_table.cube_text("line", words, results)
        steps = 1  # the busiest SM has one of 4 × 2 tiles, which have one step
        off, on = (run["time_us_median"] * run["clock_mhz"] / steps for run in (runs[0], runs[6]))
        self.assertNotEqual(on, off)
        self.assertRegex(text[2], rf"^\| 1 slot \| 1 \| {on:.0f} \| −\d+ % \| 7 \| {off:.0f} \| −\d+ % \|$")
        self.assertEqual(cube_table.cube_pictures("line", words, results, self.folder), {})
        short = cube_table.cube_text("line", words[:3], results)
        self.assertRegex(short[2], rf"^\| 1 slot \| 1 \| {on:.0f} \| −\d+ % \| {off:.0f} \| {100 * (1 - on / off):.0f} % \|$".replace("| -", "| −"))
        for wrong in (["sizes=64", "table=steps"], ["sizes=64", "table=some"], ["sizes=64", "predicted=1,2,3,4,5,6"],
                      [*words[:3], "without=7"], [*words[:2], words[3]]):
            with self.assertRaisesRegex(BadInput, "table= may be no, or steps with 6 numbers"):
                cube_table.cube_text("line", wrong, results)

    def test_the_cube_is_a_table_and_a_picture(self):
        (self.folder / "experiments").mkdir()
        self.assertEqual(cube_table.cube_text("line", ["sizes=64"], self.folder), ["Not recorded yet."])
        self.record("experiments/2026-01-01-g-cube.json", *self.cube(), run("cublaslt", 500, b="row-major"))
        text = cube_table.cube_text("line", ["sizes=64"], self.folder)
        self.assertIn("| 64³, a computing thread asks TMA | 100 | 200 | 300 | 400 | 200 | 400 | 500 |", text)
        self.assertIn("| 64³, roles | 150 | 250 | 350 | 450 | 250 | 450 | 500 |", text)
        self.assertIn("At 64³ roles bring 1.50×, 1.25×, 1.17×, 1.12×, 1.25×, 1.12×", text[-1])
        self.assertIn("a ring of four instead of one slot 3.00×, a second block on the multiprocessor 1.67×", text[-1])
        (path, picture), = cube_table.cube_pictures("line", ["sizes=64"], self.folder, self.folder).items()
        xml.etree.ElementTree.fromstring(picture)
        self.assertEqual((path.name, len(re.findall('class="(on|off)" x=', picture))), ("cube.svg", 12 + 2))
        for words, message in (([], "needs sizes="), (["sizes=65"], "has no cube at 65³")):
            with self.assertRaisesRegex(BadInput, message):
                cube_table.cube_text("line", words, self.folder)

    def test_attention_stands_beside_the_backends_of_pytorch(self):
        self.assertEqual(experiment_tables.attention_table("line", ["lengths"], self.folder), ["Not recorded yet."])
        def of(name, length, causal, tflops):
            return {"attention": name, "length": length, "batch": 1, "heads": 1, "causal": causal, "time_us_median": 1e4 / tflops,
                    "tflops": tflops, "clock_mhz": 1500}
        runs = [of("step 1", 256, False, 100), of("step 2", 256, False, 400), of("cudnn", 256, False, 500), of("flash", 256, False, 300),
                of("step 1", 256, True, 80), of("step 2", 256, True, 350), of("flash", 256, True, 250)]
        path = self.folder / "experiments/2026-01-01-g-attention.json"
        path.parent.mkdir()
        path.write_text(json.dumps({"date": "2026-01-01", "commit": "c", "gpu": "G", "torch": "2", "cudnn": 9, "runs": runs}), encoding="utf-8")
        text = experiment_tables.attention_table("line", ["lengths"], self.folder)
        self.assertEqual(text[2:4], ["| 256, full | 100 | 400 | 500 | 300 | 0.80 |", "| 256, causal | 80 | 350 |  | 250 | 1.40 |"])
        text = experiment_tables.attention_table("line", ["steps", "length=256", "causal=no", "predicted=4500000,1237500"], self.folder)
        clocks = 100 * 1500 * 132 / 4  # of two by two blocks
        self.assertEqual(text[2], f"| step 1 | 4500000 | {clocks:.0f} | −9 % | 100 |  | 1500 |")
        self.assertIn("| step 2 | 1237500 | 1237500 | 0 % | 400 | 4.00 | 1500 |", text)
        text = experiment_tables.attention_table("line", ["steps", "length=256", "causal=yes"], self.folder)
        self.assertTrue(text[2].startswith(f"| step 1 | {125 * 1500 * 132 / 3:.0f} | 80 |"), text)
        for words, message in (([], "needs lengths or steps"), (["steps"], "needs length="),
                               (["steps", "length=256", "causal=no", "predicted=1"], "has 2 steps at this problem, and predicted= 1 numbers")):
            with self.assertRaisesRegex(BadInput, message):
                experiment_tables.attention_table("line", words, self.folder)

    def test_attention_is_predicted_from_parts(self):
        runs = [{"length": 256, "heads": 33, "batch": 2, "causal": False, "time_us_median": 4 * 6000 * 66 / 132, "clock_mhz": 1}]
        parts = experiment_tables.Parts(wait=50, hand_over=100, ask=40)
        # 264 tiles of 64 queries are two full waves. A thread has 64 scores: 2 for a maximum, 1 + 8 + 1 for an exponential, 1 for half a
        # conversion, and 1 for a sum of O; two rows take 2 * (4 + 2) + 8 + 4 each.
        softmax = 64 * 14 + 2 * 24
        expected = [2 * (2 * (512 + 50 + 140) + softmax), 3000, 512 + 3000 - 562, 3000 - 562, 3000 - 562]
        self.assertEqual(experiment_tables.predictions(runs, parts), [f"{clocks}" for clocks in expected])
        runs[0]["batch"] = 1  # now there is one, with the same time for half of the work
        self.assertEqual(experiment_tables.predictions(runs, parts), [f"{expected[0]}", "6000", "5950", "5438", "5438"])
        runs[0]["heads"] = 34  # four tiles more
        self.assertEqual(experiment_tables.predictions(runs, parts)[0], f"{expected[0] * 264 / 136:.0f}")
        runs[0]["clock_mhz"] = .1  # no product is faster than the tensor cores
        self.assertEqual(experiment_tables.predictions(runs, parts)[2:], ["2048"] * 3)

    def test_the_predictions_of_attention_hold_for_the_newest_records(self):
        recorded = page_tables.ROOT / "docs/results"
        results = experiment_tables.read_attention(recorded)
        runs = sorted((run for run in results["runs"] if run["attention"].startswith("step") and run["length"] == 16384 and not run["causal"]),
                      key=lambda run: run["attention"])
        parts = experiment_tables.parts_of("line", recorded)
        for run, predicted in zip(runs, experiment_tables.predictions(runs, parts), strict=True):
            with self.subTest(run["attention"]):
                self.assertLess(abs(int(predicted) / experiment_tables.clocks_of_block(run) - 1), .15)
        with self.assertRaisesRegex(BadInput, "has 0 rows of product with m 64, n 128, no loads, waited for"):
            experiment_tables.parts_of("line", self.folder)

    def test_the_climb_ends_with_the_levels_of_the_host_of_the_newest_experiment(self):
        def level(number, us, streams, kernel, size):
            return dict(schedule(us, 50, size=size, level=str(number), streams=streams, kernel=kernel, batches="7"), tflops=1e4 / us)
        (self.folder / "experiments").mkdir()
        self.record("experiments/2026-01-01-g-levels.json", level(0, 1, "1", "old", 8))
        self.record("experiments/2026-01-02-g-levels.json", level(0, 200, "1", "02_y", 64), level(1, 100, "3", "02_y", 64))
        # What `ladder` ran of them itself is no rung, and no size of the climb.
        self.record("s.json", step("01", 77), level(0, 1, "1", "02_y", 8))
        text = self.filled("<!-- steps: -->\n<!-- end -->\n")
        self.assertIn("| step | over | its one cause | 64³ |\n", text)
        self.assertIn("| [07](../07_streams/), level 0: 1 stream | 02_y | 50.0 (25 %) |", text)
        self.assertIn("| [07](../07_streams/), level 1: 3 streams | 02_y | 100 (50 %)<br>2.00× |", text)
        self.assertIn("7 batches of some 64 rows; G, today", text)

    def test_the_picture_of_the_climb_has_a_bar_for_each_rung_and_a_line_for_the_library(self):
        self.record("s.json", step("02", 100), step("03.1", 120), step("03", 150), step("04.1", 170), run("cublaslt", 200, b="transposed"))
        words = ["picture=c.svg", "sizes=64"]
        text = climb_picture.climb_text("line", words, self.folder)
        self.assertIn("the fastest kernel reaches 170 of 200 at 64³](../docs/figures/c.svg)", text[0])
        (path, picture), = climb_picture.climb_pictures("line", words, self.folder, self.folder).items()
        self.assertEqual(path.name, "c.svg")
        self.assertEqual(len(re.findall('class="(bar|best)" x=', picture)), 4)
        self.assertEqual(picture.count('<line class="fastest"'), 1)
        for label in (">100<", ">150<", ">1.25×<", ">1.70×<", ">200<", "04.1 (02) "):
            self.assertIn(label, picture)
        self.assertEqual(picture.count("(02)"), 1)
        self.record("s.json", *(one for size in (64, 32) for one in (step("02", 100 + size, size=size), run("cublaslt", 200 + size, size=size, b="transposed"))))
        (_, picture), = climb_picture.climb_pictures("line", ["picture=c.svg", "sizes=64,32"], self.folder, self.folder).items()
        for label in (">32³<", 'class="most">132<', 'class="fastest-text">232<', 'class="fastest-text">264<'):
            self.assertIn(label, picture)
        with self.assertRaisesRegex(BadInput, "there is room for 3 sizes"):
            climb_picture.climb_text("line", ["picture=c.svg", "sizes=64,32,16,8"], self.folder)
        xml.etree.ElementTree.fromstring(picture)
        # Where the line would cross a number it has a gap.
        self.record("s.json", step("02", 50), step("03.1", 25), step("03", 70), step("04.1", 700), run("cublaslt", 100, b="transposed"))
        (_, picture), = climb_picture.climb_pictures("line", words, self.folder, self.folder).items()
        self.assertEqual(picture.count('<line class="fastest"'), 2)  # around three rows
        for bad, message in (("sizes=65", "has no climb beside a library at 65³"), ("sizes=x", "must be sizes"), ("sizes=4x4", "must be sizes"),
                             ("picture=../c.svg sizes=64", "must be the name of an SVG file")):
            with self.assertRaisesRegex(BadInput, message):
                climb_picture.climb_text("line", ["picture=c.svg", *bad.split()], self.folder)

    def test_titles_with_a_comma_can_be_left_out(self):
        self.assertEqual(page_requests.titles_of({"without": "µs,SM_clock,_MHz,05,_µs"}), ["µs", "SM clock, MHz", "05, µs"])
        self.assertEqual(page_requests.titles_of({}), [])

    def test_the_picture_of_the_climb_says_where_a_step_runs_an_earlier_kernel(self):
        self.assertEqual([climb_picture.kernel_of(step, (4096,) * 3) for step in ("05.2", "05.3", "05", "06.1", "06.2", "06.3", "06")],
                         ["05.2", "05.3", *["05"] * 5])
        self.assertEqual([climb_picture.kernel_of(step, (5000,) * 3) for step in ("05", "06.1", "06.2", "06.3", "06")], ["05", *["06.1"] * 4])
        self.assertEqual([climb_picture.kernel_of(step, (256, 1024, 8192)) for step in ("05.1", "05.3", "05", "06.1", "06.2", "06.3", "06")],
                         ["05.1", *["05.2"] * 4, "06.3", "06"])
        self.record("s.json", *(step(number, speed, size=4096) for number, speed in (("05.3", 99.9), ("05", 100), ("06.1", 103))),
                    run("cublaslt", 200, size=4096, b="transposed"))
        words = ["picture=c.svg", "sizes=4096"]
        self.assertIn("the fastest kernel reaches 100 of 200 at 4096³]", climb_picture.climb_text("line", words, self.folder)[0])
        (_, picture), = climb_picture.climb_pictures("line", words, self.folder, self.folder).items()
        self.assertEqual([picture.count(f'class="{style}" x=') for style in ("best", "same", "bar")], [2, 1, 0])
        self.assertIn(">= 05<", picture)

    def test_the_climb_only_goes_up(self):
        def climb(*of_base, size=4096, base="04.4", over="04"):
            rows = [dict(step(number, 1, size=size), time_us_q1=times[0], time_us_median=times[1], time_us_q3=times[2])
                    for number, times in ((base, of_base), (over, (102, 103, 104)))]
            return climb_table.Climb(rows).descents()
        self.assertEqual(climb(99, 100, 101), [("04", "04.4", (4096,) * 3)])
        self.assertEqual(climb(99, 100, 103), [])  # the quartiles overlap
        self.assertEqual(climb(101.5, 102, 102), [])  # less than 1 %
        self.assertEqual(climb(99, 100, 101, size=1024), [("04", "04.4", (1024,) * 3)])
        self.assertEqual(climb(99, 100, 101, size=1024, base="02.1", over="02.2"), [])  # a larger tile, SMs without one
        self.assertEqual(len(climb(99, 100, 101, base="02.1", over="02.2")), 1)
        for one, base in lattice.diffs():  # each row that there is counts
            self.assertEqual(climb(99, 100, 101, base=base.id, over=one.id), [(one.id, base.id, (4096,) * 3)])

    def test_the_recorded_climb_only_goes_up(self):
        path = max((ROOT / "docs/results").glob("*.json"))
        recorded = climb_table.Climb(climb_table.read_results(path)["runs"])
        missing = [number for number in recorded.steps if number not in recorded.rungs and number != "any"]
        if missing:
            self.skipTest(f"{path.name} was recorded before there were {', '.join(missing)}")
        self.assertEqual(recorded.descents(), KNOWN_DESCENTS)

    def test_two_pages_may_not_draw_two_pictures_of_one_name(self):
        for page, blocks in (("a.md", 2), ("b.md", 4)):
            (self.folder / page).write_text(f"<!-- concept: multicast blocks={blocks} rows=64 -->\n<!-- end -->\n", encoding="utf-8")
        with mock.patch.object(sys, "argv", ["page_tables.py", *(str(self.folder / page) for page in ("a.md", "b.md"))]), \
                mock.patch.object(page_tables, "FIGURES", self.folder), contextlib.redirect_stdout(io.StringIO()):
            with self.assertRaisesRegex(BadInput, "b.md: multicast.svg is another picture on an earlier page"):
                page_tables.main()

    def test_concepts_are_drawn_and_bad_requests_named(self):
        for words, inside in (("mbarrier_laps", ">loader waits at empty for<"), ("tma_box rows=64 columns=256", "4 × 64 × 128 = 32768 bytes"),
                              ("multicast blocks=2 rows=64", ">receives 64<"),
                              ("partial_sums blocks=2", "share 1 of C"), ("roles slots=1", ">pipe_cs<"),
                              ("two_levels batches=4 tiles=7", ">kernel 3<"), ("fragments columns=256", "128 sums in each thread"),
                              ("sums_to_operand", "up to s[56]–s[63], p[7]."),
                              ("attention_turns product=512 wait=53 softmax=1772", ">step 4: a softmax beside PV, too<")):
            picture = concept_pictures.drawn("line", words.split())[2]
            xml.etree.ElementTree.fromstring(picture)
            self.assertIn(inside, picture)
        for words, message in (("such_a_picture", "there is no picture 'such_a_picture'"), ("tma_box rows=64", "columns= must be"),
                               ("multicast blocks=3 rows=64", "must be a multiple"),
                               ("mbarrier_laps slots=2", "'slots=2' is neither"), ("mbarrier_laps only=a:b", "means nothing here")):
            with self.assertRaisesRegex(BadInput, message):
                concept_pictures.drawn("line", words.split())

    def test_a_thread_holds_the_sums_that_the_code_gives_it(self):
        sources = concept_pictures.Sources(page_tables.ROOT)
        self.assertEqual(concept_pictures.held_by(sources, 37), [(17, 2), (17, 3), (25, 2), (25, 3)])
        held = [place for thread in range(128) for place in concept_pictures.held_by(sources, thread)]
        self.assertEqual(sorted(held), [(row, column) for row in range(64) for column in range(8)])

    def test_sums_that_the_code_packs_are_where_the_operand_needs_them(self):
        sources = concept_pictures.Sources(page_tables.ROOT)
        self.assertEqual(concept_pictures.packed(sources)[4:6], [((8, 9), (1, 0)), ((10, 11), (1, 1))])
        self.assertEqual(concept_pictures.operand_places(sources, 37), [((17, 2), (17, 3)), ((25, 2), (25, 3)), ((17, 10), (17, 11)), ((25, 10), (25, 11))])
        swapped = [(sums, (operand, register ^ 1)) for sums, (operand, register) in concept_pictures.packed(sources)]
        with mock.patch.object(concept_pictures, "packed", lambda sources: swapped), self.assertRaisesRegex(BadInput, "are not where register"):
            concept_pictures.drawn("line", ["sums_to_operand"])

    def test_turns_of_attention_hide_a_softmax_as_far_as_the_tensor_cores_have_work(self):
        def clocks(step, softmax):
            return concept_pictures.attention_in_time(step, 500, 50, softmax, 10000)[1]
        self.assertEqual([clocks(step, 2000) for step in (1, 3, 4)], [2 * (2 * 550 + 2000), 2 * 500 + 50 + 2000, 500 + 50 + 2000])
        self.assertEqual([clocks(step, 100) for step in (1, 3, 4)], [2 * (2 * 550 + 100), 4 * 500, 4 * 500])
        work, _ = concept_pictures.attention_in_time(4, 500, 50, 2000, 10000)
        products = sorted(one[2:] for one in work if one[1] != "softmax")
        self.assertTrue(all(end <= begin for (_, end), (begin, _) in zip(products, products[1:])))

    def test_the_two_laps_of_a_slot_end_as_they_began_two_phases_later(self):
        events = concept_pictures.laps()
        first, last = events[0][1:], events[-1][1:]
        self.assertEqual([(phase + 2, missing, 0) for phase, missing, _ in first], list(last))

    def test_lanes_have_a_box_for_each_piece_of_work_at_one_scale(self):
        def lane(process, thread, name):
            return {"ph": "M", "name": "thread_name", "pid": process, "tid": thread, "args": {"name": name}}

        def work(process, thread, begin, length):
            return {"ph": "X", "name": "w", "pid": process, "tid": thread, "ts": begin, "dur": length}

        (self.folder / "t.json").write_text(json.dumps({
            "metadata": {"device": "G", "date": "today", "commit": "abc", "summary": [
                {"experiment": "levels 8x64x32", "schedule": "one < two"}, {"experiment": "levels 8x64x32", "schedule": "both"}]},
            "traceEvents": [lane(0, 0, "engine: upload"), lane(0, 1, "engine: compute"), lane(0, 2, "stream 0"),
                            lane(1, 3, "engine: upload"), work(0, 0, 100, 1000), work(0, 1, 1100, 3000), work(0, 2, 0, 9000),
                            work(1, 3, 7, 2000)]}), encoding="utf-8")
        words = ["t.json", "picture=l.svg", "schedules=0,1"]
        text = lanes_picture.lanes_text("line", words, self.folder)
        self.assertIn("one < two: 4.0 ms; both: 2.0 ms", text[0])
        self.assertIn("Batches of 8 rows, weights of 32 × 64; G, today", text[-1])
        picture = lanes_picture.lanes_pictures("line", words, self.folder, self.folder)[self.folder / "l.svg"]
        xml.etree.ElementTree.fromstring(picture)
        widths = {kind: float(width) for kind, width in re.findall('class="(upload|compute)" .*? width="(.*?)"', picture)}
        self.assertEqual(widths, {"upload": 159, "compute": 239})  # half and three quarters of the lane, less a pixel
        for bad, message in ((["t.json", "picture=l.svg", "schedules=2"], "has schedules 0 to 1"),
                             (["u.json", "picture=l.svg", "schedules=0"], "u.json: No such file"),
                             (["t.json", "picture=../l.svg", "schedules=0"], "must be the name of an SVG file"),
                             (["t.json", "schedules=0"], "needs picture= and schedules=")):
            with self.assertRaisesRegex(BadInput, message):
                lanes_picture.lanes_text("line", bad, self.folder)

    def test_lessons_say_what_they_build_on(self):
        below = {one.id: one.base for one in lattice.steps()}
        self.assertEqual([below[number] for number in ("01", "02.1", "02", "03.1", "03", "04.1", "04", "05.1", "05", "06.1", "any")],
                         ["", "01", "02.5", "02", "03.2", "02", "04.4", "04", "05.3", "05", "06"])
        self.assertEqual([one.diff for one, _ in lattice.diffs()][6:11], ["diff_02_03_1", "diff_03_1_2", "diff_03_2_03", "diff_02_04_1", "diff_04_1_2"])

    def test_links_lead_to_the_lessons_from_where_the_page_lies(self):
        root = page_tables.ROOT
        for page, link in (("05_y/README.md", "](../05_y/)"), ("docs/concepts/c.md", "](../../05_y/)"), ("d.md", "](05_y/)")):
            self.assertEqual(page_tables.linked_from(root / page, "[y](../05_y/)"), f"[y{link}")

    def test_bad_requests_are_named(self):
        for line, message in (("r.json rows=slots -->\n", "has no <!-- end -->"),
                              ("r.json sort=slots -->\n<!-- end -->", "'sort=slots' is neither"),
                              ("missing.json -->\n<!-- end -->", "missing.json: No such file")):
            with self.assertRaisesRegex(BadInput, message):
                self.filled("<!-- table: " + line)


def schedule(us, bound_us=None, size=64, **settings):
    """A run of a whole schedule, as lesson 07 writes it."""
    bound = {"bound_us": bound_us} if bound_us else {}
    return dict(run("07_streams", None, size=size, **settings), time_us_median=us, time_us_q1=us * 0.99,
                time_us_q3=us * 1.01, **bound)


class Schedules(WithResults):
    def test_a_level_is_compared_with_the_first_and_with_its_bound(self):
        self.record("1-x-levels.json", schedule(9e9, 1, level="0"))
        self.record("2-x-levels.json", schedule(4000, 1000, level="0", bound_by="upload"),
                    schedule(1050, 1000, level="1", bound_by="upload"))
        text = self.filled("<!-- schedules: *-x-levels.json rows=level -->\n<!-- end -->")
        self.assertIn("| level | ms | ± % | × first | bound, ms | × bound | bound by |", text)
        self.assertIn("| `1` | 1.05 | 1.0 | 3.81 | 1 | 1.050 | upload |", text)

    def test_shapes_get_a_column_and_settings_can_be_shown(self):
        self.record("s.json", schedule(10, memory="pinned", kind="a", bytes="1"),
                    schedule(20, memory="pinned", kind="a", bytes="2", size=128),
                    schedule(30, memory="pageable", kind="b", bytes="3"))
        text = self.filled("<!-- schedules: s.json rows=memory,kind show=bytes -->\n<!-- end -->")
        self.assertIn("| memory | kind | rows×N×K | µs | ± % | × first | bytes |", text)
        self.assertIn("| `pageable` | `b` | 64³ | 30 | 1.0 | 0.33 | 3 |", text)
        self.assertIn("| `pinned` | `a` | 128³ | 20 | 1.0 | 1.00 | 2 |", text)

    def test_headings_spell_units_as_readers_do(self):
        self.record("s.json", schedule(10, memory="pool", host_us_in_calls="1", reserved_mb="2", gb_per_s="3"))
        text = self.filled("<!-- schedules: s.json rows=memory show=host_us_in_calls,reserved_mb,gb_per_s -->\n<!-- end -->")
        self.assertIn("| × first | host µs in calls | reserved MB | GB/s |", text)

    def test_a_page_may_show_the_figures_alone_that_it_uses(self):
        self.record("s.json", schedule(4000, 1000, level="0", bytes="1"), schedule(2000, 1000, level="1", bytes="2"))
        text = self.filled("<!-- schedules: s.json rows=level figures=times_bound,time -->\n<!-- end -->")
        self.assertIn("| level | ms | × bound |\n| --- | --: | --: |\n| `0` | 4 | 4.000 |\n| `1` | 2 | 2.000 |\n\n", text)
        text = self.filled("<!-- schedules: s.json rows=level figures=none show=bytes -->\n<!-- end -->")
        self.assertIn("| level | bytes |\n| --- | --: |\n| `0` | 1 |\n", text)

    def test_predicted_times_stand_beside_those_measured(self):
        self.record("s.json", schedule(4000, level="0"), schedule(2000, level="1"))
        text = self.filled("<!-- schedules: s.json rows=level figures=time,gain predicted=5, -->\n<!-- end -->")
        self.assertIn("| level | ms | predicted, ms | off by | × first |\n| --- | --: | --: | --: | --: |\n"
                      "| `0` | 4 | 5 | +25 % | 1.00 |\n| `1` | 2 |  |  | 2.00 |\n", text)
        for words in ("figures=time predicted=5", "figures=gain predicted=5,4"):
            with self.assertRaisesRegex(BadInput, "predicted= needs 2 numbers for the column 'ms'"):
                self.filled(f"<!-- schedules: s.json rows=level {words} -->\n<!-- end -->")

    def test_times_of_a_second_setting_stand_beside_each_other(self):
        self.record("s.json", schedule(2000, rows="1", how="run"), schedule(1500, rows="1", how="closed form"),
                    schedule(3000, rows="2", how="run"), schedule(4000, rows="2", how="run", size=128))
        text = self.filled("<!-- schedules: s.json rows=rows columns=how -->\n<!-- end -->")
        self.assertIn("| rows | rows×N×K | run, ms | closed form, ms |\n| --- | --: | --: | --: |\n"
                      "| `1` | 64³ | 2 | 1.5 |\n| `2` | 64³ | 3 |  |\n| `2` | 128³ | 4 |  |\n", text)
        with self.assertRaisesRegex(BadInput, "several runs have how run in one row"):
            self.filled("<!-- schedules: s.json rows=memory columns=how -->\n<!-- end -->")

    def test_without_a_file_a_line_says_so_and_bad_requests_are_named(self):
        self.assertIn("Not recorded yet.", self.filled("<!-- schedules: no-*.json rows=level -->\n<!-- end -->"))
        self.record("s.json", schedule(10, level="0"))
        for words, message in (("s.json", "rows=KEY is missing"), ("s.json rows=level only=level:7", "no run of s.json"),
                               ("s.json rows=level figures=time,speeds", "figures=speeds is none of time, spread"),
                               ("s.json rows=level columns=how figures=time", "columns=KEY shows times alone")):
            with self.assertRaisesRegex(BadInput, message):
                self.filled(f"<!-- schedules: {words} -->\n<!-- end -->")


class StreamTables(WithResults):
    def parts(self, spare, product, all_reduce, sequential, overlapped):
        times = {"product alone": product, "all-reduce alone": all_reduce, "sequential": sequential,
                 "overlapped": overlapped}
        return [{**run("07_streams", None, schedule=schedule, spare_sms=str(spare), devices="2", batches="10"),
                 "time_us_median": 10 * us} for schedule, us in times.items()]

    def test_what_is_hidden_is_a_share_of_the_shorter_part_without_spare_sms(self):
        self.record("a.json", *self.parts(0, 800, 400, 1200, 1180), *self.parts(8, 850, 500, 1300, 860))
        text = self.filled("<!-- hidden: a.json -->\n<!-- end -->")
        self.assertIn("| 0 | 800 | 400 | 1200 | 1180 | 5 |", text)
        self.assertIn("| 8 | 850 | 500 | 1300 | 860 | 85 |", text)

    def test_a_run_that_is_not_whole_is_refused(self):
        self.record("a.json", *self.parts(0, 800, 400, 1200, 1180)[:3])
        with self.assertRaises(BadInput):
            self.filled("<!-- hidden: a.json -->\n<!-- end -->")

    def test_engines_have_columns_if_they_did_something(self):
        (self.folder / "traces").mkdir()
        busy = {"upload": 50.0, "compute": 90.0, "download": 20.0, "peer copy": 0.0, "all-reduce": 0.0, "host function": 3.0}
        use = {"experiment": "levels", "schedule": "streams", "device": 0, "length_us": 100.0, "busy_us": busy,
               "two_at_once_us": 60.0, "three_at_once_us": 10.0}
        metadata = {"device": "G", "date": "today", "commit": "abc", "summary": [use, use | {"schedule": "copies"}]}
        (self.folder / "traces" / "t.json").write_text(json.dumps({"metadata": metadata}), encoding="utf-8")
        text = self.filled("<!-- engines: t.json -->\n<!-- end -->")
        self.assertIn("| schedule | ms | upload, % | compute, % | download, % | two, % | three, % |", text)
        self.assertIn("| streams | 0.10 | 50 | 90 | 20 | 60 | 10 |", text)
        self.assertIn("| copies | 0.10 |", text)
        text = self.filled("<!-- engines: t.json schedules=1 -->\n<!-- end -->")
        self.assertIn("| copies | 0.10 |", text)
        self.assertNotIn("| streams |", text)
        with self.assertRaisesRegex(BadInput, "schedules=2: the file has schedules 0 to 1"):
            self.filled("<!-- engines: t.json schedules=2 -->\n<!-- end -->")

    def test_what_was_not_recorded_says_so(self):
        for kind in ("engines", "hidden"):
            self.assertIn("Not recorded yet.", self.filled(f"<!-- {kind}: none*.json -->\n<!-- end -->"))
            with self.assertRaises(BadInput):
                self.filled(f"<!-- {kind}: none.json other -->\n<!-- end -->")


def role(name, wait, work, other):
    """A role of a timeline's summary, whose times for a tile add up to 100."""
    return {"block": 0, "role": name, "tiles": 1, "waited_percent": wait,
            "per_tile": {"wait": wait, "load": work, "compute": 0, "store": 0, "other": other}}


def timeline(summary, loads=(), asks=(), unit="ns"):
    """A timeline with a loader that begins to fill slots at the times `loads`, and compute that asks for them."""
    def span(lane, name, begin):
        return {"ph": "X", "pid": 0, "tid": lane, "name": name, "ts": begin, "dur": 0.5}
    events = [{"ph": "M", "pid": 0, "tid": lane, "name": "thread_name", "args": {"name": name}}
              for lane, name in enumerate(("compute 0", "loader"))]
    events += [span(1, "load", begin) for begin in loads] + [span(0, "wait pipe_lc.full[0]", begin) for begin in asks]
    return {"traceEvents": events,
            "metadata": {"summary": summary, "unit": unit, "device": "G", "date": "today", "commit": "abc",
                         "shape": "64x64x64", "launch_us": "11", "untraced_launch_us": "10"}}


class Timelines(WithResults):
    REQUEST = "<!-- timeline: 04_x 05_y -->\n<!-- end -->\n"

    def put(self, name, content):
        (self.folder / "traces").mkdir(exist_ok=True)
        (self.folder / "traces" / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")

    def test_without_files_a_line_says_so(self):
        self.assertIn("-->\nNo timelines have been recorded yet", self.filled(self.REQUEST))
        self.put("04_x", timeline([role("loader", 90, 5, 5)]))
        self.assertIn("No timelines have been recorded yet", self.filled(self.REQUEST))

    def test_roles_stand_side_by_side_and_warpgroups_are_averaged(self):
        self.put("04_x", timeline([role("compute 0", 40, 50, 10), role("compute 1", 60, 30, 10), role("loader", 90, 4, 6)]))
        self.put("05_y", timeline([role("compute 0", 2, 95, 3), role("loader", 80, 15, 5), role("storer", 99, 1, 0)]))
        text = self.filled(self.REQUEST)
        self.assertIn("| role | 04: waits, % | works, % | 05: waits, % | works, % |", text)
        self.assertIn("| loader | 90 | 4 | 80 | 15 |\n| compute | 50 | 40 | 2 | 95 |\n| storer |  |  | 99 | 1 |", text)
        self.assertIn("G, today, commit `abc`, 64x64x64, block 0; recording slowed the kernels by 10 % and 10 %.", text)
        self.assertIn("[04](../docs/results/traces/04_x.json), [05](../docs/results/traces/05_y.json)", text)
        self.assertEqual(text, self.filled(text))

    def test_the_loader_is_ahead_by_what_it_has_begun_and_compute_has_not_taken(self):
        self.put("04_x", timeline([role("loader", 90, 5, 5)], loads=(0, 10, 20), asks=(5, 15, 25)))
        self.put("05_y", timeline([role("loader", 90, 5, 5)], loads=(0, 1, 2, 3), asks=(5, 15)))
        self.assertIn("asks for the next one, on average: 1.0 in 04, 3.5 in 05.", self.filled(self.REQUEST))

    def test_the_cpu_device_cannot_say_how_far_the_loader_is_ahead(self):
        for name in ("04_x", "05_y"):
            self.put(name, timeline([role("loader", 90, 5, 5)], loads=(0,), asks=(5,), unit="cycles"))
        self.assertNotIn("ahead", self.filled(self.REQUEST))


CSV = """==PROF== Connected to process 1
"ID","Process ID","Kernel Name","dram__bytes_read.sum","launch__registers_per_thread","made__up.sum"
"","","","byte","register/thread",""
"0","1","void lesson05::gemm<int>(int)","1,234,567,000","168","n/a"
"""


class Phases(WithResults):
    """Copies and products of a block: in turns, or overlapping."""

    def record_trace(self, name, settings, lanes):
        (self.folder / "traces").mkdir(exist_ok=True)
        events = []
        for thread, (lane, spans) in enumerate(lanes.items()):
            events.append({"name": "thread_name", "ph": "M", "pid": 0, "tid": thread, "args": {"name": lane}})
            events += [{"name": what, "ph": "X", "pid": 0, "tid": thread, "ts": begin, "dur": end - begin}
                       for what, begin, end in spans]
        metadata = {"settings": settings, "device": "G", "date": "today", "commit": "abc", "shape": "8x8x8"}
        (self.folder / "traces" / f"{name}.json").write_text(
            json.dumps({"traceEvents": events, "metadata": metadata}), encoding="utf-8")

    def cells(self, name):
        text = self.filled(f"<!-- phases: {name} -->\n<!-- end -->")
        (row,) = [line for line in text.splitlines() if line.startswith("| [")]
        return [cell.strip() for cell in row.split("|")[2:-1]]

    def test_one_slot_is_filled_or_read_whoever_does_it(self):
        steps = range(0, 40, 4)
        self.record_trace("04_x", "step=tma", {
            "compute": [span for t in steps for span in (("wait pipe_lc.full[0]", t + (t > 0) * .1, t + 2), ("compute", t + 2, t + 4))],
            "loader": [("load", t, t + .1) for t in steps]})
        roles, slots, predicted, copies, both, products, neither, together = self.cells("04_x")
        self.assertEqual((roles, slots, predicted), ("yes", "1", "take turns"))
        self.assertEqual((copies, both, products, neither), ("50", "0", "50", "0"))
        self.assertLess(float(together), -.95)

    def test_rounding_makes_no_share_negative(self):
        moments = [begin / 10 for begin in range(1, 300, 25)]
        self.record_trace("04_x", "step=tma", {
            "compute": [span for t in moments for span in (("wait pipe_lc.full[0]", t - .1, t + .9), ("compute", t + .9, t + 1))],
            "loader": [("load", t, t + .1) for t in moments]})
        self.assertNotIn("-0", self.cells("04_x"))

    def test_with_several_slots_copies_go_on_beside_products_and_are_never_taken_for_longer_than_they_were(self):
        # A copy takes 3; it is asked for 4 before its product begins, and only the first is waited for.
        self.record_trace("03_x", "slots=3", {
            "warpgroup": [("load", 0, .1), ("load", .1, .2), ("wait copies", .5, 3)] +
                         [span for t in range(4, 40, 4) for span in (
                             ("load", t - 1, t - .9), ("load", t - .9, t - .8), ("compute", t - .8, t + 2.9),
                             ("wait copies", t + 2.9, t + 3))]})
        roles, slots, predicted, copies, both, products, neither, _ = self.cells("03_x")
        self.assertEqual((roles, slots, predicted), ("no", "3", "overlap"))
        self.assertGreater(int(both), 60)
        self.assertLess(int(copies), 20)
        self.assertEqual(sum(map(int, (copies, both, products, neither))), 100)

    def test_what_is_missing_is_said_and_what_does_not_fit_is_refused(self):
        self.assertIn("| 05_x: not recorded yet |", self.filled("<!-- phases: 05_x -->\n<!-- end -->"))
        self.record_trace("05_x", "slots=2", {"loader": [("load", 0, 1)], "compute": [("compute", 1, 2)]})
        with self.assertRaisesRegex(BadInput, "05_x.json: loader: has 1 loads"):
            self.filled("<!-- phases: 05_x -->\n<!-- end -->")


class Profiles(WithResults):
    def setUp(self):
        super().setUp()
        self.raw = self.folder / "raw"
        self.raw.mkdir()
        header = {"date": "today", "commit": "abc", "gpu": "G", "driver": "1", "toolkit": "T", "runs": []}
        self.write("header.json", json.dumps(header))
        self.write("metrics.txt", "dram__bytes_read.sum\nlaunch__registers_per_thread\nmade__up.sum\n")
        self.write("profiler.txt", "2025.3\n")
        self.write("00.txt", "05_y --group 8 --size 64\n")
        self.write("00.csv", CSV)

    def write(self, name, text):
        (self.raw / name).write_text(text, encoding="utf-8")

    def record_profile(self, *launches):
        (self.folder / "profiles").mkdir(exist_ok=True)
        profile = {"date": "today", "commit": "abc", "gpu": "G", "profiler": "2025.3", "launches": launches}
        (self.folder / "profiles" / "2026-11-21-g-profiles.json").write_text(json.dumps(profile), encoding="utf-8")

    def launch(self, metrics, **settings):
        return {"lesson": "05_y", "core": "auto", "m": 64, "n": 64, "k": 64, "settings": settings, "metrics": metrics}

    def test_l2_has_a_view_and_the_orders_a_record_of_their_own(self):
        self.record_profile(self.launch({}, group="2"))
        self.assertIn("No profile has been recorded", self.filled("<!-- order_profile: rows=group columns=l2 -->\n<!-- end -->"))
        launch = self.launch({"gpu__time_duration.sum": 2000, "lts__t_sector_hit_rate.pct": 65.4, "lts__t_bytes.sum": 3e6,
                              "l1tex__m_xbar2l1tex_read_bytes.sum": 4e6, "dram__bytes_read.sum": 1e6, "dram__bytes_write.sum": 0}, group="8")
        path = self.folder / "profiles/2026-11-21-g-profiles.json"
        self.record_profile(launch)
        path.rename(self.folder / "profiles/2026-11-21-g-profile_order.json")
        text = self.filled("<!-- order_profile: rows=group columns=l2 -->\n<!-- end -->")
        self.assertIn("| group | µs | L2 moves, MB | L2 hits, % | L2 to SMs, MB | read, MB | written, MB |", text)
        self.assertIn("| `8` | 2 | 3 | 65 | 4 | 1 | 0 |", text)

    def test_what_the_profiler_wrote_becomes_a_file_that_names_absent_metrics(self):
        results = profiles.collect(self.raw)
        self.assertEqual(results["absent"], ["made__up.sum"])
        (launch,) = results["launches"]
        self.assertEqual((launch["lesson"], launch["m"], launch["settings"]), ("05_y", 64, {"group": "8"}))
        self.assertEqual(launch["metrics"], {"dram__bytes_read.sum": 1234567000, "launch__registers_per_thread": 168})

    def test_a_launch_that_was_not_profiled_is_refused_with_the_profilers_words(self):
        self.write("00.csv", "==ERROR== No kernels were profiled.\n")
        with self.assertRaisesRegex(BadInput, "no kernel was profiled: ==ERROR== No kernels were profiled"):
            profiles.collect(self.raw)

    def test_without_a_profile_a_line_says_so(self):
        self.assertIn("-->\nNo profile has been recorded yet", self.filled("<!-- profile: rows=group -->\n<!-- end -->"))

    def test_a_column_takes_the_first_of_its_metrics_that_exists_and_stays_empty_without(self):
        tensor = profiles.TENSOR_METRICS
        self.record_profile(self.launch({tensor[1]: 91.6, tensor[3]: 5, "dram__bytes_read.sum": 67e6}, group="8"))
        text = self.filled("<!-- profile: rows=group only=lesson:05_y -->\n<!-- end -->")
        self.assertIn("| `8` | 92 |  |  | 67 |  |  |  |  |  |  |", text)
        self.assertIn(f"one launch each under Nsight Compute 2025.3, caches flushed before it; `{tensor[1]}`.", text)

    def test_a_profile_leaves_out_columns(self):
        self.record_profile(self.launch({"dram__bytes_read.sum": 67e6}, group="8"))
        text = self.filled("<!-- profile: rows=group without=L2_hits,_%,written,_MB,warps,_% -->\n<!-- end -->")
        self.assertIn("| group | tensor cores, % | L2 to SMs, MB | read, MB | registers |", text)
        with self.assertRaisesRegex(BadInput, "'no such', which is no column"):
            self.filled("<!-- profile: rows=group without=no_such -->\n<!-- end -->")

    def test_the_use_of_l2_and_of_issue_slots_is_shown_where_it_was_recorded(self):
        new = {"lts__throughput.avg.pct_of_peak_sustained_elapsed": 41.6,
               "sm__inst_issued.avg.pct_of_peak_sustained_active": 12.2}
        self.record_profile(self.launch({"dram__bytes_read.sum": 67e6, **new}))
        text = self.filled("<!-- profile: -->\n<!-- end -->")
        self.assertIn("| tensor cores, % | issue slots, % | L2, % | L2 hits, % |", text)
        self.assertIn("|  | 12 | 42 |  |", text)
        self.record_profile(self.launch({"dram__bytes_read.sum": 67e6}))
        self.assertIn("| tensor cores, % | L2 hits, % |", self.filled("<!-- profile: -->\n<!-- end -->"))

    def test_profiling_by_hand_asks_for_the_sections_that_the_tables_show(self):
        def commands_of(page):
            return re.findall(r"^    ncu (?:.*\\\n)*.*$", page.read_text(encoding="utf-8"), re.MULTILINE)

        pages = [*sorted(page_tables.ROOT.glob("0*_*/README.md")), page_tables.ROOT / "docs/concepts/profiling.md"]
        self.assertEqual(len(pages), 8)
        for page in pages:
            # A lesson's page leaves it to its deeper pages, or says it itself; a page that asks for single metrics shows those.
            commands = commands_of(page) or [one for deeper in page.parent.glob("deeper/*.md") for one in commands_of(deeper)
                                             if "--metrics" not in one]
            with self.subTest(page.parent.name):
                self.assertTrue(commands)
                for command in commands:
                    self.assertEqual(re.findall(r"--section (\w+)", command), list(profiles.SECTIONS))
                    self.assertIn("--clock-control none", command)

    def test_a_recipe_that_has_no_record_says_so(self):
        text = (page_tables.ROOT / "07_streams/deeper/timeline.md").read_text(encoding="utf-8")
        self.assertRegex(text, r"We have not run this\nrecipe; .*\n\n    nsys profile ")

    def test_the_limit_of_residency_and_the_most_frequent_stalls_are_named(self):
        stall = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio".format
        self.record_profile(self.launch({
            "launch__occupancy_limit_registers": 1, "launch__occupancy_limit_shared_mem": 1, "launch__occupancy_limit_warps": 5,
            stall("selected"): 1, stall("long_scoreboard"): 6, stall("barrier"): 3, stall("wait"): 1}))
        text = self.filled("<!-- profile: -->\n<!-- end -->")
        self.assertIn("| registers, shared memory (1) | long scoreboard 60 %, barrier 30 % |", text)
        self.assertIn("| [05_y](../05_y/) |", text)

    def test_views_show_flops_for_each_byte_what_fits_and_what_is_waited_for(self):
        stall = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio".format
        self.record_profile(self.launch({"dram__bytes_read.sum": 2**16, "dram__bytes_write.sum": 2**16,
                                         "lts__t_bytes.sum": 2**15, "launch__occupancy_limit_shared_mem": 2,
                                         stall("barrier"): 3, stall("wait"): 1}))
        def view(name):
            return self.filled(f"<!-- profile: columns={name} -->\n<!-- end -->")
        self.assertIn("| [05_y](../05_y/) | 4.0 | 16.0 |  |", view("roofline"))
        self.assertIn("| blocks by shared memory |", view("residency"))
        self.assertIn("|  | barrier 75 %, wait 25 % |", view("waits"))
        with self.assertRaisesRegex(BadInput, "columns= is one of all, roofline, residency, waits, copies"):
            view("made_up")

    def test_copies_that_look_into_l1_and_those_that_go_past_it_are_counted_apart(self):
        def counted(access, past, width):
            return self.launch({profiles.COPIES.format("access"): access, profiles.COPIES.format("bypass"): past,
                                profiles.COPY_SECTORS.format("access"): 16 * access,
                                profiles.COPY_SECTORS.format("bypass"): 16 * past,
                                "l1tex__m_xbar2l1tex_read_bytes.sum": 512e6}, bytes=width)
        self.record_profile(self.launch({}, slots="2"), counted(0, 1e6, "16"), counted(3e6, 1e6, "4"))
        text = self.filled("<!-- profile: rows=bytes columns=copies only=bytes:16,bytes:4 -->\n<!-- end -->")
        self.assertIn("| `16` | 1.00 | 1.00 | 100 | 100 | 0.0 | 16.0 |  |  | 512 |", text)
        self.assertIn("| `4` | 4.00 | 4.00 | 25 | 0 | 48.0 | 16.0 |  |  | 512 |", text)
        with self.assertRaisesRegex(BadInput, "columns=copies needs only=bytes"):
            self.filled("<!-- profile: columns=copies -->\n<!-- end -->")

    def test_launches_of_an_experiment_are_left_out_of_other_tables(self):
        self.record_profile(self.launch({}, slots="2"), self.launch({}, bytes="16"))
        self.assertNotIn("bytes 16", self.filled("<!-- profile: only=lesson:05_y -->\n<!-- end -->"))
        self.record_profile(self.launch({}, slots="2"))
        self.assertIn("No profile has been recorded yet",
                      self.filled("<!-- profile: rows=bytes columns=copies only=bytes:16 -->\n<!-- end -->"))

    def test_a_request_that_no_launch_meets_is_refused(self):
        self.record_profile(self.launch({}, group="8"))
        with self.assertRaisesRegex(BadInput, "no launch in 2026-11-21-g-profiles.json"):
            self.filled("<!-- profile: only=lesson:06_z -->\n<!-- end -->")


class Models(WithResults):
    def setUp(self):
        super().setUp()
        (self.folder / "model").mkdir()

    @staticmethod
    def prediction(size, slots, error, **more):
        return {"lesson": "05_y", "settings": {"group": "16"}, "m": size, "n": size, "k": size, "slots": slots,
                "bound": "load", "predicted_us": 90.4, "measured_us": 100.2, "error_percent": error, **more}

    def record_model(self, **more):
        model = {"date": "today", "commit": "abc", "gpu": "G",
                 "steps": [],
                 "climb": [], "slots": [], "bounds": [], "pictures": {"two": {"command": "predict --x", "lines": ["1 slot", "load 0"]}}}
        (self.folder / "model" / "2026.json").write_text(json.dumps({**model, **more}), encoding="utf-8")

    def test_a_kernel_has_a_row_and_a_size_has_columns(self):
        self.record_model(slots=[self.prediction(64, 2, -9.8), self.prediction(128, 2, 5.0, bound="tensor cores"),
                                 self.prediction(128, 3, 0.2)])
        text = self.filled("<!-- model: slots -->\n<!-- end -->")
        self.assertIn("| [05_y](../05_y/) | 2 | load or tensor cores | 90 | 100 | −10 % | 90 | 100 | +5 % |", text)
        self.assertIn("| [05_y](../05_y/) | 3 | load |  |  |  | 90 | 100 | +0 % |", text)

    def test_the_errors_of_a_lesson_are_those_of_all_its_rows(self):
        self.record_model(climb=[self.prediction(64, 2, 7.4)],
                          slots=[self.prediction(64, 2, -9.8), self.prediction(128, 3, 0.2)])
        self.assertIn("| [05_y](../05_y/) | 3 | −10 % | +7 % | 0 |", self.filled("<!-- model: errors -->\n<!-- end -->"))

    def test_every_gpu_that_the_figures_are_of_is_named(self):
        self.record_model()
        (self.folder / "experiments").mkdir()
        for name, gpu in (("slots", "G"), ("ring", "G"), ("levels", "H")):
            (self.folder / "experiments" / f"2026-01-02-g-{name}.json").write_text(json.dumps({"gpu": gpu}), encoding="utf-8")
        self.assertIn("\nG; levels: H; today, commit `abc`; measured", self.filled("<!-- model: errors -->\n<!-- end -->"))

    def test_what_has_no_ring_has_a_row_for_each_run(self):
        self.record_model(bounds=[{**self.prediction(64, 0, -38.2), "lesson": "01_x", "settings": {"along": "rows"}, "n": 32,
                                   "bound": "load units"}])
        self.assertIn("| [01_x](../01_x/), along rows | 64×32×64 | load units | 90 | 100 | −38 % |",
                      self.filled("<!-- model: bounds -->\n<!-- end -->"))
        self.assertIn("| [01_x](../01_x/) | 1 | −38 % | −38 % | 1 |", self.filled("<!-- model: errors -->\n<!-- end -->"))

    def test_a_picture_comes_with_its_command(self):
        self.record_model()
        self.assertIn("```\n$ predict --x\n1 slot\nload 0\n```", self.filled("<!-- model: picture two -->\n<!-- end -->"))

    def test_what_a_request_names_must_exist(self):
        with self.assertRaisesRegex(BadInput, "holds no predictions"):
            self.filled("<!-- model: slots -->\n<!-- end -->")
        self.record_model()
        with self.assertRaisesRegex(BadInput, "picture three: there is two"):
            self.filled("<!-- model: picture three -->\n<!-- end -->")
        with self.assertRaisesRegex(BadInput, "asks for neither"):
            self.filled("<!-- model: -->\n<!-- end -->")
        (self.folder / "model" / "2027.json").write_text("{}", encoding="utf-8")
        with self.assertRaisesRegex(BadInput, "2027.json: is no file of predictions: 'date' is missing"):
            self.filled("<!-- model: slots -->\n<!-- end -->")


class Lab(WithResults):
    def record_half(self, half, right_run="--size 8", **outcomes):
        (self.folder / "lab").mkdir(exist_ok=True)
        findings = {name: {"outcome": outcome, "message": "at `full[0]`"} for name, outcome in outcomes.items()}
        slow = {"lesson": "05_y", "name": "slow", "kind": "performance", "mistake": "Slow.", "run": "", "notice": "timing",
                "findings": {"result": {"outcome": "missed"}}}
        results = {"date": "today", "commit": "abc", "device": half, "right": [{"lesson": "05_y", "run": right_run,
                   "findings": findings}], "mistakes": [{**slow, "name": "no_wait", "kind": "handshake", "mistake":
                   "Nobody waits.", "notice": "races", "findings": findings}, slow]}
        if half != "cpu":
            results = {"records": [{**results, "record": "lab_05"}, {**results, "date": "before", "record": "lab_05", "mistakes": []}]}
        (self.folder / "lab" / ("d-cpu.json" if half == "cpu" else f"{half}.json")).write_text(json.dumps(results), encoding="utf-8")

    def lab(self, table):
        return self.filled(f"<!-- lab: {table} -->\n<!-- end -->")

    def test_without_a_file_the_page_says_so(self):
        self.assertIn("Nothing has been recorded yet", self.lab("matrix"))

    def test_each_half_has_a_table(self):
        self.record_half("cpu", result="missed", races="caught")
        self.assertIn("| handshake | Nobody waits. | – | yes |", self.lab("matrix"))
        self.record_half("h200", result="hang")
        self.assertIn("| on an H200 | result |\n| --- | --- |\n| [05 no_wait](../05_y/broken/mistakes.patch) | hang |", self.lab("matrix"))
        self.assertIn("| H200: result | 0 of 1, 1 hang |", self.lab("summary"))

    def test_each_lesson_has_a_file_of_the_gpu_that_it_was_tried_on(self):
        self.record_half("cpu", result="missed")
        self.record_half("h100", result="hang")
        self.assertIn("| on an H100 | result |", self.lab("matrix"))
        self.assertIn("On an H100, of 1 mistakes", self.lab("lesson 05").replace("\n", " "))
        of_05 = (self.folder / "lab" / "h100.json").read_text(encoding="utf-8")
        of_03 = of_05.replace("05_y", "03_x").replace("h100", "h200").replace("lab_05", "lab_03")
        (self.folder / "lab" / "h200.json").write_text(of_03, encoding="utf-8")
        on_cpu = self.folder / "lab" / "d-cpu.json"
        both = json.loads(on_cpu.read_text(encoding="utf-8"))
        both["mistakes"] += [{**row, "lesson": "03_x"} for row in both["mistakes"]]
        on_cpu.write_text(json.dumps(both), encoding="utf-8")
        self.assertIn("| on an H100 or H200 | result |", self.lab("matrix"))
        self.assertIn("\n03: h200; today, of an earlier kernel, commit `abc`.\n05: h100; today, of an earlier kernel, commit `abc`.\n", self.lab("matrix"))
        self.assertIn("On an H100, of 1 mistakes", self.lab("lesson 05").replace("\n", " "))
        self.assertIn("On an H200, of 1 mistakes", self.lab("lesson 03").replace("\n", " "))
        self.assertIn("Not recorded on a GPU yet.", self.lab("lesson 07"))

    def test_a_mistake_whose_patch_was_taken_out_is_shown_nowhere(self):
        self.record_half("cpu", result="missed", races="caught")
        self.plant("## slow\n")
        with mock.patch.object(lab_table, "ROOT", self.folder):
            self.assertNotIn("Nobody waits.", self.lab("matrix"))
            self.plant("## no_wait\n")
            self.assertIn("Nobody waits.", self.lab("matrix"))

    def plant(self, text):
        path = self.folder / "05_y" / "broken" / "mistakes.patch"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def test_links_lead_to_the_line_of_the_mistake(self):
        self.record_half("cpu", result="missed")
        self.plant("Two.\n\n## no_wait\n--- a/x\n+++ b/x\n-## none\n\n## slow\n")
        with mock.patch.object(lab_table, "ROOT", self.folder):
            self.assertIn("[05 no_wait](../05_y/broken/mistakes.patch#L3), [05 slow](../05_y/broken/mistakes.patch#L8)", self.lab("summary"))
        self.assertEqual(self.filled('[one](05_y/broken/mistakes.patch#L1 "slow"), [two](05_y/broken/mistakes.patch "no_wait")'),
                         '[one](05_y/broken/mistakes.patch#L8 "slow"), [two](05_y/broken/mistakes.patch#L3 "no_wait")')
        with self.assertRaisesRegex(BadInput, "mistakes.patch has no mistake gone"):
            self.filled('[one](05_y/broken/mistakes.patch#L1 "gone")')

    def test_the_links_of_all_pages_lead_to_the_mistake_that_they_name(self):
        link = re.compile(r'\[([^][]*)\]\(([^()\s]*mistakes[.]patch)#L(\d+)(?: "(\w+)")?\)')
        found = [(page, *parts) for page in page_tables.pages() for parts in link.findall(page.read_text(encoding="utf-8"))]
        self.assertGreater(len(found), 300)
        for page, words, path, line, title in found:
            lines = (page.parent / path).read_text(encoding="utf-8").splitlines()
            self.assertEqual(lines[int(line) - 1], f"## {title or words.split()[-1]}", f"{page}: {words}")

    def test_a_report_is_shown_as_it_was_printed(self):
        self.record_half("cpu", result="missed", races="caught")
        self.assertIn(lab_table.NONE_YET, self.lab("report 05 no_wait"))
        path = self.folder / "lab" / "d-cpu.json"
        results = json.loads(path.read_text(encoding="utf-8"))
        results["mistakes"][0]["findings"]["races"]["report"] = "x: error: race\n  here"
        path.write_text(json.dumps(results), encoding="utf-8")
        self.assertIn("-->\n```\nx: error: race\n  here\n```\n<!--", self.lab("report 05 no_wait"))
        self.assertIn("-->\n```\nx: error: race\n  ...\n```\n<!--", self.lab("report 05 no_wait lines=1"))
        self.assertIn("-->\n```\nx: error: race\n  here\n```\n<!--", self.lab("report 05 no_wait lines=2"))
        with self.assertRaisesRegex(BadInput, "report NN NAME"):
            self.lab("report 05 no_wait lines=none")
        with self.assertRaisesRegex(BadInput, "the lab has no mistake 05 no_such"):
            self.lab("report 05 no_such")

    def test_what_a_tool_said_on_a_gpu_is_cut_into_its_lines(self):
        self.record_half("cpu", synccheck="missed")
        self.record_half("h200", synccheck="caught")
        path = self.folder / "lab" / "h200.json"
        results = json.loads(path.read_text(encoding="utf-8"))
        results["records"][0]["mistakes"][0]["findings"]["synccheck"]["message"] = "6 errors: Missing wait. at f(int)+0x1 in a.cuh:49 by thread (1,0,0)"
        path.write_text(json.dumps(results), encoding="utf-8")
        self.assertIn("```\n6 errors: Missing wait.\n    at f(int)+0x1\n    in a.cuh:49\n    by thread (1,0,0)\n```",
                      self.lab("tool 05 no_wait synccheck"))
        with self.assertRaisesRegex(BadInput, "the lab has no mistake 05 no_wait racecheck"):
            self.lab("tool 05 no_wait racecheck")

    def test_a_tool_that_failed_is_no_finding(self):
        self.record_half("cpu", result="missed")
        self.record_half("h200", initcheck="broken")
        self.assertIn("no_wait](../05_y/broken/mistakes.patch) | tool failed |", self.lab("matrix"))
        self.assertIn("| H200: initcheck | 0 of 1, 1 tool failed |", self.lab("summary"))
        self.assertIn("notices: [05 no_wait](../05_y/broken/mistakes.patch), [05 slow]", self.lab("summary"))
        self.assertIn("| H200: initcheck | broken | at `full[0]` |", self.lab("false-alarms"))

    def test_what_nothing_notices_and_what_is_a_false_alarm_is_said(self):
        self.record_half("cpu", result="missed", races="caught")
        self.assertIn("notices: [05 slow](../05_y/broken/mistakes.patch).", self.lab("summary"))
        self.assertIn("| 05 `--size 8` | CPU: races | caught | at `full[0]` |", self.lab("false-alarms"))
        self.assertIn("| `at 'full[0]'` |", self.lab("messages"))
        self.record_half("h200", result="caught")
        self.assertNotIn("| result |", self.lab("messages"))
        self.record_half("h200", result="caught", bounded="caught")
        self.assertIn("no_wait](../05_y/broken/mistakes.patch) | bounded | `at 'full[0]'` |", self.lab("messages"))

    def test_who_says_the_same_of_the_right_kernel_has_noticed_nothing(self):
        self.record_half("cpu", result="missed")
        self.record_half("h200", right_run="", initcheck="caught")
        self.assertIn("no_wait](../05_y/broken/mistakes.patch) | always |", self.lab("matrix"))
        self.assertIn("| H200: initcheck | 0 of 1, 1 always |", self.lab("summary"))
        self.assertIn("On the H200 nothing notices 1 of the 1 mistakes of order and memory: [05 no_wait]", self.lab("summary"))
        self.assertIn("notices: [05 no_wait](../05_y/broken/mistakes.patch), [05 slow]", self.lab("summary"))

    def test_the_headline_counts_what_each_device_notices(self):
        self.record_half("cpu", result="missed", races="caught")
        self.record_half("h200", result="hang", racecheck="missed")
        text = self.lab("headline").replace("\n", " ")
        self.assertIn("The CPU device notices all of them. 1 were also tried on an H200, where ", text)
        self.assertIn("together notice 0; 1 more hang without a word, and 0 pass everything", text)

    def test_a_mistake_that_was_not_tried_on_the_gpu_counts_for_nothing_there(self):
        self.record_half("cpu", result="caught")
        self.record_half("h200", result="missed")
        path = self.folder / "lab" / "h200.json"
        results = json.loads(path.read_text(encoding="utf-8"))
        for row in results["records"][0]["mistakes"]:
            row["name"] = "of_old"
        path.write_text(json.dumps(results), encoding="utf-8")
        self.assertIn("nothing notices 0 of the 0 mistakes", self.lab("summary"))
        self.assertIn("; not tried there yet: 1", self.lab("summary"))
        self.assertIn("Some detector of either device notices each.", self.lab("summary"))
        text = self.lab("headline").replace("\n", " ")
        self.assertIn("0 were also tried on an H200, where ", text)
        self.assertIn("and 0 pass everything", text)

    def test_the_page_of_a_lesson_says_what_became_of_its_mistakes_on_the_gpu(self):
        self.record_half("cpu", result="missed")
        self.assertIn("Not recorded on a GPU yet.", self.lab("lesson 05"))
        self.record_half("h200", result="hang")
        self.assertIn("mistakes of order and memory in [broken](broken/mistakes.patch), 1 hangs.", self.lab("lesson 05").replace("\n", " "))
        link = "[no_wait](broken/mistakes.patch)"
        self.record_half("h200", result="missed", compiler="missed")
        self.assertIn(f"On the GPU nothing notices {link}.", self.lab("lesson 05").replace("\n", " "))
        self.record_half("h200", result="missed", bounded="hang")
        self.assertIn(f"A Debug build, which is slower, with time limits for waits, notices {link}.", self.lab("lesson 05").replace("\n", " "))

    def test_mutants_are_counted_and_survivors_explained(self):
        (self.folder / "lab").mkdir()
        rows = [{"lesson": "05_y", "name": "a", "file": "f", "mistake": "without `x();`", "noticed_by": "races"},
                {"lesson": "05_y", "name": "b", "file": "f", "mistake": "without `y();`", "noticed_by": None,
                 "reason": "It is not needed."}]
        head = {"date": "today", "commit": "abc", "device": "CPU device"}
        (self.folder / "lab" / "d-mutants.json").write_text(json.dumps({**head, "mutants": rows}), encoding="utf-8")
        self.assertIn("| 05 | 0 | 0 | 0 | 1 | 1 |", self.lab("mutants"))
        self.assertIn("| `f` | without `y();` | It is not needed. |", self.lab("mutants"))

    def test_an_unknown_table_is_refused(self):
        with self.assertRaisesRegex(BadInput, "must ask for one of"):
            self.lab("everything")


if __name__ == "__main__":
    unittest.main()
