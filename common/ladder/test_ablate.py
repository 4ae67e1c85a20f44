#!/usr/bin/env python3
"""Tests of `ladder ablate` on the CPU device: `test_ablate.py FOLDER [CLASS]`, with the folder of the programs.

The class Figures needs the programs of the target `lab`.
"""
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

SHAPE = "256x512x320"
SECTOR_BYTES = 32
MMA_SYNC, PAIR = "--core mma_sync", "--tile 128x256 --cluster_m 2"
# What each row must have run.
ROWS = {
    "02": {"(as it is)": f"right_02 {MMA_SYNC}",
           "swizzle": f"broken_02_swizzle_off {MMA_SYNC}",
           "coalesced loads": f"broken_02_uncoalesced_loads {MMA_SYNC}"},
    "05": {"(as it is)": "05_ws_double_buffer",
           "the ring": "05_ws_double_buffer --slots 1",
           "half of the ring": "05_ws_double_buffer --slots 2",
           "short K steps": "broken_05_deep_k_tiles",
           "the wide tile": "broken_05_narrow_tile",
           "order of tiles": "broken_05_one_tile_order",
           "second compute warpgroup": "broken_05_wrong_role_ratio",
           "setmaxnreg": "broken_05_setmaxnreg_ignored",
           "one arrival for a release": "broken_05_all_threads_release",
           "stores by TMA": "broken_05_stores_from_registers",
           "persistence": "broken_05_not_persistent"},
    "06": {"(as it is)": "06_clusters_dsmem --clusters always",
           "multicast": "broken_06_no_multicast",
           "sums both ways": "06_clusters_dsmem --step one_way --clusters always",
           "the split of K": "06_clusters_dsmem --step narrow_tile --clusters always"},
    "any": {"(as it is)": f"right_any {PAIR}",
            "multicast": f"broken_any_no_multicast {PAIR}",
            "relaxed arrivals": f"broken_any_release_at_cluster_scope {PAIR}"},
}


def ablate(*words, folder=None):
    return subprocess.run([(folder or FOLDER) / "ladder", "ablate", *words], capture_output=True, text=True, timeout=600,
                          check=False)


def table(output, heading="without"):
    """{what is missing: {column: cell}}"""
    lines = [re.split(r" {2,}", line.strip()) for line in output.splitlines()]
    begin = next(i for i, cells in enumerate(lines) if cells[0] == heading)
    rows = lines[begin + 2:lines.index([""], begin)]
    return {cells[0]: dict(zip(lines[begin], cells)) for cells in rows}


def counters_of(command, shape):
    """What the CPU device counts when the program runs by itself."""
    with tempfile.TemporaryDirectory() as folder:
        results = pathlib.Path(folder) / "results.json"
        program, *options = command.split()
        subprocess.run([FOLDER / program, "--shape", shape, *options, "--json", results], stdout=subprocess.DEVNULL,
                       timeout=600, check=True)
        return json.loads(results.read_text(encoding="utf-8"))["runs"][0]["counters"]


class Refusals(unittest.TestCase):
    def refused(self, begin, *words, folder=None):
        ran = ablate(*words, folder=folder)
        self.assertEqual((ran.returncode, ran.stderr.count("\n")), (2, 1), ran.stderr)
        self.assertTrue(ran.stderr.startswith(f"ladder ablate: error: {begin}"), ran.stderr)
        return ran.stderr

    def test_what_is_wrong_is_named_in_one_line(self):
        self.refused("ablate 09: there are 02, 05, 06, any, capstone", "09")
        self.refused("lesson is required")
        self.refused("--shape 0x8x8: ", "05", "--shape", "0x8x8")
        self.refused("--shape 8x8x8,16x8x8: must be one shape", "05", "--shape", "8x8x8,16x8x8")
        self.refused("--json '/nonexistent/r.json'", "05", "--json", "/nonexistent/r.json")

    def copied_to(self, folder):
        (folder / "ladder").write_bytes((FOLDER / "ladder").read_bytes())
        (folder / "ladder").chmod(0o755)

    def test_a_folder_may_be_called_anything_and_a_program_that_fails_is_named(self):
        with tempfile.TemporaryDirectory(prefix="it's a folder") as folder:
            alone = pathlib.Path(folder)
            self.copied_to(alone)
            (alone / "right_any").write_text('#!/bin/sh\necho "$@" > "${0%/*}/words"\nexit 1\n', encoding="utf-8")
            (alone / "right_any").chmod(0o755)
            ran = ablate("any", "--shape", SHAPE, folder=alone)
            self.assertEqual(ran.returncode, 1, ran.stderr)
            self.assertIn(f"failed: {alone}/right_any --shape {SHAPE} {PAIR} --json ", ran.stderr)
            words = (alone / "words").read_text(encoding="utf-8")
            self.assertTrue(words.startswith(f"--shape {SHAPE} {PAIR} --json "), words)

    def test_a_program_that_was_not_built_is_named_with_the_command_that_builds_it(self):
        with tempfile.TemporaryDirectory(prefix="it's a build") as folder:
            alone = pathlib.Path(folder) / "bin"
            alone.mkdir()
            self.copied_to(alone)
            said = self.refused(f"{alone}/right_any is not built: cmake --build ", "any", folder=alone)
            command = said[said.index("cmake"):]
            self.assertEqual(shlex.split(command), ["cmake", "--build", folder, "--target", "lab"])
            self.refused(f"{folder}: is no build directory", "capstone", folder=alone)


# A stand-in for CMake: the program of a kernel is the kernel's file, a script.
BUILD = """#!/bin/sh
echo "$@" > "$2/words"
shift 3
for name; do cp "%s/$(echo "$name" | sed 's/capstone_/my_gemm./; s/capstone/my_gemm/').cuh" "%s/$name" || exit; done
"""


class Capstone(unittest.TestCase):
    """`ladder ablate capstone` in a build directory of its own, with kernels that are made up."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.build = pathlib.Path(folder.name)
        self.programs, self.kernels = self.build / "bin", self.build / "05_ws_double_buffer/exercise/capstone"
        self.programs.mkdir()
        self.kernels.mkdir(parents=True)
        (self.programs / "ladder").write_bytes((FOLDER / "ladder").read_bytes())
        self.write_script(self.build / "cmake", BUILD % (self.kernels, self.programs))
        (self.programs / "ladder").chmod(0o755)
        (self.build / "CMakeCache.txt").write_text(
            f"CMAKE_COMMAND:INTERNAL={self.build}/cmake\nCMAKE_HOME_DIRECTORY:INTERNAL={self.build}\n", encoding="utf-8")

    @staticmethod
    def write_script(file, text):
        file.write_text(text, encoding="utf-8")
        file.chmod(0o755)

    def kernel(self, stage, blocks, cycles):
        counters = {"blocks": blocks, "cycles": cycles, "copy_cycles": 100, "overlap_cycles": 25}
        run = {"lesson": "yours", "core": "wgmma", "m": 512, "n": 512, "k": 512, "settings": {}, "counters": counters}
        results = {name: "" for name in ("date", "commit", "gpu", "driver", "toolkit")} | {"runs": [run]}
        self.write_script(self.kernels / f"my_gemm{stage}.cuh",
                          '#!/bin/sh\nwhile [ "$1" != --json ]; do shift; done\n' + f"echo '{json.dumps(results)}' > $2\n")

    def ablate(self):
        return ablate("capstone", folder=self.programs)

    def test_cycles_are_of_a_tile_and_each_kernel_is_compared_with_the_one_above(self):
        for stage, blocks, cycles in (("", 4, 2000), (".stage_8", 4, 2000), (".stage_7", 8, 1500), (".stage_6", 8, 3000),
                                      (".stage_5", 8, 2700)):
            self.kernel(stage, blocks, cycles)
        ran = self.ablate()
        self.assertEqual(ran.returncode, 0, ran.stderr)
        rows = table(ran.stdout, "your kernel")
        self.assertEqual({name: list(row.values())[1:] for name, row in rows.items()},
                         {"as it is": ["2", "1000", "0.0", "25 %"],
                          "without storer and persistence": ["1", "1500", "50.0", "25 %"],
                          "... and without the ring": ["1", "3000", "100.0", "25 %"],
                          "... and without roles": ["1", "2700", "-10.0", "25 %"]})
        self.assertIn("Each kernel lacks what the kernels above it lack, too", ran.stdout)
        self.assertLessEqual(max(map(len, ran.stdout.splitlines())), 100)
        self.assertEqual((self.build / "words").read_text(encoding="utf-8"),
                         f"--build {self.build} --target capstone capstone_stage_7 capstone_stage_6 capstone_stage_5\n")

        self.kernel(".stage_7", 8, 1250)
        self.assertEqual(table(self.ablate().stdout, "your kernel")["without storer and persistence"]["cycles/tile"], "1250")

    def test_what_is_missing_is_named(self):
        for stage in ("", ".stage_5", ".stage_7", ".stage_8"):
            self.kernel(stage, 8, 1000)
        ran = self.ablate()
        self.assertEqual(ran.stderr, "ladder ablate: error: capstone.6 is not done yet: ladder learn capstone.6\n")
        self.kernel(".stage_6", 8, 1000)
        (self.kernels / "my_gemm.cuh").unlink()
        ran = self.ablate()
        self.assertEqual(ran.returncode, 1)
        self.assertEqual(ran.stderr, "ladder ablate: error: your kernel does not compile; what the compiler says is in "
                                     f"{self.build}/ablate.log\n")


class Figures(unittest.TestCase):
    def check(self, number, shape=SHAPE):
        with tempfile.TemporaryDirectory() as folder:
            ran = ablate(number, "--shape", shape, "--json", f"{folder}/r.json")
            self.assertEqual(ran.returncode, 0, ran.stderr)
            runs = json.loads(pathlib.Path(folder, "r.json").read_text(encoding="utf-8"))["runs"]
        rows = table(ran.stdout)
        self.assertEqual(list(rows), list(ROWS[number]))
        m, n, _ = map(int, shape.split("x"))
        counted = {name: counters_of(command, shape) for name, command in ROWS[number].items()}
        self.assertEqual({run["settings"]["without"]: run["counters"] for run in runs}, counted)
        before = counted["(as it is)"]["cycles"]
        for name, row in rows.items():
            with self.subTest(f"{number} without {name}"):
                counters = counted[name]
                self.assertEqual(row["B/output"], f"{counters['global_read_sectors'] * SECTOR_BYTES / m / n:.1f}")
                self.assertEqual(row["conflicts"], str(counters["bank_conflicts"]))
                self.assertEqual(row["cycles"], f"{counters['cycles']:.0f}")
                self.assertEqual(row["+ %"], f"{(counters['cycles'] / before - 1) * 100:.1f}")
                self.assertEqual(row["overlap"], f"{100 * counters['overlap_cycles'] / counters['copy_cycles']:.0f} %")
        return counted

    def test_the_swizzle_is_worth_its_conflicts(self):
        counted = self.check("02")
        self.assertEqual(counted["(as it is)"]["bank_conflicts"], 0)
        self.assertGreater(counted["swizzle"]["bank_conflicts"], 0)

    def test_the_ring_is_worth_cycles(self):
        counted = self.check("05")
        self.assertGreater(counted["half of the ring"]["cycles"], counted["(as it is)"]["cycles"])
        self.assertGreater(counted["the ring"]["cycles"], counted["half of the ring"]["cycles"])
        self.assertGreater(counted["the wide tile"]["global_read_sectors"], counted["(as it is)"]["global_read_sectors"])

    def test_multicast_is_worth_bytes(self):
        for number in ("06", "any"):
            counted = self.check(number)
            self.assertGreater(counted["multicast"]["global_read_sectors"], counted["(as it is)"]["global_read_sectors"])

    def test_half_of_k_is_worth_cycles_of_a_block(self):
        counted = self.check("06", "256x128x1024")  # with more tiles each cluster has two halves to add up
        self.assertGreater(counted["the split of K"]["cycles"], counted["(as it is)"]["cycles"])


if __name__ == "__main__":
    FOLDER = pathlib.Path(sys.argv.pop(1)).absolute()
    unittest.main()
