#!/usr/bin/env python3
"""Deletes every synchronisation statement of the lessons, one at a time, and asks the CPU device whether it notices.

    mutate.py --build build-mutants [--lessons 04,05] [--json FILE]     rows that FILE has of other lessons are kept

A mutant is a lesson without one statement that calls one of VERBS, in one of FILES. (A call that gives a slot's number
or barrier cannot be deleted; the waits and arrivals behind such calls are statements of common/device/pipeline.cuh, which
belongs to lesson 06 here.) Mutants are patches for the lab: written to BUILD/mutants/NN_name, built by CMake like the
planted mistakes, and run as RUNS says. One that survives must be in EXPLAINED, with the reason; and what is
explained there must survive. Exit codes: 0 so it is; 1 not; 2 bad input, one line. It takes 20 minutes on two cores, so no test runs it.
"""
import argparse
import concurrent.futures
import difflib
import json
import os
import pathlib
import re
import subprocess
import sys

sys.dont_write_bytecode = True
from detectors import CPU_DETECTORS, MISSED, Finding, Programs  # noqa: E402
from matrix import commit, read_json, today, versions  # noqa: E402
from mistakes import ANY_SHAPE, MISTAKES, ROOT, BadInput, Mistake, number_of  # noqa: E402

sys.path.append(str(ROOT / "common/results"))
from script import end_with, json_rows, write_whole  # noqa: E402

# Calls that make threads, warps, blocks or engines wait for each other, or tell each other that they need not.
VERBS = ("producer_acquire", "producer_commit", "producer_commit_bytes", "consumer_wait", "consumer_release",
         "release", "expect_bytes", "publish", "finish", "finish_all_but_last", "wait", "advance", "__syncthreads",
         "__syncwarp", "cluster_sync", "fence_proxy_async", "fence_mbarrier_init", "tma_store_commit", "tma_store_wait_read",
         "tma_store_wait", "mbarrier_arrive", "mbarrier_arrive_expect_bytes", "mbarrier_arrive_remote",
         "mbarrier_arrive_remote_release", "mbarrier_wait", "mbarrier_wait_cluster", "wait_until_empty", "wait_until_read",
         "griddepcontrol_wait", "griddepcontrol_launch_dependents", "setmaxnreg_inc", "setmaxnreg_dec", "pipeline_consumer_wait_prior", "__pipeline_commit",
         "__pipeline_wait_prior", "named_barrier_sync",
         # and of the host, which makes streams wait
         "cudaStreamWaitEvent", "cudaEventRecord", "cudaStreamSynchronize", "cudaDeviceSynchronize", "order")
# A call that is a statement of its own, perhaps a checked one: what it is called on, the verb, template arguments.
CALL = re.compile(r"(?:(?<=[;{})])|(?<=else))\s*((?:CUDA_CHECK\()?(?:\w+(?:\[\w+\])?(?:\.|::)(?:template )?)*"
                  r"(" + "|".join(VERBS) + r")(?:<[^;{}]*?>)?\()")
FILES = {"02": ["02_tiled/gemm.cuh"],
         "03": ["03_double_buffer/gemm.cuh", "03_double_buffer/variants/ways_to_copy.cuh",
                "03_double_buffer/variants/copies.cuh"],
         "04": ["04_warp_specialized/gemm.cuh"],
         "05": ["05_ws_double_buffer/gemm.cuh"],
         "06": ["06_clusters_dsmem/gemm.cuh"],
         "any": [f"06_clusters_dsmem/any_shape/{name}" for name in ("gemm.cuh", "shape.cuh", "stream_k.cuh", "partial_sums.cuh")]
                + ["common/device/pipeline.cuh"],
         "07": ["07_streams/pipeline.cpp", "07_streams/experiments/layers.cpp", "07_streams/experiments/graph.cpp"]}
# Together they reach every statement, and go round the ring.
RUNS = {
    "02": ["--shape 256x256x256"],
    "03": [f"--shape 256x256x512 --slots 3,1 --copy {copy}" for copy in ("memcpy_async", "block", "primitives", "cg")],
    "04": ["--shape 384x256x384"],
    "05": ["--shape 640x1024x320"],
    "06": ["--shape 384x512x640", "--shape 1280x512x256"],
    "any": ["--shape 256x384x640", "--shape 128x256x1280 --cluster_m 1 --cluster_k 2", "--shape 128x384x640 --cluster_m 1",
           "--shape 256x512x640 --tile 128x256 --cluster_m 2",
           "--shape 128x128x1024 --cluster_m 1 --stream_k on", "--shape 64x128x3072 --cluster_m 1 --stream_k on",
           "--shape 256x256x256 --pdl on",
           "--shape 168x256x1280 --tile 128x256 --cluster_m 2",  # a warpgroup without rows of A, for more steps than slots
           "--shape 512x640x128 --cluster_m 1"],  # more tiles for a block than the ring has slots
    "07": ["--level 0,4 --shape 48x72x72 --batches 9 --slots 4", "--experiment layers --shape 32x72x72 --batches 4",
           "--experiment graph --shape 32x72x72 --batches 5"],
}
DETECTORS = ("result", "schedules", "races")
EXPLAINED = {  # what nothing notices, and why
    "03/copies_producer_acquire_1": "A pipeline of the thread's own: the call waits for nothing. The barrier in gemm.cuh keeps the order.",
    "03/copies_consumer_release_1": "A pipeline of the thread's own: the call waits for nothing. The barrier in gemm.cuh keeps the order.",
    "04/gemm_fence_mbarrier_init_1": "Blocks are alone: TMA counts bytes through the generic proxy, and __syncthreads follows.",
    "05/gemm_fence_mbarrier_init_1": "Blocks are alone: TMA counts bytes through the generic proxy, and __syncthreads follows.",
    "04/gemm_tma_store_wait_1": "Each store was waited for until its tile had been read; it ends, at the latest, with the kernel.",
    "05/gemm_tma_store_wait_1": "Each store was waited for until its tile had been read; it ends, at the latest, with the kernel.",
    "06/gemm_tma_store_wait_1": "Each store was waited for until its tile had been read; it ends, at the latest, with the kernel.",
    "any/gemm_tma_store_wait_1": "Each store was waited for until its tile had been read; it ends, at the latest, with the kernel.",
    "05/gemm_setmaxnreg_inc_1": "Compute keeps the registers that it has. That the compiler counts on more is not for the CPU device to see.",
    "06/gemm_setmaxnreg_inc_1": "Compute keeps the registers that it has. That the compiler counts on more is not for the CPU device to see.",
    "06/gemm_syncwarp_2": "cluster_sync waits for every thread, whether or not the lanes of its warp have come together.",
    "any/gemm_named_barrier_sync_1": "Random schedules report it (--shape 40x512x1280 --tile 128x256 --cluster_m 2 --seed 3); the eight that mutants run on do not.",
    "any/gemm_setmaxnreg_inc_1": "Compute keeps the registers that it has. That the compiler counts on more is not for the CPU device to see.",
    "any/gemm_griddepcontrol_launch_dependents_1": "It lets the next kernel begin early: speed, not order.",
    "any/pipeline_advance_4": "Only ping_pong.cuh skips slots, which the lab does not compile; the tests of lesson 05 do.",
    "any/pipeline_advance_5": "Only ping_pong.cuh skips slots, which the lab does not compile; the tests of lesson 05 do.",
    "07/pipeline_cudaStreamSynchronize_1": "It makes level 0 wait after every step, which the order does not need: speed only.",
    "07/pipeline_cudaStreamSynchronize_2": "The stream of host functions waits for every download, and the host waits for that stream next.",
    "07/layers_cudaDeviceSynchronize_1": "Before every run that is timed, measure_interleaved() waits for the device, too.",
    "07/layers_cudaDeviceSynchronize_2": "After an error, work may still use the memory that is freed; no error happens in these runs.",
    "07/layers_cudaStreamSynchronize_1": "Layer 2 of the last batch comes after all of layer 1, and the host waits for that.",
    "07/graph_wait_2": "The run is timed to its last call instead of its end. The next one waits for the device first.",
}


def statements(text):
    """(verb, begin, end) of every statement that is such a call."""
    code = re.sub(r"//[^\n]*", lambda comment: " " * len(comment[0]), text)
    place = 0
    while call := CALL.search(code, place):
        end, depth = call.end(), 2 if call[1].startswith("CUDA_CHECK(") else 1
        while depth:
            depth += {"(": 1, ")": -1}.get(code[end], 0)
            end += 1
        place = end
        if code[end:].lstrip().startswith(";"):
            yield call[2], call.start(1), code.index(";", end) + 1


def mutants_of(file):
    """(name, deleted statement, line, patch) for every statement of a file."""
    text, counts = (ROOT / file).read_text(encoding="utf-8"), {}
    for verb, begin, end in statements(text):
        counts[verb] = counts.get(verb, 0) + 1
        mutated = text[:begin] + "{}" + text[end:]
        diff = "".join(difflib.unified_diff(text.splitlines(True), mutated.splitlines(True), f"a/{file}", f"b/{file}"))
        statement = re.sub(r"\s+", " ", text[begin:end])
        name = f"{pathlib.Path(file).stem}_{verb.strip('_')}_{counts[verb]}"
        yield name, statement, text.count("\n", 0, begin) + 1, diff


def write_patches(folder, numbers):
    """The patches of all lessons, in place of those that are there. [(mutant, file, line)]"""
    mutants = []
    for number in FILES:
        lesson = ANY_SHAPE if number == "any" else FILES[number][0].split("/")[0]
        text = f"Mutants of {lesson}.\n"
        for file in FILES[number] if number in numbers else []:
            for name, statement, line, diff in mutants_of(file):
                mutant = Mistake(lesson, name, f"without `{statement}`", "handshake", (), "", "")
                text += f"\n## {name}\nMistake: {mutant.mistake}\nKind: handshake\nRun:\nNotice:\n\n{diff}"
                mutants.append((mutant, file, line))
        path = folder / lesson / MISTAKES
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return mutants


def build(folder):
    """Mutants that do not compile are left out; judge() sees that they are not there."""
    subprocess.run(["cmake", "-S", str(ROOT), "-B", str(folder), "-G", "Ninja", "-DLADDER_DEVICE=cpu",
                    f"-DLADDER_LAB_PATCHES={folder / 'mutants'}"],
                   check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", str(folder), "--target", "lab", "--", "-k", "0"], check=False)


def judge(mutant, programs):
    """(who noticed it, what it said); the first detector in the order of DETECTORS."""
    if not programs.path(mutant).exists():
        return "compiler", Finding("caught", "does not compile")
    finding = Finding(MISSED)
    for detector in DETECTORS:
        for arguments in RUNS[mutant.number]:
            run = Mistake(mutant.lesson, mutant.name, "", "handshake", tuple(arguments.split()), "", "")
            finding = CPU_DETECTORS[detector](programs, run)
            if finding.outcome != MISSED:
                return detector, finding
    return None, finding


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True, metavar="FOLDER", help="a build folder of its own")
    parser.add_argument("--lessons", default=",".join(FILES), metavar="NN[,NN]", help="only these")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    arguments = parser.parse_args()
    numbers = arguments.lessons.split(",")
    if unknown := [number for number in numbers if number not in FILES]:
        raise BadInput(f"--lessons {unknown[0]}: there are {', '.join(FILES)}")
    folder = arguments.build.resolve()
    mutants = write_patches(folder / "mutants", numbers)
    build(folder)

    programs = Programs(folder / "bin", None, "")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        verdicts = list(pool.map(lambda mutant: judge(mutant[0], programs), mutants))
    explained = dict(EXPLAINED)
    rows, wrong = [], []
    for (mutant, file, line), (detector, finding) in zip(mutants, verdicts):
        key = f"{mutant.number}/{mutant.name}"
        reason = explained.pop(key, None)
        rows.append({"lesson": mutant.lesson, "name": mutant.name, "file": file, "line": line, "mistake": mutant.mistake,
                     "noticed_by": detector, "message": finding.message, **({"reason": reason} if reason else {})})
        if detector is None:
            print(f"{key}: survives {mutant.mistake}: {reason or 'NOT EXPLAINED'}")
        if (detector is None) != (reason is not None):
            wrong.append(f"{key}: " + ("survives, and is not explained" if detector is None else f"{detector} notices it, "
                                       "though EXPLAINED says why nothing does"))
    wrong += [f"{key}: explained, but there is no such mutant" for key in explained if key.split("/")[0] in numbers]
    counts = {name: sum(row["noticed_by"] == name for row in rows) for name in (*DETECTORS, "compiler", None)}
    print(", ".join(f"{name or 'survived'} {count}" for name, count in counts.items()), f"of {len(rows)} mutants")
    if arguments.json:
        old = read_json(arguments.json)["mutants"] if arguments.json.is_file() else []
        rows = sorted([row for row in old if number_of(row["lesson"]) not in numbers] + rows, key=lambda row: row["lesson"])
        head = {"date": today(), "commit": commit(), **versions("cpu", "")}
        write_whole(arguments.json, json_rows({**head, "mutants": rows}))
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    end_with(main, BadInput)
