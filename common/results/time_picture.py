"""Steps of a block in time, at one scale for lessons 03, 04 and 05.

    <!-- time: name=ring_in_time kernels=copies:1,copies:3 -->
    <!-- time: name=roles_in_time kernels=roles:1,roles:2 loads=1336,1298 -->
    <!-- end -->

A kernel is who loads, and how many slots there are. `copies`: all warps copy and multiply (03). `tma`: one of the threads that
multiply asks for loads (04.1). `roles`: a loader asks (04.2 to 05). A lane for each slot shows its loads and products, the lanes
around them who works. `registers` is 02, whose number is that of blocks on the SM, with a lane for each: they are drawn as far apart
as they can be. The clocks are those of the newest record of parts, added up as docs/cost_model.md does, with tiles of 128 x 128 x 64: of roles
with a ring for a block alone on its SM, else for one of two blocks. `loads` are the clocks that the page's *Predict* has for a load of each kernel, which depend on
its clock and on how often loads come; without them loads take what they do at CLOCK, where an SM asks for one every 0.6 us. Written to
docs/figures/NAME.svg, which follows the reader's light or dark theme.
"""
import math
import re
import textwrap
from dataclasses import dataclass, replace

import lesson_pictures
from climb_table import BadInput
from experiment_tables import read_parts
from idea_pictures import PHONE, rectangle, svg, text
from lesson_pictures import line
from page_requests import parse_words
from stale import dated

LEFT, RIGHT, LANE, BOX = 60, 392, 28, 23  # pixels
SHOWN = 4200  # clocks
TICKS = range(0, SHOWN + 1, 1000)
WORDS = 58  # letters that a line has room for
SHORTEST_WAIT = 250  # clocks, that has room for a word
CLOCK = 1.65  # clocks a ns: about what kernels with one slot get
EVERY = 600  # ns from one load of an SM to its next in these kernels, about
PAUSE = 303  # ns between two loads of a part that has one in flight (600 clocks, common/parts/loads_gpu.cu)
M, N, K, MULTIPLY_ADDS = 128, 128, 64, 2048  # of a step, and of an SM's tensor cores in a clock
STYLE = lesson_pictures.STYLE + """
    .strong { font-weight: bold; }
    .idle { fill: none; stroke: #6e7781; stroke-dasharray: 3 3; }
    @media (prefers-color-scheme: dark) { .idle { stroke: #9198a1; } }"""


@dataclass
class Parts:
    """Clocks, by the rows that common/model/parts.cpp reads."""
    ask: float
    load: float
    hand_over: float
    barrier: float
    copy_asked: float
    copy_landed: float
    copy_registers: float
    fence: float
    wait: float  # that a product takes longer because it is waited for
    copy_meets: float     # that a copy through registers loses to the other block's product,
    product_meets: float  # and a product to the other block's copy
    product: float = M * N * K / MULTIPLY_ADDS

    @property
    def waited_for(self):
        return self.product + self.wait


def between(faster, slower, every=EVERY):
    """What a load takes in ns, if one comes every `every`: on the line between two of (from one load to the next, until it has landed),
    and as the slower one beyond."""
    every = min(every, slower[0])
    return faster[1] + (slower[1] - faster[1]) * (every - faster[0]) / (slower[0] - faster[0])


def parts_of(line_of_page, results_folder):
    records = [read_parts(results_folder, name) or {"runs": []} for name in ("parts", "paces", "path")]

    def row(part, settings):
        found = [run for record in records for run in record["runs"] if run["part"] == part and settings.items() <= run["settings"].items()]
        if len(found) != 1:
            raise BadInput(f"{line_of_page}: the record of parts has {len(found)} rows of {part} with {', '.join(settings.values())}")
        return found[0]

    def clocks(part, **settings):
        return row(part, settings)["clocks"]

    def ns(part, **settings):
        return clocks(part, **settings) / records[0]["max_clock_mhz"] * 1000

    def tma(in_flight):
        return ns("tile", **{"size": "32 KB", "in_flight": f"{in_flight} in flight", "rows": "whole lines", "from": "memory"})

    def meets():
        """What a copy through registers loses to each product that it meets, and a product to copies."""
        copy, alone, product, product_alone = (row("path", {"way": "through registers", "what": what, "beside": beside}) for what, beside in (
            ("a copy", "beside products"), ("a copy", "alone"), ("a product", "beside copies"), ("a product", "alone")))
        longer_us = copy["clocks"] / copy["mhz"] - alone["clocks"] / alone["mhz"]
        return longer_us * copy["mhz"] / (copy["clocks"] / product["clocks"]), product["clocks"] - product_alone["clocks"]

    def threads(way, of_one):
        two = [ns("paced", way=way, size="32 KB", rows="whole lines", every="0", what=what) for what in ("interval", "landed")]
        one = ns("copy", **copy, way=of_one, **{"from": "memory"})
        return CLOCK * between(two, (one, one))

    copy = {"size": "32 KB", "blocks": "all SMs"}
    product = {"m": "m 64", "n": "n 128", "loads": "no loads"}
    return Parts(ask=clocks("ask", boxes="1 x 16 KB + 2 x 8 KB"), load=CLOCK * between((tma(2), 2 * tma(2)), (tma(1) + PAUSE, tma(1))),
                 hand_over=clocks("hand-over", arrivals="1 thread arrives"), barrier=clocks("syncthreads", threads="256 threads"),
                 copy_asked=clocks("copy", **copy, way="cp.async, asked for", **{"from": "L2"}),
                 copy_landed=threads("cp.async", "cp.async, landed"), copy_registers=threads("through registers", "through registers"),
                 copy_meets=meets()[0], product_meets=meets()[1],
                 fence=clocks("epilogue", tile=f"{M} x {N}", piece="fence and barrier", blocks="all SMs"),
                 wait=clocks("product", **product, wait="waited for") - clocks("product", **product, wait="in flight"))


@dataclass
class Step:
    asked: float  # when the load is asked for
    full: float   # when the slot is full
    begin: float  # of the product
    end: float    # when its wait is over
    others: tuple = ()  # (word, begin, end) of what the threads that multiply do besides


def copies(parts, slots, until):
    """All warps copy and multiply in turn. A fence and a barrier lie before each product; with one slot another barrier behind it."""
    steps, now = [], 0

    def ask():
        nonlocal now
        steps.append([now, now + parts.copy_landed])
        now += parts.copy_asked
        return "ask", now - parts.copy_asked, now

    asks = [ask() for _ in range(max(slots - 1, 1))]
    done = []
    while now < until:
        asked, full = steps[len(done)]
        now = max(now, full)
        fence = ("fence", now, now + parts.fence)
        now += parts.fence
        if slots > 1:
            asks.append(ask())
        begin, now = now, now + parts.waited_for
        done.append(Step(asked, full, begin, now, (fence, *asks)))
        asks = []
        if slots == 1:
            asks.append(("", now, now + parts.barrier))
            now += parts.barrier
            asks.append(ask())
    return done


def tma(parts, slots, until):
    """One of the threads that multiply asks, all wait, multiply, and meet at a barrier."""
    if slots != 1:
        raise ValueError("has one slot")
    done, now = [], 0
    while now < until:
        full = now + parts.load
        end = full + parts.waited_for
        done.append(Step(now, full, full, end, (("", now, now + parts.ask), ("", end, end + parts.barrier))))
        now = end + parts.barrier
    return done


def roles(parts, slots, until):
    """Half of a hand-over lies between a full slot and its product, and half between the product's end and the next load."""
    done = []
    while not done or done[-1].begin < until:
        asked = done[-1].asked + parts.ask if done else 0
        if len(done) >= slots:
            asked = max(asked, done[-slots].end + parts.hand_over / 2)
        full = asked + parts.load
        begin = max(full + parts.hand_over / 2, done[-1].begin + parts.product if done else 0)
        done.append(Step(asked, full, begin, begin + parts.waited_for))
    return done


def registers(parts, blocks, until):
    """The steps of each block: copy, fence and barrier, product, barrier. The blocks begin at equal distances, and a copy of one and a
    product of the other hold each other up."""
    meet = blocks > 1
    copy, product = parts.copy_registers + meet * parts.copy_meets, parts.waited_for + meet * parts.product_meets
    step = copy + parts.fence + product + parts.barrier
    done = []
    for block in range(blocks):
        starts = [block * step / blocks + step * i for i in range(math.ceil(until / step))]
        fences = [start + copy for start in starts]
        done.append([Step(start, fence, fence + parts.fence, fence + parts.fence + product, (("fence", fence, fence + parts.fence),))
                     for start, fence in zip(starts, fences)])
    return done


def sums(parts, who, slots):
    """What a step takes, as the numbers that are added."""
    product = f"{parts.product:.0f} + {parts.wait:.0f} for the product"
    if who == "registers":
        numbers = [parts.copy_registers, parts.fence, parts.product, parts.wait, parts.barrier]
        of_one = sum(round(number) for number in numbers)
        if slots == 2:
            meet = round(parts.copy_meets) + round(parts.product_meets)
            return (f"a step of a block = {of_one} + {meet} that copy and product lose to the other block = {of_one + meet}; of the SM "
                    f"{of_one + meet} / 2, and some clocks where both want to multiply")
        return (f"a step = {numbers[0]:.0f} for the copy + {numbers[1]:.0f} for fence and barrier + {product} + {numbers[4]:.0f} for the "
                f"barrier = {of_one}")
    if who == "copies" and slots == 1:
        return (f"a step = {parts.copy_landed:.0f} for the copy + {parts.fence:.0f} for the fence + {product} + {parts.barrier:.0f} for "
                "the barrier")
    if who == "copies":
        return (f"a step = {parts.copy_asked:.0f} to ask + {parts.fence:.0f} for the fence + {product}; at least (copy + fence) / (S − 1) = "
                f"({parts.copy_landed:.0f} + {parts.fence:.0f}) / {slots - 1}")
    if who == "tma":
        return f"a step = {parts.load:.0f} for the load + {product} + {parts.barrier:.0f} for the barrier"
    round_ = f"({parts.load:.0f} for the load + {parts.hand_over:.0f} for the hand-over + {product}) / {slots}"
    return f"a step = (l + c) / S = {round_}; at least {parts.product:.0f}"


KERNELS = {"registers": (registers, None, "tensor cores"), "copies": (copies, "all warps copy and multiply (03)", "warps"), "tma": (tma, "TMA, no roles (04.1)", "warps"),
           "roles": (roles, None, "compute")}


def heading(who, slots):
    if who == "registers":
        return "one block on the SM (02)" if slots == 1 else "two blocks take turns (02)"
    title = KERNELS[who][1] or ("roles (04.2)" if slots == 1 else "roles and a ring (05)")
    if who == "copies" and slots == 1:
        title = title.replace("(03)", "(03.2)")
    return f"{slots} slot{'s' if slots > 1 else ''}, {title}"


def panel(parts, who, slots, top):
    """(shapes, how high they are, the lines behind them)"""
    play, _, workers = KERNELS[who]
    steps = play(parts, slots, 2 * SHOWN)  # the loads of later steps begin before the end, too
    sum_lines = textwrap.wrap(sums(parts, who, slots), WORDS)
    ticks_from = top + 24 + 16 * len(sum_lines)

    def x(clocks):
        return LEFT + (RIGHT - LEFT) * clocks / SHOWN

    def span(style, begin, end, y, *words):
        """words: what the box says, and what it says where that has no room"""
        if begin >= SHOWN:
            return []
        left, right = x(begin), x(min(end, SHOWN))
        shapes = [rectangle(style, left + .5, y, max(right - left - 1, 1), BOX)]
        fitting = next((each for each in words if right - left > 7.3 * len(str(each))), "")
        if fitting != "":
            shapes.append(text((left + right) / 2, y + 16, fitting, style="small"))
        return shapes

    def lane(name, y):
        lines = name.split() if len(name) > 8 else [name]
        return "".join(text(LEFT - 6, y + 16 + 12 * i - 6 * (len(lines) - 1), words, "end", "small") for i, words in enumerate(lines))

    shapes = [text(8, top + 16, heading(who, slots), "start", "strong"), *(text(8, top + 34 + 16 * i, words, "start", "small") for i, words in enumerate(sum_lines))]
    y = top + 28 + 16 * len(sum_lines)
    if who == "registers":
        for block, of_block in enumerate(steps):
            shapes.append(lane(f"block {block}", y))
            for i, step in enumerate(of_block):
                for words, begin, end in step.others:
                    shapes += span("one", step.asked, step.full, y, f"copy {i}", i) + span("marked", begin, end, y, words)
                shapes += span("third", step.begin, step.end, y, f"multiply {i}", i)
            y += LANE
        shapes.append(lane(workers, y))
        for of_block in steps:
            shapes += [shape for step in of_block for shape in span("third", step.begin, step.begin + parts.product, y, "busy")]
        y += LANE
        return shapes, y - top, [line(x(tick), ticks_from, x(tick), y) for tick in TICKS]
    if who == "roles":
        shapes.append(lane("loader", y))
        for step, before in zip(steps, [None, *steps]):
            asked_before = before.asked + parts.ask if before else 0
            if step.asked - asked_before > SHORTEST_WAIT:
                shapes += span("idle", asked_before, step.asked, y, "waits for a slot", "waits")
            shapes += span("used", step.asked, step.asked + parts.ask, y)
        y += LANE
    for slot in range(slots):
        shapes.append(lane(f"slot {slot}", y + LANE * slot))
    for i, step in enumerate(steps):
        at = y + LANE * (i % slots)
        shapes += span("one", step.asked, step.full, at, f"load {i}", i) + span("third", step.begin, step.end, at, f"read {i}", i)
        if step.begin - step.full > SHORTEST_WAIT:
            shapes += span("other", step.full, step.begin, at, "full")
    y += LANE * slots
    shapes.append(lane(workers, y))
    free = 0
    for i, step in enumerate(steps):
        busy = sorted([*step.others, (f"multiply {i}", step.begin, step.begin + parts.product if who == "roles" else step.end)],
                      key=lambda one: one[1])
        for words, begin, end in busy:
            if begin - free > SHORTEST_WAIT:
                shapes += span("idle", free, begin, y, "wait")
            shapes += span("third" if words.startswith("multiply") else "used" if not words or words == "ask" else "marked", begin, end, y,
                           *(() if words == "ask" else (words, words.split(" ")[-1])))
            free = end
    y += LANE
    return shapes, y - top, [line(x(tick), ticks_from, x(tick), y) for tick in TICKS]


FAR = .15  # the pages' loads are of other clocks and paces, which change a load by less


def with_load(line_of_page, parts, who, load):
    """The parts with a load that takes what the page says, in clocks, or as they are."""
    if load is None:
        return parts
    name = {"registers": "copy_registers", "copies": "copy_landed"}.get(who, "load")
    if abs(int(load) / getattr(parts, name) - 1) > FAR:
        raise BadInput(f"{line_of_page}: a load of {load} clocks is far from the {getattr(parts, name):.0f} of the record")
    return replace(parts, **{name: float(load)})


LEGEND = (("used", "asks"), ("one", "load under way"), ("other", "full"), ("third", "read, multiply"), ("marked", "fence and barrier"),
          ("idle", "waits"))


def drawn(line_of_page, words, results_folder):
    """(name, alternative text, SVG)"""
    values, only = parse_words(line_of_page, words, ("name", "kernels", "loads"))
    kernels = re.findall(r"(registers:[12]|(?!registers)\w+:[1-4])(?:,|$)", values.get("kernels", ""))
    kernels = [tuple(kernel.split(":")) for kernel in kernels]
    if only or "name" not in values or ",".join(map(":".join, kernels)) != values.get("kernels") or not {who for who, _ in kernels} <= KERNELS.keys():
        raise BadInput(f"{line_of_page}: needs name= and kernels=, of {', '.join(KERNELS)}, each with :1 to :4 slots")
    parts, record, shapes, alts, top = parts_of(line_of_page, results_folder), read_parts(results_folder), [], [], 0
    loads = re.findall(r"\d+", values.get("loads", "")) or [None] * len(kernels)
    if len(loads) != len(kernels):
        raise BadInput(f"{line_of_page}: loads= needs the clocks of a load for each kernel")
    for (who, slots), load in zip(kernels, loads):
        lanes, height, ticks = panel(with_load(line_of_page, parts, who, load), who, int(slots), top)
        shapes += [*ticks, *lanes]
        alts.append(heading(who, int(slots)))
        top += height + 12
    shapes.append(text(LEFT - 10, top + 4, "clocks", "end", "small"))
    at, row = 8, top + 16
    for tick in TICKS:
        shapes.append(text(LEFT + (RIGHT - LEFT) * tick / SHOWN, top + 4, f"{tick}", style="small"))
    used = "".join(shapes)
    for style, words_ in LEGEND:
        if f'class="{style}"' not in used:
            continue
        if at + 20 + 6.5 * len(words_) > PHONE:
            at, row = 8, row + 20
        shapes += [rectangle(style, at, row, 14, 14), text(at + 20, row + 12, words_, "start", "small")]
        at += 32 + 6.5 * len(words_)
    # Of these kernels two blocks share an SM, and their loads are of that pace.
    where = "A block alone on its SM" if all(who == "roles" and int(slots) > 1 for who, slots in kernels) else "One of two blocks on an SM"
    where = "" if ("registers", "2") in kernels else f"{where}. "
    facts = textwrap.wrap(f"{where}Parts measured on an {record['gpu']}, {dated(record)}.", WORDS)
    shapes += [text(8, row + 34 + 16 * i, words_, "start", "small") for i, words_ in enumerate(facts)]
    return values["name"], f"Steps in time: {'; '.join(alts)}", svg(row + 26 + 16 * len(facts), "Steps in time", shapes, STYLE)
