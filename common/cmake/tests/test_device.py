#!/usr/bin/env python3
"""Which device Device.cmake chooses, and for which architectures it builds, with made-up GPUs and a made-up nvcc.

    test_device.py CMAKE
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

DEVICE = pathlib.Path(__file__).resolve().parents[1] / "Device.cmake"
CMAKE = sys.argv.pop(1) if len(sys.argv) > 1 else "cmake"
ASK = f"""
cmake_minimum_required(VERSION 3.25)
include("{DEVICE}")
ladder_choose_device(auto device reason)
ladder_cuda_architectures(architectures)
message("${{device}}|${{reason}}|${{architectures}}")
"""


def answer(gpus, cuda="12.8"):
    """What the functions say where nvidia-smi lists these GPUs, a line each."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for name, output in [("nvidia-smi", "\n".join(gpus)), ("nvcc", f"release {cuda}, V{cuda}")]:
            program = folder / name
            program.write_text(f"#!/bin/sh\ncat <<'END'\n{output}\nEND\n", encoding="utf-8")
            program.chmod(0o755)
        script = folder / "ask.cmake"
        script.write_text(ASK, encoding="utf-8")
        environment = dict(os.environ, PATH=f"{folder}:{os.environ['PATH']}", CUDACXX=str(folder / "nvcc"))
        run = subprocess.run([CMAKE, "-P", str(script)], env=environment, capture_output=True, text=True, check=True)
        device, reason, architectures = run.stderr.strip().split("|")
        return device, reason, architectures.split(";")


class Device(unittest.TestCase):
    def test_one_gpu(self):
        self.assertEqual(answer(["NVIDIA H200, 9.0"]), ("gpu", "NVIDIA H200, CUDA 12.8", ["90a-real"]))
        self.assertEqual(answer(["Tesla T4, 7.5"]), ("gpu", "Tesla T4, CUDA 12.8", ["75-real"]))

    def test_equal_gpus_count_once(self):
        self.assertEqual(answer(["NVIDIA H200, 9.0"] * 8)[2], ["90a-real"])

    def test_all_kinds_of_gpus_are_built_for_and_the_newest_is_named(self):
        device, reason, architectures = answer(["NVIDIA RTX 3060, 8.6", "NVIDIA RTX 5090, 12.0", "Tesla V100, 7.0"])
        self.assertEqual((device, reason), ("gpu", "NVIDIA RTX 5090, CUDA 12.8"))
        self.assertEqual(architectures, ["120-real", "86-real"])

    def test_a_gpu_that_is_too_old(self):
        device, reason, _ = answer(["Tesla V100, 7.0"])
        self.assertEqual((device, reason), ("cpu", "Tesla V100 has compute capability 7.0; 7.5 is needed"))

    def test_a_toolkit_that_is_too_old(self):
        self.assertEqual(answer(["Tesla T4, 7.5"], "11.8")[:2], ("cpu", "CUDA 11.8 is older than 12.2"))
        self.assertEqual(answer(["Tesla T4, 7.5"], "12.5")[0], "gpu")
        self.assertEqual(answer(["NVIDIA H200, 9.0", "Tesla T4, 7.5"], "12.5")[:2],
                         ("cpu", "CUDA 12.5 is older than 12.8, which NVIDIA H200 needs"))

    def test_without_a_gpu_one_of_each_kind_of_core_is_built_for(self):
        self.assertEqual(answer([])[2], ["80-real", "90a-real", "120-real"])
        self.assertEqual(answer([], "12.2")[2], ["80-real"])


if __name__ == "__main__":
    unittest.main()
