"""All records of docs/results in the order of their worth: what records each, which sources decide it, and how long it takes.

A command's words {programs}, {build}, {debug}, {results}, {raw} and {out} stand for the folder of the programs, the build, the
build whose waits are bounded, the folder of results, a folder for what is thrown away, and the file to write. The seconds
are what one H200 takes: measured where a record says so, else estimated. A comparison takes for each shape
    contenders x rounds x (sample + warm-up) + 16 x min(rounds, 5) x 4/3 x sample + about 2 s,
the second summand for the choice among the algorithms of cublasLt, where libraries take part; it is 12 ms a sample and 40 ms
a warm-up, and with --sample-ms both are that.

A core that a record does not run does not decide it: `not_run` names its sources. On a GPU that has wgmma a program runs that
alone, unless its options name another core. Of a GPU without it the list is not true: there a record runs mma_sync.
"""
import dataclasses
import datetime
import math
import random
import re
from dataclasses import dataclass

from fingerprint import ROOT, fingerprint
from record_files import shared

LESSON = {"01": ("01_naive/lesson.cu",), "02": ("02_tiled/lesson.cu",), "03": ("03_double_buffer/lesson.cu",),
          "04": ("04_warp_specialized/lesson.cu",), "05": ("05_ws_double_buffer/lesson.cu",),
          "06": ("06_clusters_dsmem/lesson.cu",), "any": ("06_clusters_dsmem/any_shape/lesson.cu",)}
# What the climb runs: the kernels of rungs, with their launchers; not what knobs choose.
RUNGS = {number: tuple(f"{folder}/{files}" for files in ("gemm.cuh", "steps/*.cuh") if any((ROOT / folder).glob(files)))
         for number, (root,) in LESSON.items() if number != "any" for folder in [root.rpartition("/")[0]]}
RUNGS["06"] = RUNGS["05"] + RUNGS["06"]  # where clusters do not pay, 05 runs
RUNGS["any"] = tuple(f"06_clusters_dsmem/any_shape/{name}" for name in ("gemm.cuh", "kernels.cuh", "launch.cuh", "plan.cpp"))
BESIDE = {"04_portable": ("04_warp_specialized/variants/portable_main.cu",),
          "05_attention": ("05_ws_double_buffer/attention/kernels.cu",),
          "05_cube": ("05_ws_double_buffer/variants/cube.cu",), "05_dual_gemm": ("05_ws_double_buffer/variants/dual_gemm.cu",),
          "06_grid_barrier": ("06_clusters_dsmem/deeper/grid_barrier.cu",)}
KERNELS = tuple(root for roots in (*LESSON.values(), *BESIDE.values()) for root in roots)
# What decides a figure beside the kernel: how launches are timed, and what they multiply.
TIMING = ("common/host/measure/timing.cpp", "common/host/measure/timing_gpu.cpp", "common/host/problem/fill_gpu.cu",
          "common/host/problem/fill_values.hpp")
# The batches of lesson 07 go through the kernel of the lessons that is best on the GPU.
STREAMS = ("07_streams/pipeline.cpp", "07_streams/program/levels.cpp", *LESSON["05"], *LESSON["06"], *LESSON["any"])
TRACING = ("common/instrumented/trace.cuh", "common/instrumented/shadow/common/device/*.cuh",
           "common/instrumented/shadow/common/ptx/*.cuh")
# The cores beside wgmma, what they alone include, and the kernel of lessons 04 and 05 for GPUs without wgmma: a lesson includes
# all of them.
OTHER_CORES = ("common/device/mma_sync_core.cuh", "common/device/fma_core.cuh", "common/ptx/mma_sync.cuh",
               "04_warp_specialized/variants/roles_without_wgmma.cuh")
PATCHES = ("0[2-7]_*/broken/*.patch", "06_clusters_dsmem/any_shape/broken/*.patch",
           "05_ws_double_buffer/attention/broken/*.patch", "05_ws_double_buffer/attention/broken/lesson.cu")


@dataclass(frozen=True)
class Record:
    name: str
    file: str             # below docs/results; {date} and {gpu} are those of the recording. Without a date: one that it shares
    commands: tuple       # of words; the last one writes {out}
    roots: tuple          # of the sources that decide it (fingerprint.py)
    seconds: int
    device: str = "gpu"   # or "cpu": the CPU device
    gpus: int = 1         # that it needs
    inputs: tuple = ()    # other records that it is made from
    only_by_name: bool = False  # too long for a round, or decides sources itself
    not_run: tuple = ()   # sources that the roots include, and that do not decide it
    of_each_gpu: bool = False  # a new file replaces those of its own GPU alone

    def pattern(self):
        """Of the names of its files, with any date and GPU."""
        escaped = re.escape(self.file).replace(r"\{date\}", r"\d{4}-\d\d-\d\d").replace(r"\{gpu\}", r"(?P<gpu>(?!cpu\b|mutants\b)\w+)")
        return re.compile(escaped + "$")

    @property
    def is_shared(self):
        return "{date}" not in self.file and not self.file.startswith("traces/")

    def newest(self, results):
        """The newest file of this record in a folder of results, a Part where it is shared; None if there is none."""
        return max(self.files(results), key=lambda one: (one.document["date"], str(one)) if self.is_shared else one, default=None)

    def files(self, results):
        folder = (results / self.file).parent
        paths = [path for path in folder.glob("*") if self.pattern().match(path.relative_to(results).as_posix())]
        return [part for path in paths for part in shared(path) if part.document["record"] == self.name] if self.is_shared else paths

    def predecessors(self, results, path):
        """The files whose place a new one takes."""
        def gpu(one):
            return self.pattern().match((one.path if self.is_shared else one).relative_to(results).as_posix())["gpu"]
        here = self.pattern().match(path.relative_to(results).as_posix())["gpu"] if self.of_each_gpu else None
        return [old for old in self.files(results) if old != path and here in (None, gpu(old))]

    def fingerprint(self, tree, results):
        """What decides it, in today's sources and, of a record that is made from others, in these."""
        texts = [path.read_text(encoding="utf-8") if (path := BY_NAME[name].newest(results)) else "" for name in self.inputs]
        return fingerprint(tree, self.roots, texts, self.not_run)


def words(text):
    return tuple(text.split())


def program_roots(name, options):
    """The sources of a program's kernels; `ladder` runs several lessons."""
    if name in BESIDE:
        return BESIDE[name]
    if name == "ladder":
        # The number 06 also chooses the kernels for any shape; 06_clusters_dsmem does not.
        return tuple(root for chosen in options[options.index("--lessons") + 1].split(",")
                     for root in RUNGS[chosen[:2]] + (RUNGS["any"] if chosen == "06" else ()))
    return LESSON["any"] if name == "06_any_shape" else LESSON[name[:2]]


def cores_not_run(options):
    """The sources that a program leaves aside with these options: unless they name another core, it runs wgmma alone."""
    return () if re.search(r"\b(mma_sync|fma)\b", options) else OTHER_CORES


def timed(name, file, seconds, program, options):
    options = words(options) if isinstance(options, str) else options
    return Record(name, file, ((f"{{programs}}/{program}", *options, "--json", "{out}"),),
                  program_roots(program, options) + TIMING, seconds, not_run=cores_not_run(" ".join(options)))


# Programs read these, and want a file of one record.
READ_BY_PROGRAMS = ("levels", "parts", "path", "slots", "ring", "cube", "coalescing")


def file_of_experiment(name, program):
    """Experiments share a file with the others of their lesson, 01 to 07, or of `ladder`."""
    return f"experiments/{{date}}-{{gpu}}-{name}.json" if name in READ_BY_PROGRAMS else \
        f"experiments/{{gpu}}-{program[:2] if program[0] == '0' else program}.json"


def experiment(name, seconds, program, options):
    return timed(name, file_of_experiment(name, program), seconds, program, options)


def of_streams(name, seconds, options="", sources=(), gpus=1, around=STREAMS):
    """An experiment of lesson 07: its source is of its name, unless it is given. `around`: what its batches go through."""
    places = sources or (f"07_streams/experiments/**/{name}.c*",)
    return Record(name, file_of_experiment(name, "07_streams"),
                  (("{programs}/07_streams", "--experiment", name, *words(options), "--json", "{out}"),),
                  around + places, seconds, gpus=gpus, not_run=cores_not_run(options))


# Of the CPU device what can change a virtual time; not what watches, reports or tests.
CPU_TIME = ("common/cpu_device/base/*.*pp", "common/cpu_device/kernel/**/*.*pp", "common/cpu_device/observe/clock.*pp",
            "common/cpu_device/instrumentation/hooks.cpp")
CPU_REPORTS = tuple(f"common/cpu_device/kernel/{name}" for name in (
    "deadlock/*", "grid_order.*", "from_source/kernel_declaration.*", "reports/*"))


def timeline(name, program, options, roots, device="gpu", seconds=4):
    return Record(f"timeline_{name}", f"traces/{name}.json",
                  ((f"{{programs}}/{program}", *words(options), "--trace", "{out}"),), roots, seconds, device=device,
                  not_run=cores_not_run(options) if device == "gpu" else CPU_REPORTS)


# The kernels of `ladder parts`, but for those of the record `path`; and the list of all, which decides none.
PARTS = tuple(f"common/parts/{name}" for name in ("copies_gpu.cu", "epilogues_gpu.cu", "exchanges_gpu.cu", "hand_overs_gpu.cu",
                                                  "loads_gpu.cu", "products_gpu.cu", "measured_gpu.cuh"))
LIST_OF_PARTS = ("common/parts/groups.hpp", "common/parts/groups_gpu.cpp")

LEAST_GFLOP, MOST_GFLOP, MOST_K = 0.5, 6000, 19000


def log_uniform(draw, least, most):
    return int(math.exp(draw.uniform(math.log(least), math.log(most))))


def random_shapes(seed, count, most_k=MOST_K):
    """A list of (M, N, K) that nobody chose, to judge a kernel by, without repetition, and with K of at most most_k.

    M is anything from 16 to 16384; N from 128 and K from 88 up to 19000 are multiples of 8, as TMA wants. All three are as often
    between 128 and 256 as between 4096 and 8192. A product takes 0.5 to 6000 GFLOP, so that it fills a GPU, for at most some
    milliseconds. The same seed gives the same shapes on every machine.
    """
    draw, shapes = random.Random(seed), {}
    while len(shapes) < count:
        m = log_uniform(draw, 16, 16384)
        n = log_uniform(draw, 128, 19000) // 8 * 8
        k = log_uniform(draw, 88, most_k) // 8 * 8
        if LEAST_GFLOP <= 2e-9 * m * n * k <= MOST_GFLOP:
            shapes[m, n, k] = None
    return list(shapes)


def by_comma(shapes):
    return ",".join("x".join(map(str, shape)) for shape in shapes)


TODAY = datetime.datetime.now(datetime.timezone.utc)
# Nobody can know before the day what a seed of the day brings.
UNKNOWN = by_comma(random_shapes(16, 20) + random_shapes(int(f"{TODAY:%Y%m%d}"), 20))
NAMED = ("1024x1024x1024,2048x2048x2048,4096x4096x4096,8192x8192x8192,16384x16384x16384,8192x28672x8192,4096x4096x14336,"
         "512x8192x8192,64x8192x8192")


def any_shapes(name, seconds, shapes, *knobs):
    """Without knobs the kernels and the plan decide, and not the lesson's other choices."""
    options = ("--no-verify", "--sample-ms", "20", "--rounds", "3", "--shape", shapes, *knobs)
    return dataclasses.replace(experiment(name, seconds, "06_any_shape", options), roots=RUNGS["any"] + TIMING)


def any_tuned(seconds):
    """any_matrix, with the fastest of the model's first eight at each shape, as `ladder tune` finds it. What it remembers is
    measured again, beside the libraries: of eight samples the fastest is often a lucky one."""
    matrix = any_shapes("any_matrix", 0, UNKNOWN)
    cache = ("env", "XDG_CACHE_HOME={raw}/any_tuned", "LADDER_TUNED=yes")
    tune = (*cache, "{programs}/ladder", "tune", "--no-verify", "--no-library", "--sample-ms", "20", "--rounds", "3", "--shape", UNKNOWN)
    return dataclasses.replace(matrix, name="any_tuned", seconds=seconds,
                               commands=(tune, (*cache, *matrix.commands[0])), roots=matrix.roots + ("common/ladder/tune.cpp",))


def ablation(number, seconds):
    """Its programs are the lesson's, and those of the lab that ablate.cpp names, with the options there."""
    text = (ROOT / "common/ladder/ablate.cpp").read_text(encoding="utf-8")
    programs = re.findall(rf'"((?:right|broken)_{number}\w*)"', text)
    folder = LESSON[number][0].rpartition("/")[0]
    patches = tuple(f"{folder}/broken/{name}.patch" for name in re.findall(rf'"broken_{number}_(\w+)"', text))
    entry = re.search(rf'{{"{number}",.*?}}}}}}', text, re.DOTALL)[0]
    build = (("cmake", "--build", "{build}", "--target", *programs),)
    return Record(f"ablate_{number}", file_of_experiment(f"ablate_{number}", "ladder"),
                  (*build, ("{programs}/ladder", "ablate", number, "--json", "{out}")),
                  LESSON[number] + patches + TIMING, seconds, not_run=cores_not_run(entry))


def lab(number, seconds):
    """The mistakes of one lesson: only those whose kernel has changed are tried again. What is timed runs alone, and so does what
    may hang: a kernel that hangs takes its share of the GPU, and beside three of them a right program took 17 s. matrix.py adds to
    {out} what it lacks, so that it can be continued."""
    matrix = ("common/lab/matrix.py", "--device", "gpu", "--programs", "{programs}", "--debug-programs", "{debug}/bin", "--lessons",
              number, "--json", "{out}", "--continue", "--budget-s", "{left}", "--commit", "{commit}")
    lesson = STREAMS if number == "07" else LESSON[number]
    folder = lesson[0].rpartition("/")[0]
    return Record(f"lab_{number}", "lab/{gpu}.json",
                  (("cmake", "--build", "{build}", "--target", f"lab_{number}"),
                   ("cmake", "-B", "{debug}", "-G", "Ninja", "-DLADDER_DEVICE=gpu", "-DCMAKE_BUILD_TYPE=Debug",
                    "-DCMAKE_CUDA_ARCHITECTURES=90a-real"),
                   ("cmake", "--build", "{debug}", "--target", f"lab_{number}"),
                   (*matrix, "--detectors", "timing,compiler,result", "--jobs", "1"),
                   (*matrix, "--detectors", "memcheck,racecheck,synccheck,initcheck,bounded", "--jobs", "8")),
                  lesson + (f"{folder}/broken/*.patch",), seconds)


WITHOUT_PAGES = "--parallel 8 --label-exclude '^pages$'"


def tests(name, seconds, words_of_ctest, roots):
    """ctest's exit code says that a test failed; the record says which. Tests that compare pages with records need no GPU, and would
    ask of a record to be there before it is made."""
    return Record(name, "tests/{gpu}.json",
                  (("{programs}/01_naive", "--size", "256", "--rounds", "1", "--json", "{raw}/header.json"),
                   ("sh", "-c", f"ctest --test-dir {{build}} {words_of_ctest} --output-junit {{raw}}/junit.xml "
                                "--test-output-size-passed 100000 --test-output-size-failed 100000 >{raw}/ctest.log || true"),
                   ("common/results/ctest_results.py", name, "{raw}/junit.xml", "{raw}/header.json", "{out}")), roots, seconds)


def architecture_tests(name, seconds):
    """How the tests of that build end."""
    folder = f"{{build}}-{name}"
    configure, (*build, _, _), _ = architecture(name, 0).commands
    header, ctest, collect = tests("tests", 0, WITHOUT_PAGES, ()).commands
    ctest = tuple(word.replace("{build}", folder) for word in ctest)
    return Record(f"tests_{name}", "tests/{gpu}.json", (configure, tuple(build), header, ctest, collect),
                  KERNELS + STREAMS, seconds, only_by_name=True)


def architecture(name, seconds):
    """The climb as owners of other GPUs get it: from PTX for an older architecture, which the driver compiles."""
    folder = f"{{build}}-{name}"
    return Record(f"architecture_{name}", "architectures/{gpu}.json",
                  (("cmake", "-B", folder, "-G", "Ninja", "-DLADDER_DEVICE=gpu", f"-DCMAKE_CUDA_ARCHITECTURES={name}"),
                   ("cmake", "--build", folder, "--target", "ladder"),
                   (f"{folder}/bin/ladder", "--size", "4096,8192", "--sample-ms", "50", "--rounds", "7", "--json", "{out}")),
                  KERNELS + STREAMS + TIMING, seconds, only_by_name=True)


def in_order_of_worth():
    threefold = "--size 4096,5000,8192"
    return (
        # 5000 is no power of two, so that rows straddle cache lines; 256x1024x8192 has few tiles and a long K, which clusters
        # split. Inputs are not in L2.
        timed("climb", "{date}-{gpu}.json", 125, "ladder", "--lessons 01,02,03,04,05,06_clusters_dsmem "
              "--size 1024,4096,5000,8192 --shape 256x1024x8192 --inputs cold --sample-ms 50"),
        # By itself, since the kernels for any shape change more often than the lessons.
        experiment("any_climb", 60, "ladder", "--lessons 06 --size 1024,4096,5000,8192 --shape 256x1024x8192 --inputs cold "
                   "--sample-ms 50"),
        Record("levels", file_of_experiment("levels", "07_streams"),
               (("{programs}/07_streams", "--rounds", "7", "--json", "{out}"),), STREAMS + RUNGS["02"], 20, not_run=OTHER_CORES),
        any_shapes("any_matrix", 140, UNKNOWN, "--pdl", "auto,off"), any_tuned(160),
        # The same tile, copies, K steps, grid and epilogue in all: roles or none, a ring, blocks on a multiprocessor.
        experiment("cube", 35, "05_cube", f"{threefold} --roles off,on --slots 1,2,3,4 --blocks 1,2 --rounds 7"),
        ablation("05", 60), ablation("06", 15), ablation("02", 15),
        *(timeline(f"03_double_buffer-slots_{slots}", "03_double_buffer", f"--size 4096 --slots {slots} --trace-blocks 1",
                   LESSON["03"] + TRACING) for slots in (1, 3)),
        timeline("04_warp_specialized", "04_warp_specialized", "--size 4096 --trace-blocks 1", LESSON["04"] + TRACING),
        timeline("05_ws_double_buffer", "05_ws_double_buffer", "--size 4096 --trace-blocks 1", LESSON["05"] + TRACING),
        timeline("06_any_shape", "06_any_shape", "--size 4096 --trace-blocks 1", LESSON["any"] + TRACING),
        timeline("07_streams", "07_streams", "--batches 24 --rounds 1 --shape 2048x12288x12288", STREAMS, seconds=8),
        # What predictions are made of. Its kernels read the clock themselves. Pages reckon with its figures: who records it anew
        # reads them again.
        Record("parts", file_of_experiment("parts", "ladder"),
               (("{programs}/ladder", "parts", "--only", "load,hand-over,product,epilogue,exchange,copy", "--json", "{out}"),),
               PARTS, 5, only_by_name=True, not_run=LIST_OF_PARTS),
        # By how often loads come, pieces of an epilogue, products in bursts: rounds of their own, for the same reason.
        Record("paces", "experiments/{date}-{gpu}-paces.json",
               (("{programs}/ladder", "parts", "--only", "pace,pieces,burst", "--json", "{out}"),),
               PARTS, 4, not_run=LIST_OF_PARTS),
        # Loads behind products, whose clock is low: a round of its own, since pages quote figures of `parts`.
        Record("clocks", file_of_experiment("clocks", "ladder"), (("{programs}/ladder", "parts", "--only", "clock", "--json", "{out}"),),
               PARTS, 4, not_run=LIST_OF_PARTS),
        Record("path", file_of_experiment("path", "ladder"), (("{programs}/ladder", "parts", "--only", "path", "--json", "{out}"),),
               ("common/parts/shared_path_gpu.cu", "common/parts/measured_gpu.cuh"), 3, not_run=LIST_OF_PARTS),
        experiment("slots", 7, "03_double_buffer", "--size 4096 --slots 1,2,3,4,5 --rounds 7"),
        experiment("ring", 8, "05_ws_double_buffer", "--size 4096,8192 --slots 1,2,3,4 --rounds 7 --no-library"),
        experiment("coalescing", 6, "01_naive", "--size 2048 --along columns,rows --rounds 7"),
        # No product is timed: the model is made of records that come before it.
        Record("model", "model/{date}-{gpu}.json",
               (("{programs}/predict", "--lessons", "--results", "{results}", "--json", "{out}"),),
               ("common/model/*.cpp", "common/model/*.hpp"), 2,
               inputs=("climb", "levels", "slots", "ring", "cube", "parts", "paces", "path", "coalescing")),
        tests("sanitizers", 205, "--build-config Sanitize --label-regex sanitize --parallel 12",
              KERNELS + STREAMS),
        tests("tests", 120, WITHOUT_PAGES, KERNELS + STREAMS),
        *(lab(number, seconds) for number, seconds in (
            ("02", 50), ("03", 80), ("04", 110), ("05", 120), ("06", 60), ("any", 140), ("07", 150))),
        # Needs a profiler that may read the GPU's counters.
        Record("profiles", "profiles/{gpu}.json", (("common/results/profile.sh", "{build}", "{out}", "4096"),), KERNELS, 70),
        Record("sampled", "profiles/{gpu}.json", (("common/results/sampled.py", "{build}", "{out}", "4096"),),
               LESSON["02"] + LESSON["03"] + LESSON["04"] + LESSON["05"], 15, not_run=OTHER_CORES),
        # L2 by the order of tiles, at a size whose operands do not fit.
        Record("profile_order", "profiles/{gpu}.json",
               (("common/results/profile.sh", "{build}", "{out}", "8192", "order"),), LESSON["05"] + LESSON["any"], 30,
               not_run=OTHER_CORES),
        experiment("tiled_cores", 7, "02_tiled", "--size 4096 --core wgmma,mma_sync,fma --rounds 7"),
        experiment("copies", 9, "03_double_buffer", "--size 4096 --copy memcpy_async,block,primitives,cg,registers --slots 1,2,3 "
                   "--rounds 7 --no-library"),
        experiment("bytes", 6, "03_double_buffer", "--size 4096 --copy memcpy_async --bytes 16,8,4 --rounds 7"),
        # At 5000 rows straddle sectors, and copies through L1 pay.
        experiment("l1", 12, "03_double_buffer", "--size 4096,5000 --slots 1,2,3 --l1 never,always --rounds 7 --no-library"),
        experiment("cores", 6, "03_double_buffer", "--size 4096 --core wgmma,mma_sync,fma --slots 1,2,3 --rounds 7 --no-library"),
        experiment("portable", 5, "04_portable", "--size 1024,4096"),
        experiment("small", 25, "ladder", "--lessons 03,04,05,06 --size 256,512,1024,2048 --rounds 5"),
        # Where roles begin to pay: nothing but the roles differs.
        experiment("small_cube", 12, "05_cube", "--size 256,512,1024,2048 --roles off,on --slots 2,3,4 --blocks 1 --rounds 7 --no-library"),
        experiment("in_flight", 15, "05_cube", f"{threefold} --in_flight 0,1 --rounds 7 --no-library"),
        experiment("consumers", 32, "05_ws_double_buffer", "--size 2048,4096,8192 --shape 8192x8192x512,8192x8192x1024 "
                   "--in_flight 1 --consumers together,ping-pong --epilogue none,bias_gelu --rounds 7"),
        experiment("ring_mma_sync", 8, "03_double_buffer", "--size 4096,8192 --core mma_sync --slots 2,3,4 --rounds 7 "
                   "--no-library"),
        experiment("roles_without_wgmma", 15, "05_ws_double_buffer", "--size 4096,8192 --core mma_sync --loader tma,cp_async "
                   "--slots 2,3,4 --rounds 7 --no-library"),
        # Needs PyTorch, whose kernels stand beside.
        Record("attention", file_of_experiment("attention", "05_attention"),
               (("cmake", "--build", "{build}", "--target", "05_attention_library"),
                ("05_ws_double_buffer/attention/beside_torch.py", "{programs}/lib05_attention_library.so", "--json", "{out}")),
               ("05_ws_double_buffer/attention/kernels.cu", "05_ws_double_buffer/attention/beside_torch.py"), 30),
        experiment("dual_gemm", 16, "05_dual_gemm", "--size 2048,4096,8192 --shape 4096x14336x4096 --rounds 7"),
        experiment("group", 9, "05_ws_double_buffer", "--size 8192 --in_flight 1 --group 1,4,8,16 --rounds 7"),
        experiment("epilogue", 12, "05_ws_double_buffer", "--size 2048,4096,8192 --in_flight 1 "
                   "--epilogue none,bias_relu,bias_gelu --rounds 7 --no-library"),
        experiment("ratio", 6, "05_ws_double_buffer", "--size 4096 --in_flight 1 --ratio 1:1,1:2,1:3 --rounds 7"),
        # Against the libraries on shapes from real models and at their edges. Long samples: a GPU at its power limit needs a
        # tenth of a second, warm-up and sample, to reach the clock of a kernel.
        experiment("shapes", 75, "ladder", f"--lessons 05,06 --sample-ms 50 --rounds 3 --shape {NAMED}"),
        any_shapes("named_shapes", 15, "3072x3072x3072,5000x5000x5000,8192x1032x2056,12288x64x12288,256x256x65536,1x8192x8192"),
        experiment("hot", 8, "ladder", "--lessons 05,06 --size 1024 --inputs hot --rounds 7"),
        # Where the power limit decides the clock, and where it does not; and what bits cost that do not switch.
        experiment("energy", 45, "ladder", "--lessons 03,05,06 --size 1024,4096,8192 --rounds 5 --energy"),
        experiment("zeros", 15, "ladder", "--lessons 05 --size 4096,8192 --rounds 5 --energy --inputs zeros --no-verify --no-library"),
        # With samples of a second, the choice among cublasLt's algorithms alone took more than a minute.
        experiment("sustained", 30, "ladder", "--lessons 05,06 --size 8192 --sample-ms 300 --rounds 2"),
        # So many rounds that a percent between 05 and the library is more than scatter.
        experiment("library", 130, "ladder", "--lessons 05,06_clusters_dsmem --size 4096,8192 --inputs cold --sample-ms 50 --rounds 41"),
        # Batches of lesson 07, where the last wave of tiles is not full.
        experiment("wide_weights", 22, "06_any_shape", "--no-verify --rounds 3 --sample-ms 60 "
                   "--shape 1600x16384x16384,2048x16384x16384,2400x16384x16384 --tile 64x128 --cluster_m 1 --cluster_n 1 "
                   "--cluster_k 1,2 --stream_k off"),
        experiment("stream_k", 13, "06_any_shape", "--no-verify --shape 5000x5000x5000,2506x2632x4040,3072x3072x3072 "
                   "--stream_k off,on --rounds 7"),
        experiment("fused", 11, "06_any_shape", "--size 4096 --shape 256x1024x8192 --epilogue none,bias_relu,bias_gelu --rounds 7"),
        experiment("grid_barrier", 4, "06_grid_barrier", ""),
        experiment("pdl", 13, "06_any_shape", "--size 1024,2048,4096 --pdl on,off --rounds 7"),
        # Lesson 07: an experiment for each question of its pages.
        of_streams("chunk", 30, "--rounds 3"),
        *(of_streams(name, 7, "--rounds 5") for name in ("pinned", "streams", "alloc", "stalls", "scratch", "default_stream",
                                                          "waits", "events", "graph", "layers", "recycle")),
        # Of these the shape does not matter.
        of_streams("arrival", 6, "--shape 2048x4096x4096 --rounds 7"),
        # These multiply no matrices, but run small kernels of their own, or none.
        *(of_streams(name, 6, "--shape 2048x4096x4096 --rounds 7", around=())
          for name in ("sharing", "overhead", "fragments", "wake_up", "graph_update", "small_copies")),
        # The kernels only keep the GPU busy, for longer than the longest call.
        of_streams("pinning", 15, "--shape 2048x16384x16384 --rounds 5", sources=("07_streams/experiments/memory/stalls.cpp",), around=()),
        of_streams("priority", 4, "--shape 2048x4096x4096 --rounds 7", sources=("07_streams/experiments/sharing.cu",), around=()),
        Record("default_streams", file_of_experiment("default_streams", "07_default_streams"),
               (("{programs}/07_default_streams", "--json", "{out}"),),
               STREAMS + ("07_streams/experiments/default_streams_main.cu",), 6, not_run=OTHER_CORES),
        *(dataclasses.replace(timeline(f"07_{name}", "07_streams", f"--experiment {name} --rounds 1 {options}",
                                       STREAMS + (f"07_streams/experiments/gpus/{name}.cpp",), seconds=8), gpus=2)
          for name, options in (("peers", "--shape 4096x8192x8192 --batches 10"), ("allreduce", "--shape 7936x8192x16384 --batches 8"))),
        of_streams("engines", 10, gpus=2),
        of_streams("peers", 20, "--shape 4096x8192x8192 --batches 100 --rounds 7", gpus=2),
        # 31 x 32 tiles: with 8 SMs less, clusters still need 16 rounds, as they do with all of them.
        of_streams("allreduce", 20, "--shape 7936x8192x16384 --batches 50 --rounds 7", gpus=2),
        # The build of each takes longer than the run.
        *(architecture(name, 40) for name in ("80-virtual", "90-virtual", "75-virtual")),
        architecture_tests("80-virtual", 110), architecture_tests("90-virtual", 110),
        # The CPU device: its virtual clock is the same on every machine.
        *(timeline(f"{program}{beside}-cpu_device", program, f"--size 512{options} --no-verify --trace-blocks 1",
                   LESSON[number] + CPU_TIME, device="cpu", seconds=5)
          for number, program, beside, options in (
              ("03", "03_double_buffer", "", ""), ("03", "03_double_buffer", "-slots_1", " --slots 1"),
              ("04", "04_warp_specialized", "", ""), ("05", "05_ws_double_buffer", "", ""), ("any", "06_any_shape", "", ""))),
        Record("lab_cpu", "lab/{date}-cpu.json",
               (("cmake", "--build", "{build}", "--target", "lab"),
                ("common/lab/matrix.py", "--programs", "{programs}", "--json", "{out}", "--continue", "--commit", "{commit}")),
               KERNELS + STREAMS + PATCHES, 900, device="cpu", only_by_name=True),
        Record("mutants", "lab/{date}-mutants.json", (("common/lab/mutate.py", "--build", "{build}-mutants", "--json", "{out}"),), KERNELS, 1200, device="cpu",
               only_by_name=True))


RECORDS = in_order_of_worth()
BY_NAME = {record.name: record for record in RECORDS}
