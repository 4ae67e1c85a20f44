#!/usr/bin/env python3
"""Times the steps of attention beside the backends of PyTorch's scaled_dot_product_attention, in one interleaved run.

    beside_torch.py LIBRARY --json FILE [--lengths 512,1024,...] [--tokens N] [--heads N] [--steps 1,2,...] [--rounds N]

LIBRARY is lib05_attention_library.so, the target 05_attention_library of a build for the GPU. Each problem has so many
sequences that they have --tokens queries together. Each contender's result is compared with that of the math in fp32, on some
queries. A tool for records (common/results/records.py): nothing that is built needs PyTorch.
Exit codes: 0 done; 1 a result is wrong; 2 bad input, one line.
"""
import argparse
import ctypes
import datetime
import os
import random
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.append(str(ROOT / "common/results"))
from script import end_with, json_rows, write_whole  # noqa: E402

DIM = 128
SAMPLE_US = 12_000  # a sample, and the warm-up before it
LARGEST_ERROR = 1e-2  # relative Frobenius norm; the weights and the result are rounded to bf16


class BadInput(Exception):
    """What is wrong, in one line."""


def numbers(option, text):
    try:
        values = [int(word) for word in text.split(",")]
    except ValueError:
        raise BadInput(f"{option} {text}: must be numbers, with commas between them") from None
    if min(values) < 1:
        raise BadInput(f"{option} {text}: must be at least 1")
    return values


def quartiles(samples):
    return [statistics.quantiles(samples, n=4, method="inclusive")[i] for i in range(3)]


def asked(query):
    """What the driver says of the first GPU."""
    return subprocess.run(["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader,nounits"], capture_output=True, text=True,
                          check=True).stdout.split("\n")[0]


class Bench:
    """One GPU, and who computes attention on it."""

    def __init__(self, library, steps):
        import torch
        from torch.nn.attention import SDPBackend, sdpa_kernel
        self.torch, self.sdpa_kernel = torch, sdpa_kernel
        if not torch.cuda.is_available():
            raise BadInput("PyTorch finds no GPU")
        try:
            self.kernels = ctypes.CDLL(str(library.resolve()))
        except OSError as error:
            raise BadInput(f"LIBRARY {library}: {error}") from None
        self.kernels.attention_launch.restype = ctypes.c_char_p
        self.kernels.attention_clock_after.restype = ctypes.c_double
        self.backends = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION}
        self.contenders = [*steps, *self.backends]
        self.device = torch.cuda.get_device_properties(0)

    def problem(self, length, batch, heads, causal):
        shape = (batch, heads, length, DIM)
        self.torch.manual_seed(length)
        self.qkv = [self.torch.randn(shape, device="cuda", dtype=self.torch.bfloat16) for _ in range(3)]
        self.extent = batch, heads, heads, length, int(causal)
        self.causal = causal
        self.o = self.torch.full(shape, float("nan"), device="cuda", dtype=self.torch.bfloat16)

    def stream(self):
        return ctypes.c_void_p(self.torch.cuda.current_stream().cuda_stream)

    def run(self, contender, launches):
        """Queues launches. @returns the last result"""
        if contender in self.backends:
            with self.sdpa_kernel(self.backends[contender]):
                for _ in range(launches):
                    result = self.torch.nn.functional.scaled_dot_product_attention(*self.qkv, is_causal=self.causal)
            return result
        pointers = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (*self.qkv, self.o)]
        for _ in range(launches):
            complaint = self.kernels.attention_launch(int(contender), *pointers, *self.extent, self.stream())
            if complaint:
                raise RuntimeError(f"step {contender}: {complaint.decode()}")
        return self.o

    def time_us(self, contender, launches):
        begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        self.run(contender, launches)
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1000 / launches

    def sample(self, contender, launches):
        """@returns microseconds of a launch, and the clock of the multiprocessors in MHz"""
        self.time_us(contender, launches)
        self.kernels.attention_clock_before(self.device.multi_processor_count, self.stream())
        us = self.time_us(contender, launches)
        return us, self.kernels.attention_clock_after(self.stream())

    def error(self, contender):
        """Of the last queries of the last head, whose tiles have the most keys: the relative Frobenius norm."""
        torch, queries = self.torch, min(256, self.extent[3])
        self.o.fill_(float("nan"))
        result = self.run(contender, 1)
        q, k, v = (tensor[-1, -1].float() for tensor in self.qkv)
        scores = q[-queries:] @ k.T / DIM ** 0.5
        if self.causal:
            last = torch.arange(len(k) - queries, len(k), device="cuda")
            scores = scores.masked_fill(torch.arange(len(k), device="cuda") > last[:, None], float("-inf"))
        expected = scores.softmax(-1) @ v
        if not bool(result.isfinite().all()):
            return float("inf")
        return float((result[-1, -1, -queries:].float() - expected).norm() / expected.norm())


def measure(bench, lengths, tokens, heads, rounds):
    """@returns a row for each contender and problem"""
    rows, order = [], random.Random(1)
    for length in lengths:
        for causal in (False, True):
            batch = max(1, tokens // length)
            bench.problem(length, batch, heads, causal)
            contenders = list(bench.contenders)
            errors, launches = {}, {}
            for contender in list(contenders):
                try:
                    errors[contender] = bench.error(contender)
                except RuntimeError as error:
                    if contender not in bench.backends:
                        raise
                    print(f"{contender}: left out: {str(error).splitlines()[0]}", file=sys.stderr)
                    contenders.remove(contender)
                    continue
                launches[contender] = max(1, round(SAMPLE_US / bench.time_us(contender, 3)))
            samples = {contender: [] for contender in contenders}
            for _ in range(rounds):
                order.shuffle(contenders)  # in place: an order of its own for each round
                for contender in contenders:
                    samples[contender].append(bench.sample(contender, launches[contender]))
            flops = 4 * length ** 2 * DIM * heads * batch * (0.5 if causal else 1)
            for contender, taken in samples.items():
                q1, median, q3 = quartiles([us for us, _ in taken])
                rows.append({"attention": contender if contender in bench.backends else f"step {contender}", "length": length,
                             "batch": batch, "heads": heads, "causal": causal, "time_us_median": median, "time_us_q1": q1,
                             "time_us_q3": q3, "tflops": flops / median * 1e-6,
                             "clock_mhz": statistics.median(mhz for _, mhz in taken), "rel_error": errors[contender]})
                print(f"length {length:6} {'causal' if causal else 'full':6} {rows[-1]['attention']:7} "
                      f"{rows[-1]['tflops']:6.1f} TFLOP/s {median:9.1f} us {rows[-1]['clock_mhz']:5.0f} MHz "
                      f"error {errors[contender]:.1e}", flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernels", type=Path, metavar="LIBRARY")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--lengths", default="512,1024,2048,4096,8192,16384")
    parser.add_argument("--tokens", default="16384")
    parser.add_argument("--heads", default="16")
    parser.add_argument("--steps", default="1,2,3,4,5")
    parser.add_argument("--rounds", default="9")
    arguments = parser.parse_args()
    options = {name: numbers(f"--{name}", getattr(arguments, name)) for name in ("lengths", "tokens", "heads", "steps", "rounds")}
    try:
        bench = Bench(arguments.kernels, [str(step) for step in options["steps"]])
    except ImportError as error:
        raise BadInput(f"needs PyTorch: {error}") from None
    torch = bench.torch
    cudnn = torch.backends.cudnn.version()
    print(f"{bench.device.name}, PyTorch {torch.__version__}, CUDA {torch.version.cuda}, cuDNN {cudnn}")
    rows = measure(bench, options["lengths"], options["tokens"][0], options["heads"][0], options["rounds"][0])
    if arguments.json:
        write_whole(arguments.json, json_rows({
            "date": f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}", "commit": os.environ.get("LADDER_COMMIT", ""),
            "gpu": bench.device.name, "driver": asked("driver_version"), "max_clock_mhz": float(asked("clocks.max.sm")),
            "toolkit": f"CUDA {torch.version.cuda}", "torch": torch.__version__, "cudnn": cudnn,
            "runs": rows}))
    wrong = [row for row in rows if not row["rel_error"] < LARGEST_ERROR]
    for row in wrong:
        print(f"beside_torch.py: error: wrong result of {row['attention']} at length {row['length']}, "
              f"{'causal' if row['causal'] else 'full'}: relative error {row['rel_error']:.1e}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    end_with(main, BadInput)
