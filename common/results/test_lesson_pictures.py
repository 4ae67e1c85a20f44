#!/usr/bin/env python3
"""Tests of lesson_pictures.py, time_picture.py, motion_picture.py, concept_pictures.py and of the lines that a step changes: what is read from the sources, what is drawn, and what is refused.
And what the profiler samples over time becomes series of the launch's own time, a table and a picture."""
import json
import re
import tempfile
import unittest
import xml.etree.ElementTree
from pathlib import Path
from unittest import mock

import concept_pictures
import lesson_pictures
import motion_picture
import sampled
import time_picture
from climb_table import BadInput
from idea_pictures import PHONE
from lesson_pictures import Sources, cycles_in_flight, drawn, merged, sectors_touched
from tree_tables import changed_lines, changed_text

ROOT = Path(__file__).resolve().parents[2]
BEGIN = 1764000000000000000  # nanoseconds
TENSOR = "TPC.TriageCompute.sm__pipe_tensor_cycles_active_realtime.avg.pct_of_peak_sustained_elapsed"
SLOTS = "measured name=x file=experiments/slots rows=slots".split()


class FromSources(unittest.TestCase):
    def test_the_descriptor_is_that_of_the_code(self):
        sources = Sources(ROOT)
        self.assertEqual(sources.operand("a"), (16, 1024, [0, 32, 64, 96]))
        self.assertEqual(sources.operand("b"), (8192, 1024, [0, 2048, 4096, 6144]))
        # Swizzle 1, SBO 64, LBO 512, start 0x440.
        self.assertEqual(sources.descriptor(0x4400, 8192, 1024), 1 << 62 | 64 << 32 | 512 << 16 | 0x440)

    def test_the_places_of_chunks_are_those_of_the_code(self):
        sources = Sources(ROOT)
        for row in range(16):
            self.assertEqual([sources.place(row, chunk) for chunk in range(8)], [chunk ^ row % 8 for chunk in range(8)])

    def test_the_elements_that_lesson_02_follows_lie_where_its_page_says(self):
        sources, page = Sources(ROOT), (ROOT / "02_tiled/tensor_cores.md").read_text(encoding="utf-8")
        row, column = map(int, re.search(r"Follow row (\d+), column (\d+), and the element below", page).groups())
        chunk, within = divmod(column, sources.constant(Sources.TILE, "kChunk"))
        self.assertIn(f"Both are element {within} of chunk {chunk} ({chunk} × 8 + {within} = {column})", page)
        for words, places in (("plain", [chunk] * 2), ("swizzled", [sources.place(below, chunk) for below in (row, row + 1)])):
            lines = [rf"  row {of} +byte {of} × 128 \+ {place} × 16 \+ {within * 2} = {byte} +bank {byte} / 4 mod 32 = {byte // 4 % 32}\b.*\n"
                     for of, place in zip((row, row + 1), places) for byte in [of * 128 + place * 16 + within * 2]]
            self.assertRegex(page, rf"\n{words}: .*place .*\b{places[0]}\b.*\n{''.join(lines)}")
        self.assertEqual(len({sources.place(below, chunk) for below in range(8)}), 8)
        # The descriptor of the product that has this column, and the address that the hardware makes from it.
        page = (ROOT / "02_tiled/deeper/one_wgmma.md").read_text(encoding="utf-8")
        self.assertIn(f"row {row}, column {column} of A?", page)
        leading, stride, steps = sources.operand("a")
        start = lesson_pictures.START + steps[column // 16]
        descriptor = sources.descriptor(start, leading, stride)
        self.assertIn(f"({lesson_pictures.START:#x} + 16 × 2) / 16 = {descriptor & 0x3fff:#x} ", page)
        self.assertRegex(page, rf"SBO / 16 .* = {descriptor >> 32 & 0x3fff} ")
        self.assertRegex(page, rf"LBO / 16 +{descriptor >> 16 & 0x3fff} ")
        self.assertRegex(page, rf"swizzle +{descriptor >> 62} ")
        of_b = page.partition("If B's tile begins there")[2]
        leading, stride, steps = sources.operand("b")
        descriptor = sources.descriptor(lesson_pictures.START + steps[1], leading, stride)
        self.assertIn(f"({lesson_pictures.START:#x} + 16 × 128) / 16 = {descriptor & 0x3fff:#x} ", of_b)
        self.assertRegex(of_b, rf"SBO / 16 .* = {descriptor >> 32 & 0x3fff} ")
        self.assertRegex(of_b, rf"LBO / 16 .* = {descriptor >> 16 & 0x3fff} ")
        plain, byte = start + row * 128 + column % 16 * 2, row * 128 + sources.place(row, chunk) * 16 + within * 2
        self.assertIn(f"{start:#x} + {row} × 128 + {column % 16} × 2 = {plain:#x} ", page)
        self.assertEqual(plain ^ (plain >> 7 & 7) << 4, lesson_pictures.START + byte)
        self.assertIn(f"{lesson_pictures.START + byte:#x}   byte {byte} of the tile", page)

    def test_a_picture_shows_what_the_code_says(self):
        with tempfile.TemporaryDirectory() as folder:
            for path in (Sources.WGMMA, Sources.CORES, Sources.TILE, "02_tiled/gemm.cuh"):
                copy = Path(folder) / path
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_text((ROOT / path).read_text(encoding="utf-8"), encoding="utf-8")
            self.assertIn("0x440 0x442 0x444 0x446", drawn("", ["wgmma_descriptor"], Path(folder))[2])
            cores = Path(folder) / Sources.CORES
            text = cores.read_text(encoding="utf-8")
            cores.write_text(text.replace("k % 64 * 2) / 16", "k % 64 * 4) / 16"), encoding="utf-8")
            self.assertIn("0x440 0x444 0x448 0x44c", drawn("", ["wgmma_descriptor"], Path(folder))[2])
            cores.write_text(text.replace("a_k = a_rows", "a_k = b_rows"), encoding="utf-8")
            with self.assertRaisesRegex(BadInput, "wgmma_core.cuh: has nothing like a_k = a_rows"):
                drawn("", ["wgmma_descriptor"], Path(folder))

    def test_lanes_side_by_side_share_sectors_and_lanes_in_a_column_do_not(self):
        self.assertEqual([len(sectors_touched(8192, axis)) for axis in ("same", "along", "down")], [1, 2, 32])
        _, alt, image = drawn("", ["warp_to_sectors"], ROOT)
        self.assertIn("along rows 32 of A and 1 of B", alt)
        self.assertRegex(image, r"33 sectors for 32 multiply-adds,</text>\n.*>1056 bytes<")

    def test_every_tile_has_its_turn_and_groups_of_rows_share_columns(self):
        sources = Sources(ROOT)
        for group in (1, 4, 16):
            order = [lesson_pictures.grouped_tile(sources, index, 6, 5, group) for index in range(30)]
            self.assertEqual(sorted(order), [(row, column) for row in range(6) for column in range(5)])
            self.assertEqual(order[:2], [(0, 0), (0, 1) if group == 1 else (1, 0)])
        self.assertIn("5 rows and 32 columns of tiles, 16 rows together 16 rows and 9 columns", drawn("", ["tile_order"], ROOT)[1])

    def test_a_register_tile_has_the_sums_of_the_step(self):
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / lesson_pictures.REGISTER_TILE
            copy.parent.mkdir(parents=True)
            text = (ROOT / lesson_pictures.REGISTER_TILE).read_text(encoding="utf-8")
            for sums, said in ((8, "16 loads, 64 products"), (4, "8 loads, 16 products")):
                copy.write_text(text.replace("kSums = 8;", f"kSums = {sums};"), encoding="utf-8")
                image = drawn("", ["register_tile"], Path(folder))[2]
                self.assertIn(said, image)
                self.assertEqual(image.count('class="used"'), sums * sums)

    def test_the_loader_waits_for_a_free_slot_and_compute_for_a_full_one(self):
        for slots in (1, 2, 3, 4, 5):
            times = lesson_pictures.loads_and_products(slots, [2.5] * 9)
            for step, (asked, full, begin, end) in enumerate(times):
                self.assertLess(asked, full)
                self.assertLessEqual(full, begin)
                self.assertLess(begin, end)
                if step:
                    self.assertGreaterEqual(begin, times[step - 1][3])
                if step >= slots:
                    self.assertGreaterEqual(asked, times[step - slots][3])
        # Loads are hidden where the slots hold more steps than a load takes.
        for slots, hidden in ((2, False), (4, True)):
            times = lesson_pictures.loads_and_products(slots, [2.5] * 9)
            self.assertEqual(times[-1][3] - times[0][2] == len(times), hidden)

    def test_the_lines_of_code_that_change_are_counted(self):
        self.assertEqual(changed_lines("int a;  // one\nint b;\n", "int a;  // two\nint c;\n"), 2)
        self.assertRegex(changed_text("", ["03"], ROOT)[0], r"^\d+ lines of code change from .*`cmake .* diff_03_2_03`\.")
        self.assertRegex(changed_text("", ["attention.2"], ROOT)[0], r"^\d+ lines of code change from \[step 1\].*one_warpgroup.*diff_attention_1_2`\.")
        for words in ([], ["01"], ["02", "03"], ["99"]):
            with self.assertRaisesRegex(BadInput, "needs one of the steps 02.1"):
                changed_text("", words, ROOT)


class StepsInTime(unittest.TestCase):
    PARTS = time_picture.Parts(ask=35, load=1346, hand_over=130, barrier=28, copy_asked=262, copy_landed=1104, copy_registers=1043, fence=207, wait=53,
                               copy_meets=180, product_meets=40)

    def words(self, image):
        """Sentences that go on in the next line are joined."""
        return " ".join(re.findall(r"<text[^>]*>([^<]*)", image))

    def clocks_of_a_step(self, play, slots, steps=24):
        """In the long run: of the last rounds of the ring."""
        done = play(self.PARTS, slots, 60000)
        return (done[steps + 3 * slots].begin - done[steps].begin) / (3 * slots)

    def test_a_step_takes_what_the_cost_model_says(self):
        parts = self.PARTS
        product = parts.product + parts.wait
        self.assertAlmostEqual(self.clocks_of_a_step(time_picture.tma, 1), parts.load + product + parts.barrier)
        self.assertAlmostEqual(self.clocks_of_a_step(time_picture.copies, 1), parts.copy_landed + parts.fence + product + parts.barrier)
        for slots in (2, 3, 4):
            turn, copy = parts.copy_asked + parts.fence + product, (parts.copy_landed + parts.fence) / (slots - 1)
            self.assertAlmostEqual(self.clocks_of_a_step(time_picture.copies, slots), max(turn, copy))
        for slots in (1, 2, 3, 4):
            round_ = parts.load + parts.hand_over + product
            self.assertAlmostEqual(self.clocks_of_a_step(time_picture.roles, slots), max(parts.product, round_ / slots))

    def test_a_slot_is_loaded_again_only_when_it_was_read_and_read_only_when_full(self):
        for play, slots in ((time_picture.copies, 3), (time_picture.roles, 2), (time_picture.roles, 4), (time_picture.tma, 1)):
            done = play(self.PARTS, slots, 20000)
            for step, before in zip(done[slots:], done):
                self.assertGreaterEqual(step.asked, before.end)
            self.assertTrue(all(step.asked < step.full <= step.begin < step.end for step in done))

    def test_loads_are_drawn_that_a_later_step_reads_than_the_last_that_is_shown(self):
        results = ROOT / "docs/results"
        for kernel, loads in (("copies:3", 5), ("roles:4", 8)):
            _, _, image = time_picture.drawn("", ["name=x", f"kernels={kernel}"], results)
            self.assertEqual(re.findall(r">load (\d)<", image)[:loads], [str(i) for i in range(loads)])

    def test_two_blocks_of_02_multiply_in_turn_and_take_half_of_a_step_each(self):
        parts = self.PARTS
        first, second = time_picture.registers(parts, 2, 20000)
        step = parts.copy_registers + parts.copy_meets + parts.fence + parts.product + parts.wait + parts.product_meets + parts.barrier
        self.assertAlmostEqual(first[1].begin - first[0].begin, step)
        for one, other, after in zip(first, second, first[1:]):
            self.assertAlmostEqual(other.begin - one.begin, step / 2)
            self.assertTrue(one.end < other.begin and other.end < after.begin)
        _, _, image = time_picture.drawn("", ["name=x", "kernels=registers:1,registers:2"], ROOT / "docs/results")
        recorded = time_picture.parts_of("", ROOT / "docs/results")
        addends = (recorded.copy_registers, recorded.fence, recorded.product, recorded.wait, recorded.barrier)
        step = sum(round(addend) for addend in addends)  # a reader adds what is printed
        self.assertIn(f"{recorded.barrier:.0f} for the barrier = {step}", self.words(image))
        meet = round(recorded.copy_meets) + round(recorded.product_meets)
        self.assertIn(f"a step of a block = {step} + {meet} that copy and product lose to the other block = {step + meet}", self.words(image))
        self.assertIn(f"of the SM {step + meet} / 2", self.words(image))
        self.assertNotIn("A block alone", image)
        with self.assertRaisesRegex(BadInput, "needs name= and kernels="):
            time_picture.drawn("", ["name=x", "kernels=registers:3"], ROOT / "docs/results")

    def test_the_parts_are_those_of_the_record_and_the_picture_adds_them(self):
        results = ROOT / "docs/results"
        name, alt, image = time_picture.drawn("", ["name=x", "kernels=tma:1,roles:2"], results)
        self.assertEqual((name, alt), ("x", "Steps in time: 1 slot, TMA, no roles (04.1); 2 slots, roles and a ring (05)"))
        parts = time_picture.parts_of("", results)
        self.assertIn(f"({parts.load:.0f} for the load + {parts.hand_over:.0f} for the hand-over", self.words(image))
        image = time_picture.drawn("", ["name=x", "kernels=roles:2,roles:4", f"loads={parts.load + 30:.0f},{parts.load - 40:.0f}"], results)[2]
        self.assertIn(f"({parts.load + 30:.0f} for the load", self.words(image))
        self.assertIn(f"({parts.load - 40:.0f} for the load", self.words(image))
        for loads, message in (("1336", "for each kernel"), ("1336,2000", "a load of 2000 clocks is far from")):
            with self.assertRaisesRegex(BadInput, message):
                time_picture.drawn("", ["name=x", "kernels=roles:2,roles:4", f"loads={loads}"], results)
        for words in (["kernels=roles:2"], ["name=x", "kernels=roles:5"], ["name=x", "kernels=threads:1"], ["name=x", "kernels=roles"]):
            with self.assertRaisesRegex(BadInput, "needs name= and kernels="):
                time_picture.drawn("", words, results)
        with tempfile.TemporaryDirectory() as folder, self.assertRaisesRegex(BadInput, "has 0 rows of ask"):
            time_picture.drawn("", ["name=x", "kernels=tma:1"], Path(folder))


    def test_loads_in_time_are_those_that_the_page_predicts_with(self):
        for page in ROOT.glob("0*_*/*.md"):
            text = page.read_text(encoding="utf-8")
            for loads in re.findall(r"<!-- time: .*\bloads=([\d,]+)", text):
                rest = re.sub(r"<!-- time: .*?-->", "", text)
                for load in loads.split(","):
                    with self.subTest(f"{page.parent.name}: {load}"):
                        self.assertRegex(rest.partition("## Predict")[2], rf"\b{load}\b")


class AClusterOfFour(unittest.TestCase):
    def test_ranks_do_what_the_code_says(self):
        does = [concept_pictures.rank_of_06(Sources(ROOT), rank) for rank in range(4)]
        self.assertEqual([one["receivers"] for one in does], [[0, 1], [0, 1], [2, 3], [2, 3]])
        self.assertEqual([one["peer"] for one in does], [2, 3, 0, 1])
        self.assertEqual([one["first_b_row"] for one in does], [0, 32, 0, 32])
        self.assertEqual([one["first_column"] for one in does], [0, 0, 64, 64])

    def test_a_slot_is_free_when_both_blocks_have_released_it(self):
        seen = [[block[3] for block in blocks] for _, blocks, _ in concept_pictures.release_moments()]
        self.assertEqual(seen, [["empty lacks 4 of 4"] * 2, ["empty lacks 2 of 4"] * 2, ["empty is complete"] * 2, ["empty lacks 4 of 4"] * 2])

    def test_an_inbox_is_full_when_its_bytes_are_there_and_free_when_all_warps_have_read_it(self):
        self.assertEqual([(free, full) for _, _, free, _, full, _ in concept_pictures.inbox_moments()],
                         [("phase 0: lacks 8 of 8", "phase 0: lacks 64 KB"), ("phase 0: lacks 8 of 8", "phase 1: lacks 1 arrival"),
                          ("phase 0: lacks 8 of 8", "phase 1: lacks 1 arrival"), ("phase 1: lacks 8 of 8", "phase 1: lacks 1 arrival")])


class FromFiles(unittest.TestCase):
    def test_bars_say_what_was_measured_and_what_was_predicted(self):
        newest = max((ROOT / "docs/results").glob("experiments/*-slots.json"))
        one, two, three, four, five = [round(run["tflops"]) for run in json.loads(newest.read_text(encoding="utf-8"))["runs"]
                                       if "slots" in run["settings"]]
        _, alt, image = drawn("", [*SLOTS, "limits=587,,,,"], ROOT)
        self.assertEqual(alt, f"TFLOP/s by slots: 1 {one}, 2 {two}, 3 {three}, 4 {four}, 5 {five}")
        self.assertRegex(image, rf">{one}</text>\n.*>predicted at most 587<")
        self.assertIn(f">{two}<", image)
        self.assertRegex(drawn("", [*SLOTS, "notes=,,,one_block_an_SM,"], ROOT)[2], rf">{four}</text>\n.*>one block an SM<")
        with self.assertRaisesRegex(BadInput, "2 notes for 5 runs"):
            drawn("", [*SLOTS, "notes=a,b"], ROOT)
        with self.assertRaisesRegex(BadInput, "2 limits for 5 runs"):
            drawn("", [*SLOTS, "limits=1,2"], ROOT)
        with self.assertRaisesRegex(BadInput, "needs name=, file= and rows="):
            drawn("", ["measured", "name=x"], ROOT)

    def test_spans_that_touch_are_one(self):
        self.assertEqual(merged([(5, 6), (0, 2), (1, 3), (3, 4)]), [[0, 4], [5, 6]])

    def test_timelines_show_that_one_slot_makes_copies_and_products_take_turns(self):
        path = ROOT / "docs/results/traces/03_double_buffer-slots_1-cpu_device.json"
        timeline = json.loads(path.read_text(encoding="utf-8"))
        spans = sorted(cycles_in_flight(timeline, "copies") + cycles_in_flight(timeline, "products"))
        self.assertTrue(all(before[1] <= after[0] for before, after in zip(spans, spans[1:])))
        _, alt, image = drawn("", f"timelines name=x files={path.stem},03_double_buffer-cpu_device".split(), ROOT)
        self.assertRegex(alt, r"with 1 slot \d+ cycles, with 3 slots \d+ cycles")
        self.assertIn("1 slot: 8 products", image)

    def test_a_timeline_of_a_gpu_is_refused(self):
        with self.assertRaisesRegex(BadInput, "recording slows a GPU down"):
            drawn("", "timelines name=x files=03_double_buffer-slots_3".split(), ROOT)


class InMotion(unittest.TestCase):
    def test_both_roles_wait_and_a_late_load_makes_compute_wait(self):
        loads = [2.5] * 8
        of_loader, of_compute = motion_picture.waits(lesson_pictures.loads_and_products(4, loads))
        self.assertEqual(of_compute, [(0, 2.5)])
        self.assertGreater(len(of_loader), 2)
        loads[5] += 2.2
        late = motion_picture.waits(lesson_pictures.loads_and_products(4, loads))[1]
        self.assertEqual(len(late), 2)

    def test_keyframes_go_forward_and_every_animation_has_some(self):
        _, _, image = motion_picture.drawn("", ["ring"], ROOT)
        xml.etree.ElementTree.fromstring(image)
        rules = dict(re.findall(r"@keyframes (\w+) { (.*) }\n", image))
        self.assertEqual(set(rules), set(re.findall(r"animation: (\w+) [\d.]+s", image)))
        for rule in rules.values():
            percents = [float(percent) for percent in re.findall(r"([\d.]+)% {", rule)]
            self.assertEqual((percents[0], percents[-1]), (0, 100))
            self.assertEqual(percents, sorted(set(percents)))
        self.assertIn("@media (prefers-reduced-motion: reduce) { * { animation: none", image)

    def test_what_stands_still_is_a_moment_of_what_moves(self):
        animation = motion_picture.Animation(duration=10, still_at=4)
        self.assertIn("opacity: 1", animation.style(motion_picture.shown([(3, 5)]), motion_picture.opacity).split(";")[1])
        self.assertIn("opacity: 0", animation.style(motion_picture.shown([(5, 6)]), motion_picture.opacity).split(";")[1])
        self.assertEqual(animation.still([(0, (0,)), (8, (2,))]), [1])

    def test_the_ring_is_refused_with_other_slots_and_other_words(self):
        with self.assertRaisesRegex(BadInput, "the one picture that moves is 'ring'"):
            motion_picture.drawn("line", [], ROOT)
        with mock.patch.object(motion_picture, "slots_of_05", lambda _: 3), self.assertRaisesRegex(BadInput, "lesson 05 has 3"):
            motion_picture.drawn("line", ["ring"], ROOT)


class OnAPhone(unittest.TestCase):
    def test_every_picture_is_no_wider_than_a_phone_and_has_words_of_12_pixels(self):
        pictures = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "docs/figures").glob("*.svg")}
        self.assertGreater(len(pictures), 30)
        for name, picture in pictures.items():
            self.assertLessEqual(int(re.search(r'<svg [^>]* width="(\d+)"', picture)[1]), PHONE, name)
            self.assertGreaterEqual(min(map(int, re.findall(r"(?:font|font-size): (\d+)px", picture))), 12, name)


class Requests(unittest.TestCase):
    def test_the_page_shows_the_picture_and_says_what_is_on_it(self):
        name, shown, _ = drawn("", ["swizzled_tile"], ROOT)
        self.assertEqual(name, "swizzled_tile")
        self.assertRegex(shown, r"^Chunk 2 of eight rows: plainly .* 8 turns; .* 1 turn$")

    def test_an_unknown_picture_and_words_that_it_does_not_take_are_refused(self):
        with self.assertRaisesRegex(BadInput, "there is no picture 'x'; there are thread_per_element"):
            drawn("", ["x"], ROOT)
        with self.assertRaisesRegex(BadInput, "'y=1': this picture needs no words"):
            drawn("", ["tile_order", "y=1"], ROOT)

    def test_both_themes_have_a_colour_for_every_class_that_is_not_a_font(self):
        light, dark = lesson_pictures.STYLE.split("@media (prefers-color-scheme: dark)")
        classes = set(re.findall(r"\.(\w+) {", light))
        self.assertEqual(set(re.findall(r"\.(\w+) {", dark)), classes - {"small", "code"})
        for name in lesson_pictures.DRAWN:
            self.assertLessEqual(set(re.findall(r'class="(\w+)"', drawn("", [name], ROOT)[2])), classes)


def cell(samples):
    return "19.26 (0 (+0): 0; " + "; ".join(f"{at} (+2000): {value}" for at, value in samples) + ")"


def raw(columns):
    """What the profiler prints: its own lines, the names, the units, the figures."""
    quoted = [[f'"{word}"' for word in row] for row in (columns, [""] * len(columns), columns.values())]
    return "==PROF== Connected\n" + "\n".join(",".join(row) for row in quoted) + "\n"


class SampledSeries(unittest.TestCase):
    def columns(self, samples):
        return {"ID": "0", "Kernel Name": "gemm", "profiler__timestamp_workload_start_0": f"1 ({BEGIN} (+0): 0)",
                "profiler__timestamp_workload_end_0": f"1 ({BEGIN + 5000} (+0): 0)", TENSOR: cell(samples)}

    def test_samples_outside_the_launch_are_left_out_and_time_begins_with_it(self):
        samples = [(BEGIN - 2000, 1.5), (BEGIN, 20), (BEGIN + 2000, 90.5), (BEGIN + 6000, 3)]
        columns = sampled.columns_of(raw(self.columns(samples)))
        self.assertEqual(sampled.series_of(columns, sampled.SERIES["tensor"]), [(0, 20), (2, 90.5)])

    def test_a_metric_that_was_not_sampled_is_named(self):
        columns = self.columns([(BEGIN - 500000, 1)])  # in no launch
        with self.assertRaisesRegex(BadInput, "sampled no metric like"):
            sampled.series_of(columns, sampled.SERIES["tensor"])
        with self.assertRaisesRegex(BadInput, "no kernel was profiled: ==ERROR== no permission"):
            sampled.columns_of("==ERROR== no permission\n")


class SampledPicture(unittest.TestCase):
    def test_the_table_has_steady_samples_and_the_picture_all(self):
        launch = {"lesson": "05_x", "m": 8, "n": 8, "k": 8, "settings": {"slots": "4"}, "us": [0, 20, 40, 60, 80, 100],
                  "tensor": [0, 80, 90, 100, 50, 5], "l2": [0, 50, 40, 30, 99, 0]}
        results = {"date": "2026-01-02", "commit": "abc", "gpu": "NVIDIA H200", "profiler": "1.2", "launches": [launch]}
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            self.assertEqual(sampled.sampled_text("line", ["picture=t.svg"], folder), ["Not recorded yet."])
            (folder / "profiles").mkdir()
            (folder / "profiles/2026-01-02-h200-sampled.json").write_text(json.dumps(results), encoding="utf-8")
            table = "\n".join(sampled.sampled_text("line", ["picture=t.svg"], folder))
            self.assertIn("| 05_x, slots 4 | 90 ± 8.2 | 40 ± 8.2 | -1.00 |", table)
            svg = sampled.sampled_pictures("line", ["picture=t.svg"], folder, folder)[folder / "t.svg"]
            self.assertEqual(svg.count("<polyline"), 2)
            self.assertIn("392.0,127.8", svg)  # the last sample: at the right end, 5 % high
            with self.assertRaises(BadInput):
                sampled.sampled_text("line", ["picture=t"], folder)


if __name__ == "__main__":
    unittest.main()
