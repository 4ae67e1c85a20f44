"""Pictures of concepts that several lessons use.

    <!-- concept: mbarrier_laps -->
    <!-- concept: tma_box rows=64 columns=256 -->
    <!-- concept: multicast blocks=2 rows=64 -->
    <!-- concept: partial_sums blocks=2 -->
    <!-- concept: cluster_of_four -->
    <!-- concept: release_in_a_cluster -->
    <!-- concept: inbox_in_a_cluster -->
    <!-- concept: fragments columns=128 -->
    <!-- concept: sums_to_operand -->
    <!-- concept: roles slots=1 -->
    <!-- concept: two_levels batches=4 tiles=7 -->
    <!-- concept: attention_turns product=512 wait=53 softmax=1772 -->
    <!-- end -->

mbarrier_laps follows the two barriers of one slot of a ring over two laps; what it shows is computed by a barrier that counts as
the real one does. tma_box shows how a tile of B comes in boxes, some of which stick out of the matrix; multicast how blocks of a
cluster share the load of a tile; partial_sums how blocks that split K add up. cluster_of_four shows who loads and sends what in
lesson 06, by its expressions; release_in_a_cluster how two of these blocks free a slot, and inbox_in_a_cluster how one sends sums to its
peer in step 06.3, with barriers that count. fragments
shows which lane holds which sums, by the expressions of FmaCore, which takes the places of wgmma; sums_to_operand
how the sums of attention's first product become the operand A of its second, by the expressions of to_weights() and of the CPU device's
tensor cores. roles shows who hands what to whom
in lesson 04's kernel; two_levels lays three stages of a pipeline out in time, for batches and for tiles. attention_turns follows
steps 1, 3 and 4 of attention by three parts of 64 queries and 128 keys, in clocks: a product, what it takes longer because it is
waited for, and a softmax. They are written to docs/figures/NAME.svg, as SVG that follows the reader's light or dark theme.
"""
import functools
import re
from pathlib import Path

from climb_table import BadInput
from idea_pictures import PHONE, box, svg, text
from lesson_pictures import Sources
from page_requests import parse_words

ROOT = Path(__file__).resolve().parents[2]

STYLE = """
    text { font: 13px sans-serif; fill: #1f2328; }
    .small { font-size: 12px; }
    .strong { font-weight: bold; }
    .edge { fill: none; stroke: #6e7781; }
    .grid { stroke: #d1d9e0; }
    .one { fill: #ddebf7; stroke: #2f6fab; }
    .other { fill: #fdf1d6; stroke: #a87c1f; }
    .third { fill: #dcf2e1; stroke: #2a8c4a; }
    .used { fill: #2a8c4a; stroke: #2a8c4a; }
    .outside { fill: none; stroke: #6e7781; stroke-dasharray: 3 3; }
    .arrow { fill: none; stroke: #6e7781; stroke-width: 1.5; marker-end: url(#head); }
    #head path { fill: #6e7781; }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3; }
      .edge, .outside, .arrow { stroke: #9198a1; }
      .grid { stroke: #3a3c40; }
      .one { fill: #173a5e; stroke: #6cb0f0; }
      .other { fill: #4a3a12; stroke: #d9b25b; }
      .third { fill: #153d22; stroke: #57c27c; }
      .used { fill: #57c27c; stroke: #57c27c; }
      #head path { fill: #9198a1; }
    }"""
HEAD = ('<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0 0 L8 4 L0 8 z"/></marker></defs>')


def arrow(x1, y1, x2, y2):
    return f'<path class="arrow" d="M{x1:g} {y1:g} L{x2:g} {y2:g}"/>'


# --- An mbarrier over two laps ----------------------------------------------------------------------------------------


class Barrier:
    """Counts as an mbarrier does: a phase is complete when no arrival and no byte is missing, and the next begins."""

    def __init__(self, arrivals):
        self.expected = self.missing = arrivals
        self.bytes = self.phase = 0

    def arrive(self, more_bytes=0):
        self.missing -= 1
        self.count(more_bytes)

    def count(self, more_bytes):
        self.bytes += more_bytes
        if self.missing == 0 and self.bytes == 0:
            self.phase, self.missing = self.phase + 1, self.expected

    def lets_pass(self, parity):
        """Whether a wait for this parity returns: the phase that runs has the other one."""
        return self.phase % 2 != parity


WARPGROUPS = 2


def slot_kb():
    """Of lesson 04: a tile of A and one of B, of two bytes an element."""
    m, n, k = Sources(ROOT).tile_shape("04_warp_specialized/gemm.cuh")
    return (m * k + k * n) * 2 // 1024


def laps(count=2):
    """[(what happens, state of full, state of empty)] of one slot; a state is (phase, arrivals missing, KB missing)."""
    kilobytes = slot_kb()
    full, empty, events = Barrier(1), Barrier(WARPGROUPS), []

    def happens(*words):
        events.append((words, *((one.phase, one.missing, one.bytes) for one in (full, empty))))

    happens("after", "init")
    for lap in range(count):
        parity = lap % 2
        assert empty.lets_pass(parity ^ 1) and not full.lets_pass(parity)
        happens("loader waits", "at empty for", f"parity {parity ^ 1}: passes")
        full.arrive(kilobytes)
        happens("loader arrives,", f"expects {kilobytes} KB")
        assert not full.lets_pass(parity)
        full.count(-kilobytes)
        assert full.lets_pass(parity)
        happens("TMA's bytes", "have landed")
        happens("compute waits", "at full for", f"parity {parity}: passes")
        for warpgroup in range(WARPGROUPS):
            empty.arrive()
            happens(f"warpgroup {warpgroup}", "releases")
    return events


def mbarrier_laps(_line, _values):
    """A row for each event, and in it the state of both barriers."""
    shapes, top = [text(x, 18, name, style="strong") for x, name in ((230, "full"), (340, "empty"))], 28
    events = laps()
    for at, (words, *states) in enumerate(events):
        if at % (len(events) // 2) == 1:  # behind init and after each lap
            shapes.append(text(4, top + 16, f"lap {1 + at // (len(events) // 2)}", "start", "strong"))
            top += 24
        shapes += [text(4, top + (14 if len(words) > 1 else 22) + 15 * i, line, "start", "small")
                   for i, line in enumerate((" ".join(words[:-1]), words[-1]) if len(words) > 1 else words)]
        for x, (phase, missing, kilobytes) in zip((178, 288), states):
            lacking = f"{missing} arrival{'s' if missing != 1 else ''}" + (f", {kilobytes} KB" if kilobytes else "")
            shapes += [box("other" if phase % 2 else "one", x, top, 106, 36),
                       text(x + 53, top + 14, f"phase {phase}, parity {phase % 2}", style="small"), text(x + 53, top + 30, lacking, style="small")]
        top += 39
    shapes.append(text(4, top + 14, "Below each phase: what is missing until it is complete.", "start", "small"))
    return ("The two barriers of one slot over two laps: phase, parity, what is missing, and the parity that each role waits "
            "for"), svg(top + 22, "An mbarrier over two laps", shapes, STYLE)


# --- TMA, multicast, partial sums -------------------------------------------------------------------------------------


def number(line, values, name):
    if not values.get(name, "").isdecimal() or int(values[name]) < 1:
        raise BadInput(f"{line}: {name}= must be a number from 1 on")
    return int(values[name])


PANEL = 64  # columns: 128 bytes of bf16, the most that a box with the 128-byte swizzle is wide
STYLES = ("one", "other", "third")


def tma_box(line, values):
    rows, columns = number(line, values, "rows"), number(line, values, "columns")
    boxes = -(-columns // PANEL)
    outside = PANEL // 2  # columns of the last box that lie right of the matrix
    scale = 360 / PANEL / boxes
    left, top, height = 20, 60, rows * .9
    width = (columns - outside) * scale
    shapes = [HEAD, text(left, 20, "global memory: B, row-major", "start", "strong"),
              box("edge", left, top - 22, width, height + 44)]
    for i in range(boxes):
        inside = min(PANEL, columns - outside - PANEL * i) * scale
        shapes += [box(STYLES[i % 3], left + PANEL * i * scale, top, inside, height),
                   text(left + PANEL * i * scale + PANEL * scale / 2, top + height / 2 + 5, f"box {i}", style="small")]
    shapes.append(box("outside", left + width, top, outside * scale, height))
    bottom = top + height + 22
    shapes += [text(380, bottom + 18, f"{outside} columns outside: zeros, and their bytes count", "end", "small"),
               arrow(40, bottom + 6, 40, bottom + 58), text(52, bottom + 48, f"one thread, {boxes} instructions", "start", "small"),
               text(left, bottom + 82, "shared memory: a slot", "start", "strong")]
    bottom += 92
    for i in range(boxes):
        shapes += [box(STYLES[i % 3], left, bottom + 32 * i, 250, 26),
                   text(left + 125, bottom + 18 + 32 * i, f"panel {i}: {rows} × 128 bytes, swizzled", style="small")]
    bottom += 32 * boxes + 14
    total = boxes * rows * 128
    shapes.append(text(left, bottom, f"full counts {boxes} × {rows} × 128 = {total} bytes", "start", "small"))
    return (f"A tile of B, {rows} rows and {columns} columns, comes in {boxes} boxes of {PANEL} columns; what lies outside the matrix is "
            "filled with zeros"), svg(bottom + 12, "A TMA box landing", shapes, STYLE)


def multicast(line, values):
    blocks, rows = number(line, values, "blocks"), number(line, values, "rows")
    if rows % blocks:
        raise BadInput(f"{line}: rows= must be a multiple of blocks=")
    spacing, wide, each = PHONE / blocks, min(110, 340 / blocks), rows // blocks
    middle, height = PHONE / 2, 108
    part = height / blocks
    shapes = [HEAD, text(middle, 18, "L2: one panel of B", style="strong")]

    def panel(x, y):
        shapes.extend(box(STYLES[i % 3], x, y + part * i, wide, part) for i in range(blocks))

    panel(middle - wide / 2, 28)
    for i in range(blocks):
        shapes += [text(middle, 28 + part * (i + .5) - 4, f"rows {each * i} to {each * (i + 1) - 1}", style="small"),
                   text(middle, 28 + part * (i + .5) + 12, f"block {i} asks", style="small")]
    for block in range(blocks):
        x, y = spacing * (block + .5), 200
        shapes.append(box("edge", x - spacing / 2 + 4, y - 14, spacing - 8, height + 78))
        panel(x - wide / 2, y)
        shapes += [text(x, y + height + 20, f"block {block}'s slot", style="strong"),
                   text(x, y + height + 38, f"asks for {each} rows,", style="small"), text(x, y + height + 54, f"receives {rows}", style="small")]
        side = (x > middle) - (x < middle)  # of the panel that the block stands at; below it where there are three
        for i in range(blocks):
            at = part * (i + .5)
            shapes.append(arrow(middle + wide / 2 * side, 28 + (at if side else height), x + 14 * (blocks - 1 - 2 * i) * side, 198))
    for i in range(blocks):
        for block in range(blocks):
            who = "asked for itself" if i == block else f"block {i} asked"
            shapes.append(text(spacing * (block + .5), 200 + part * (i + .5) + 4, who, style="small"))
    return (f"{blocks} blocks of a cluster share a panel of B: each asks L2 for {each} of its {rows} rows, and each slot receives all of "
            "them"), svg(268 + height, "Multicast", shapes, STYLE)


def partial_sums(line, values):
    blocks = number(line, values, "blocks")
    shapes = [HEAD]
    width, tile = PHONE / blocks, min(150, 320 / blocks)
    for block in range(blocks):
        x = width * block + (width - tile) / 2
        shapes += [text(x + tile / 2, 18, f"block {block}: the same", style="strong"),
                   text(x + tile / 2, 35, f"tile of C, part {block} of K", style="strong")]
        for share in range(blocks):
            shapes += [box(STYLES[share % 3], x + tile / blocks * share, 48, tile / blocks, 60),
                       text(x + tile / blocks * (share + .5), 83, "sums", style="small")]
        owned = x + tile / blocks * (block + .5)
        shapes += [box(STYLES[block % 3], owned - 54, 190, 108, 46), text(owned, 209, "own sums +", style="small"),
                   text(owned, 226, f"inbox of {blocks - 1} part{'s' if blocks > 2 else ''}", style="small"),
                   arrow(owned, 236, owned, 266), text(owned, 284, f"share {block} of C", style="small"),
                   arrow(owned, 110, owned, 186)]
        for other in range(blocks):
            if other != block:
                to = width * other + (width - tile) / 2 + tile / blocks * (other + .5)
                start = x + tile / blocks * (other + .5)
                shapes.append(arrow(start, 110, to + (-40 if start < to else 40), 186))
    shapes += [text(PHONE / 2, 119, "st.async,", style="small"), text(PHONE / 2, 182, "with its bytes", style="small")]
    return (f"{blocks} blocks that split K: each sends the sums of the others' shares of the tile to their inboxes, and adds up its own "
            "share"), svg(296, "Partial sums through distributed shared memory", shapes, STYLE)


# --- The cluster of lesson 06 -----------------------------------------------------------------------------------------

CLUSTER_KERNEL, CLUSTER = "06_clusters_dsmem/gemm.cuh", "06_clusters_dsmem/cluster.cuh"
ONE_WAY_KERNEL = "06_clusters_dsmem/steps/3_one_way.cuh"


def rank_of_06(sources, rank):
    """What a block of the cluster does, by the expressions of the code: its row and its part of K, who receives its rows of B,
    which rows these are, who receives its sums, and which columns it completes."""
    rows_of_blocks, parts = map(int, sources.found(CLUSTER_KERNEL, r"kBlocksM = (\d+), kBlocksK = (\d+)"))
    _, n, k = sources.tile_shape(CLUSTER_KERNEL)
    known = {"kBlocksM": rows_of_blocks, "kBlocksK": parts, "rank": rank}

    def value(pattern, file=CLUSTER_KERNEL, **values):
        expression = re.sub(r"ptx::cluster_block_rank\(\)", "rank", sources.found(file, pattern))
        for name, as_is in (("kTile.k", k), ("kTile.n", n), ("block_k()", "block_k"), ("block_m()", "block_m")):
            expression = expression.replace(name, str(as_is))
        return sources.evaluated(expression, **known, **values)

    row, part = (value(rf"int {name}\(\) \{{ return (.*?);", CLUSTER) for name in ("block_m", "block_k"))
    mask = value(r"receivers = (.*?);", block_k=part)
    b_rows, own = value(r"kBRows = (.*?);"), value(r"kOwnN = (.*?);")
    return {"row": row, "part": part, "receivers": [other for other in range(rows_of_blocks * parts) if mask >> other & 1],
            "first_b_row": row * b_rows, "b_rows": b_rows, "peer": value(r"uint32_t peer\(\) \{ return (.*?);"), "first_column": part * own, "columns": own,
            "parts": parts, "rows_of_blocks": rows_of_blocks}


def cluster_of_four(_line, _values):
    sources = Sources(ROOT)
    first = rank_of_06(sources, 0)
    count = first["rows_of_blocks"] * first["parts"]
    width, height, across, down, top = 173, 164, 54, 40, 28
    shapes = [HEAD]
    for part in range(first["parts"]):
        steps = ", ".join(str(part + first["parts"] * i) for i in range(3))
        shapes.append(text(width / 2 + (width + across) * part, 20, f"steps {steps}, … of K", style="strong"))
    for rank in range(count):
        does = rank_of_06(sources, rank)
        x, y = (width + across) * does["part"], top + (height + down) * does["row"]
        rows = f"rows {does['first_b_row']} to {does['first_b_row'] + does['b_rows'] - 1}"
        kept, sent = (f"{at} to {at + does['columns'] - 1}" for at in
                      (does["first_column"], rank_of_06(sources, does["peer"])["first_column"]))
        others = " and ".join(map(str, does["receivers"]))
        shapes += [box(("one", "other")[does["part"]], x + 1, y, width - 2, height),
                   text(x + 8, y + 20, f"rank {rank}: {('upper', 'lower')[does['row']]} tile of C", "start", "strong")]
        shapes += [text(x + 8, y + 40 + 17 * i, words, "start", "small") for i, words in enumerate((
            "loads its tile of A,", f"and {rows} of B;", f"multicasts to {others};", "sends sums of columns",
            f"{sent} to rank {does['peer']};", f"completes {kept},", "which it loads first"))]
        other_row = rank_of_06(sources, does["receivers"][0])["row"] if rank != does["receivers"][0] else 1 - does["row"]
        if other_row != does["row"]:
            at, begin = x + 18 + (-8, 8)[does["row"]], y + (height + 4) * (does["row"] == 0) - 4 * (does["row"] == 1)
            shapes.append(arrow(at, begin, at, begin + (1 if does["row"] == 0 else -1) * (down - 6)))
        begin, level = x + (width + 4 if does["part"] == 0 else -4), y + height / 2 + (-34, 34)[does["part"]]
        shapes.append(arrow(begin, level, begin + (1 if does["part"] == 0 else -1) * (across - 8), level))
    for part in range(first["parts"]):
        shapes.append(text((width + across) * part + 34, top + height + down / 2 + 4, "half of B's rows each", "start", "small"))
    for row in range(first["rows_of_blocks"]):
        shapes += [text(width + across / 2, top + height / 2 + (height + down) * row - 10 + 15 * i, words, style="small")
                   for i, words in enumerate(("half", "of the", "sums"))]
    alt = (f"The {count} ranks of a cluster: "
           + "; ".join(f"{' and '.join(map(str, rank_of_06(sources, rank)['receivers']))} share B" for rank in range(0, count, 2))
           + "; " + "; ".join(f"{rank} and {rank_of_06(sources, rank)['peer']} add up" for rank in range(first["rows_of_blocks"])))
    return alt, svg(top + 2 * height + down + 4, "A cluster of four blocks", shapes, STYLE)


def release_moments():
    """[(title, of each block: (what it is drawn as, what compute says, what the loader says, what empty lacks), who speaks)]"""
    arrivals, empties, moments, phases = 2 * WARPGROUPS, [Barrier(2 * WARPGROUPS) for _ in range(2)], [], [0]
    rows = rank_of_06(Sources(ROOT), 0)["b_rows"]

    def moment(title, styles, compute, loaders, speakers):
        phases.append(empties[0].phase)
        seen = ["empty is complete" if phases[-1] > phases[-2] else f"empty lacks {empty.missing} of {arrivals}" for empty in empties]
        moments.append((title, list(zip(styles, compute, loaders, seen)), speakers))

    def release():
        for empty in empties:
            for _ in range(WARPGROUPS):
                empty.arrive()

    waits = ("I wait.", "I wait.")
    moment("1. Both blocks read their slot.", ("third", "third"), ("I multiply.", "I multiply."), waits, ())
    release()
    moment("2. Block 0 has read its slot, and tells both loaders.", ("outside", "third"), ("I have read.", "I still multiply."),
           ("I wait: you read.", "I wait."), (0,))
    assert all(empty.missing == arrivals // 2 for empty in empties)
    release()
    assert all(empty.phase == 1 for empty in empties)
    moment("3. Block 1 has read its slot, and tells both.", ("outside", "outside"), ("I wait.", "I have read."),
           ("I may fill it.", "I may fill it."), (1,))
    moment("4. Each loader fills its part of both slots.", ("one", "one"), ("I wait.", "I wait."),
           (f"rows 0 to {rows - 1}", f"rows {rows} to {2 * rows - 1}"), (0, 1))
    return moments


def release_in_a_cluster(_line, _values):
    shapes, width, height = [HEAD], 172, 92
    moments = release_moments()
    for at, (title, blocks, speakers) in enumerate(moments):
        top = 134 * at
        shapes.append(text(4, top + 18, title, "start", "strong"))
        for block, (style, compute, loader, seen) in enumerate(blocks):
            x = 4 + block * (392 - width)
            shapes.append(box(style, x, top + 28, width, height))
            shapes += [text(x + 8, top + 48 + 20 * i, words, "start") for i, words in enumerate((
                f"block {block}", f"compute: {compute}", f"loader: {loader}", seen))]
            if block in speakers:
                y = top + 28 + height / 2 + (-8, 8)[block]
                ends = (x + width + 3, x + width + 45) if block == 0 else (x - 3, x - 45)
                shapes.append(arrow(ends[0], y, ends[1], y))
    return "How two blocks free a slot, in four moments", svg(134 * len(moments), "The release of a slot in a cluster", shapes, STYLE)


def inbox_moments():
    """[(title, what the sender does, peer_inbox_free, what the receiver does, inbox_full, (who speaks, what) or None)] of two tiles.
    peer_inbox_free lies in the sender's shared memory, the inbox and inbox_full in the receiver's."""
    sources = Sources(ROOT)
    rows, columns, _ = sources.tile_shape(ONE_WAY_KERNEL)
    warps, kilobytes = 4 * WARPGROUPS, rows * columns * 4 // 1024
    sources.found(ONE_WAY_KERNEL, r"mbarrier_init\(&smem\.peer_inbox_free, (kLoaderWarp)\)")
    full, free, moments, parity = Barrier(1), Barrier(warps), [], 0

    def moment(title, sender, receiver, speaks=None):
        moments.append((title, sender, f"phase {free.phase}: lacks {free.missing} of {warps}", receiver,
                        f"phase {full.phase}: lacks " + (f"{full.bytes} KB" if full.bytes else f"{full.missing} arrival"), speaks))

    assert free.lets_pass(parity ^ 1)
    full.arrive(kilobytes)
    moment("1. Before the first tile the inbox is free.", f"waits for parity {parity ^ 1}: passes", f"expects {kilobytes} KB")
    assert not full.lets_pass(parity)
    full.count(-kilobytes)
    assert full.lets_pass(parity)
    moment("2. Sums land, and complete inbox_full.", "sends its sums", f"waits for parity {parity}: passes", (1, f"{kilobytes} KB"))
    assert not free.lets_pass(parity)
    moment("3. The next tile has to wait.", f"waits for parity {parity}: blocks", "adds what is in its inbox")
    for _ in range(warps):
        free.arrive()
    assert free.lets_pass(parity)
    moment("4. The inbox has been read, and may be filled again.", f"waits for parity {parity}: passes", "each warp arrives", (0, f"{warps} arrivals"))
    return moments


def inbox_in_a_cluster(_line, _values):
    shapes, width, height, moments = [HEAD], 164, 76, inbox_moments()
    sources = Sources(ROOT)
    part = int(sources.found(ONE_WAY_KERNEL, r"if \(block_k\(\) == (\d)\) \{\s*send_sums"))
    ranks = [rank_of_06(sources, rank) for rank in range(4)]
    sender = next(rank for rank, does in enumerate(ranks) if does["part"] == part)
    receiver = ranks[sender]["peer"]
    for at, (title, sends, free, receives, full, speaks) in enumerate(moments):
        top = 118 * at
        shapes.append(text(4, top + 18, title, "start", "strong"))
        for side, (rank, does, barrier, state) in enumerate(((receiver, receives, "inbox_full", full), (sender, sends, "peer_inbox_free", free))):
            x = 4 + side * (392 - width)
            shapes.append(box(("one", "other")[side], x, top + 28, width, height))
            shapes += [text(x + 8, top + 45 + 17 * i, words, "start", "small") for i, words in enumerate((f"rank {rank}", does, f"{barrier}:", state))]
        if speaks:
            who, what = speaks
            middle, y = 200, top + 28 + height / 2
            shapes += [text(middle, y - 8, what, style="small"), arrow(middle + (-30, 30)[who], y, middle + (30, -30)[who], y)]
    bottom = 118 * len(moments)
    shapes += [text(4, bottom + 14 + 17 * i, words, "start", "small") for i, words in enumerate((
        "Below a barrier: what is missing until its phase is complete.",))]
    return (f"How rank {sender} sends sums to the inbox of rank {receiver}, and hears that it was read, in four moments",
            svg(bottom + 21, "An inbox in a cluster", shapes, STYLE))


# --- Who holds what ---------------------------------------------------------------------------------------------------

SHOWN_THREAD = 37  # lane 5 of warp 1


@functools.cache
def held_by(sources, thread):
    """[(row, column)] of the sums d[0], d[1], d[2], d[3] of a thread of a warpgroup; every further 4 lie 8 columns to the right."""
    upper, column, add = sources.found(sources.FMA, r"upper = row \+ ([^,;]*), column = ([^;]*);.*?(d\[4 \* j\] \+= .*?)\}")
    values = {"lane": thread % 32, "warp": thread // 32}
    upper = sources.evaluated(upper.replace("warp_in_warpgroup()", "warp"), **values)
    column = sources.evaluated(column, **values)
    rows = {"upper": upper, "lower": upper + 8}  # a_lower is read from row upper + 8
    columns = {"left": column, "right": column + 1}
    sums = re.findall(r"\+= (upper|lower)_value \* (left|right);", add)
    return [(rows[row], columns[at]) for row, at in sums]


def fragments(line, values):
    columns, sources = number(line, values, "columns"), Sources(ROOT)
    cell, left, top, shapes = 30, 60, 58, []
    shapes += [text(left, 18, "mma.sync: 16 × 8 sums of a warp", "start", "strong"),
               text(left - 8, top - 6, "columns", "end", "small")]
    for column in range(0, 8, 2):
        shapes.append(text(left + cell * (column + 1), top - 6, f"{column}, {column + 1}", style="small"))
    for lane in range(32):
        places = held_by(sources, lane)
        for (row, column), style in ((places[0], "one"), (places[2], "other")):
            y = top + 17 * row
            shapes += [box("third" if lane == SHOWN_THREAD % 32 else style, left + cell * column, y, 2 * cell, 17),
                       text(left + cell * (column + 1), y + 13, lane, style="small")]
            if column == 0:
                shapes.append(text(left - 8, y + 13, row, "end", "small"))
    shapes += [text(left + 8 * cell + 8, top + 17 * row + 4 + 16 * i, words, "start", "small")
               for row, held in ((4, "d[0], d[1]"), (12, "d[2], d[3]")) for i, words in enumerate(("in a box: the", "lane that has", held))]
    groups, wide, high = 4, 10, 4
    left, top = 60, top + 16 * 17 + 74
    shapes += [text(left, top - 46, f"wgmma: 64 × {columns} sums of a warpgroup", "start", "strong"),
               text(left - 8, top - 6, "columns", "end", "small"),
               text(left, top - 26, f"thread {SHOWN_THREAD}: lane {SHOWN_THREAD % 32} of warp {SHOWN_THREAD // 32}", "start", "small")]
    for warp in range(4):
        shapes.append(text(left - 8, top + 16 * high * (warp + .5) + 4, f"warp {warp}", "end", "small"))
        shapes += [box("edge", left + 8 * wide * group, top + 16 * high * warp, 8 * wide, 16 * high) for group in range(groups)]
    for group in range(groups):
        shapes.append(text(left + 8 * wide * (group + .5), top - 6, f"{8 * group}–{8 * group + 7}", style="small"))
        shapes += [box("used", left + wide * (8 * group + column), top + high * row, wide, high)
                   for row, column in held_by(sources, SHOWN_THREAD)]
        shapes.append(text(left + 8 * wide * (group + .5), top + 64 * high + 16, f"d[{4 * group}]–d[{4 * group + 3}]", style="small"))
    shapes += [text(left + 8 * wide * groups + 6, top + 32 * high, "…", "start"),
               text(left, top + 64 * high + 36, f"{columns // 2} sums in each thread", "start", "small")]
    alt = (f"In 16 × 8 sums, lane {SHOWN_THREAD % 32} holds two neighbours of row {SHOWN_THREAD % 32 // 4} and two of row "
           f"{SHOWN_THREAD % 32 // 4 + 8}; a wgmma's warps have 16 rows each, and every 8 columns add four sums to a thread")
    return alt, svg(top + 64 * high + 46, "Who holds which sums", shapes, STYLE)


def packed(sources):
    """[(first key, registers of sums, (operand, its register))] for each pair of sums that to_weights() packs. Of keys and sums the first."""
    step, operand, register, first, second = sources.found(
        "05_ws_double_buffer/attention/products.cuh", r"i \+= (\d+)\) p\[([^]]*)\]\[([^]]*)\] = pack_bf16\(s\[([^]]*)\], s\[([^]]*)\]\)")
    return [((sources.evaluated(first, i=i), sources.evaluated(second, i=i)),
             (sources.evaluated(operand, i=i), sources.evaluated(register, i=i))) for i in range(0, 64, int(step))]


@functools.cache
def operand_places(sources, thread):
    """For each register of a thread's operand A the (row, column) of its two elements, as the CPU device's tensor cores read it."""
    path = "common/cpu_device/kernel/tensor_cores/engine_wgmma.cpp"
    row, k, below, right = sources.found(
        path, r"void read_a_of_registers.*?row = ([^,]*), k = ([^;]*);.*?&a\[row \+ ([^]]*)\]\[k \+ ([^]]*)\];")
    row, k = (sources.evaluated(expression, thread=thread) for expression in (row, k))
    corners = [(row + sources.evaluated(below, q=q), k + sources.evaluated(right, q=q)) for q in range(4)]
    return [((row, column), (row, column + 1)) for row, column in corners]


def sums_to_operand(_line, _values):
    sources, pairs = Sources(ROOT), packed(Sources(ROOT))
    lane, cell, high, left, top = SHOWN_THREAD % 32, 44, 17, 40, 62
    styles = ("one", "other", "third", "store")

    def place_of_sum(thread, i):
        row, column = held_by(sources, thread)[i % 4]
        return row, column + i // 4 * 8

    for thread in range(128):  # the point of the picture: what is packed is already where the operand needs it
        for sums, (operand, register) in pairs:
            needed = tuple((row, column + 16 * operand) for row, column in operand_places(sources, thread)[register])
            if tuple(place_of_sum(thread, i) for i in sums) != needed:
                raise BadInput(f"sums {sums} of thread {thread} are not where register {register} of operand {operand} needs them")
    shapes = [text(4, 18, "Scores of warp 0: 16 queries, 16 of 128 keys", "start", "strong"), text(left - 8, top - 6, "keys", "end", "small"),
              text(4, 36, "in a box: the lane that has both keys", "start", "small")]
    for column in range(0, 16, 2):
        shapes.append(text(left + cell * (column + 1) / 2, top - 6, f"{column}, {column + 1}", style="small"))
    for thread in range(32):
        for i, register in (((sums[0], register) for sums, (operand, register) in pairs if operand == 0)):
            row, column = place_of_sum(thread, i)
            x, y = left + cell * column / 2, top + high * row
            shapes += [box("used" if thread == lane else styles[register], x, y, cell, high),
                       text(x + cell / 2, y + 13, thread, style="inside small" if thread == lane else "small")]
    shapes += [text(left - 8, top + high * row + 13, row, "end", "small") for row in range(16)]
    below = top + 16 * high + 26
    shapes += [HEAD, text(4, below, f"Lane {lane}: eight sums become four registers of A", "start", "strong")]
    wide = 98
    for sums, (operand, register) in pairs[:4]:
        x, (row, column) = 4 + wide * register, place_of_sum(lane, sums[0])
        for at, i in enumerate(sums):
            shapes += [box(styles[register], x + 46 * at, below + 12, 44, 22), text(x + 46 * at + 22, below + 28, f"s[{i}]", style="small"),
                       arrow(x + 22 + 46 * at, below + 36, x + 34 + 22 * at, below + 60)]
        shapes += [box(styles[register], x + 12, below + 62, 66, 22), text(x + 45, below + 78, f"p[{operand}][{register}]", style="small"),
                   text(x + 45, below + 102, f"row {row},", style="small"), text(x + 45, below + 118, f"keys {column}, {column + 1}", style="small")]
    last = pairs[-4:]
    shapes += [text(4, below + 146 + 18 * i, words, "start", "small") for i, words in enumerate((
        "s: fp32; p: two bf16 in a register, the first in the low half.",
        f"Every further 16 keys: eight more sums, up to s[{last[0][0][0]}]–s[{last[-1][0][1]}], p[{last[0][1][0]}].",
        "Warp 1 has queries 16 to 31, and so on."))]
    alt = (f"16 queries and 16 keys of a warp: each lane has two keys of two queries, twice. Its eight sums are, in pairs, the four registers "
           f"of its operand A. Lane {lane} has rows {place_of_sum(lane, 0)[0]} and {place_of_sum(lane, 2)[0]}")
    return alt, svg(below + 192, "From sums to an operand", shapes, STYLE + STORES + """
    .inside { fill: #ffffff; }
    @media (prefers-color-scheme: dark) { .inside { fill: #0d1117; } }""")


# --- Roles, and the pipeline outside of the pipeline ------------------------------------------------------------------

STORES = """
    .code { font-family: monospace; font-size: 12px; }
    .store { fill: #ece2f5; stroke: #8e5bb5; }
    .back { fill: none; stroke: #6e7781; stroke-dasharray: 4 3; }
    .returns { marker-end: url(#head); }
    @media (prefers-color-scheme: dark) {
      .store { fill: #3d2a54; stroke: #b995dd; }
      .back { stroke: #9198a1; }
    }"""
ROLES = (("loader", ("one thread",), "one"), ("compute", ("two", "warpgroups"), "third"), ("storer", ("one thread for", "a staging tile"), "store"))


def path(style, *points):
    return f'<polyline class="{style}" points="{" ".join(f"{x:g},{y:g}" for x, y in points)}"/>'


def roles(line, values):
    slots, left, wide, gap = number(line, values, "slots"), 2, 94, 57
    shapes = [HEAD, box("edge", left, 4, 396, 32), text(200, 25, "global memory: A, B and C")]
    for i, (role, who, style) in enumerate(ROLES):
        x = left + (wide + gap) * i
        shapes += [box(style, x, 222, wide, 62), text(x + wide / 2, 241, role, style="strong"),
                   *(text(x + wide / 2, 258 + 16 * j, words, style="small") for j, words in enumerate(who))]
    for pipe, x in (("pipe_lc", left + wide), ("pipe_cs", left + 2 * wide + gap)):
        middle = x + gap / 2
        shapes += [path("arrow", (x + 2, 242), (x + gap - 2, 242)), text(middle, 236, "full", style="code"),
                   path("back returns", (x + gap - 2, 262), (x + 2, 262)), text(middle, 277, "empty", style="code"),
                   text(middle, 300, pipe, style="code")]
    first, last, each = 90, 214, 124 / slots
    for slot in range(slots):
        shapes += [box("other", first + each * slot, 104, each - 6, 36),
                   text(first + each * (slot + .5) - 3, 127, slot if slots > 1 else "the slot")]
    shapes += [text(first, 96, "a tile of A, a tile of B", "start", "small"), box("other", 266, 104, 60, 36),
               text(296, 80, "staging", style="small"), text(296, 96, "tile of C", style="small"),
               path("arrow", (20, 36), (20, 122), (first - 4, 122)), text(26, 58, "TMA load", "start", "code"),
               path("arrow", (328, 122), (372, 122), (372, 40)), text(364, 58, "TMA store", "end", "code"),
               path("arrow", (160, 142), (184, 218)), text(164, 182, "wgmma", "end", "code"),
               path("arrow", (220, 218), (282, 144)), text(260, 184, "stmatrix", "start", "code")]
    return "Loader, compute, storer and two pipelines", svg(310, "Roles and pipelines", shapes, STYLE + STORES)


def in_time(lanes, count, left, right, top):
    """Items 0 to count - 1 go through the lanes, of (name, its step, style), one behind the other: [shapes], and where item i is."""
    wide, shapes = (right - left) / (count + len(lanes) - 2), []
    for lane, (name, step, style) in enumerate(lanes):
        y = top + 46 * lane
        shapes.append(text(left - 8, y + 23, name, "end", "small"))
        for item in range(count - max(0, lane - 1)):  # the last ones are still under way at the right edge
            x = left + wide * (item + lane)
            words = f"{step} {item}" if 7 * len(f"{step} {item}") < wide - 4 else item
            shapes += [box(style, x, y, wide - 4, 36), text(x + wide / 2 - 2, y + 23, words, style="small")]
    return shapes, lambda item, lane: (left + wide * (item + lane), left + wide * (item + lane + 1) - 4)


def two_levels(line, values):
    batches, tiles = number(line, values, "batches"), number(line, values, "tiles")
    outside, where = in_time((("upload", "up", "one"), ("SMs", "kernel", "third"), ("download", "down", "store")), batches, 74, 398, 34)
    inside, _ = in_time((("loader", "load", "one"), ("compute", "multiply", "third"), ("storer", "store", "store")), tiles, 74, 398, 212)
    begin, end = where(min(1, batches - 1), 1)  # the kernel that is looked into
    shapes = [path("back", (begin, 118), (74, 208)), path("back", (end, 118), (394, 208)),
              text(4, 22, "outside: batches, in streams", "start", "strong"), *outside,
              text(240, 190, "inside: tiles, in roles", style="strong"), *inside]
    return "Batches in streams outside, tiles in roles inside", svg(360, "Two levels of one pipeline", shapes, STYLE + STORES)


# --- Turns of attention -----------------------------------------------------------------------------------------------

SHOWN_CLOCKS = 6400


def attention_in_time(step, product, wait, softmax, until):
    """What steps 1, 3 and 4 of attention do until then, in clocks: [(warpgroup, product or softmax, begin, end)], and the clocks of a
    block of 128 queries. The softmaxes of two warpgroups do not disturb each other."""
    work, began = [], []
    if step == 1:
        now = 0
        while now < until:
            began.append(now)
            for name, clocks, behind in (("S", product, wait), ("softmax", softmax, 0), ("PV", product, wait)):
                work.append((0, name, now, now + clocks))
                now += clocks + behind
        return work, 2 * (began[1] - began[0])  # of 64 queries each
    free, turn, ready = 0, 0, [0, 0]  # when the tensor cores and the turn are free, and a warpgroup has its weights
    products, warpgroup = ("S",), 0
    while turn < until or len(began) < 8:
        turn = max(turn, ready[warpgroup])  # products are started at once, and queue up
        ends = {}
        for name in products:
            begin = max(turn, free)
            free = ends[name] = begin + product
            work.append((warpgroup, name, begin, free))
        scores = ends["S"] + wait
        work.append((warpgroup, "softmax", scores, scores + softmax))
        ready[warpgroup] = max(scores + softmax, ends.get("PV", 0) + wait)
        began.append(turn)
        warpgroup = 1 - warpgroup
        if len(began) == 2:
            products = ("PV", "S") if step == 3 else ("S", "PV")
    return work, began[-1] - began[-3]


def attention_turns(line, values):
    product, wait, softmax = (number(line, values, key) for key in ("product", "wait", "softmax"))
    left, right, top, shapes = 88, 396, 0, []
    at = lambda clocks: left + (right - left) * min(clocks, SHOWN_CLOCKS) / SHOWN_CLOCKS  # noqa: E731
    for step, title in ((1, "one warpgroup"), (3, "turns"), (4, "a softmax beside PV, too")):
        lanes = ["tensor cores", "warpgroup 0", "warpgroup 1"][:2 if step == 1 else 3]
        shapes.append(text(4, top + 16, f"step {step}: {title}", "start", "strong"))
        for lane, name in enumerate(lanes):
            shapes.append(text(left - 5, top + 41 + 26 * lane, name, "end", "small"))
        for warpgroup, name, begin, end in attention_in_time(step, product, wait, softmax, SHOWN_CLOCKS)[0]:
            if begin >= SHOWN_CLOCKS:
                continue
            y, x, wide = top + 26 + 26 * (1 + warpgroup if name == "softmax" else 0), at(begin), at(end) - at(begin)
            shapes.append(box(("one", "other")[warpgroup], x, y, wide, 21))
            if wide > 7 * len(name) + 2:
                shapes.append(text(x + wide / 2, y + 15, name, style="small"))
        top += 26 + 26 * len(lanes) + 14
    shapes += [HEAD, arrow(left, top, right, top), text(left - 5, top + 4, "time", "end", "small")]
    return ("Products and softmaxes of attention over time: alone in step 1, in turns in step 3, and besides with two products in flight "
            "in step 4", svg(top + 12, "Turns of attention", shapes, STYLE))


DRAWN = {"roles": (roles, ("slots",)), "two_levels": (two_levels, ("batches", "tiles")),
         "fragments": (fragments, ("columns",)), "sums_to_operand": (sums_to_operand, ()), "mbarrier_laps": (mbarrier_laps, ()), "tma_box": (tma_box, ("rows", "columns")), "multicast": (multicast, ("blocks", "rows")),
         "partial_sums": (partial_sums, ("blocks",)), "cluster_of_four": (cluster_of_four, ()),
         "release_in_a_cluster": (release_in_a_cluster, ()), "inbox_in_a_cluster": (inbox_in_a_cluster, ()),
         "attention_turns": (attention_turns, ("product", "wait", "softmax"))}


def drawn(line, words):
    """(name, alternative text, SVG)"""
    name, *words = words or [""]
    if name not in DRAWN:
        raise BadInput(f"{line}: there is no picture '{name}'; there are {', '.join(DRAWN)}")
    draw, keys = DRAWN[name]
    values, only = parse_words(line, words, keys)
    if only:
        raise BadInput(f"{line}: only= means nothing here")
    return name, *draw(line, values)
