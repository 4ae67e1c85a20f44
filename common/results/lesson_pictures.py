"""Pictures of lessons 01, 02 and 05, drawn from the constants of their sources, and from recorded files.

    <!-- lesson_picture: warp_to_sectors -->
    <!-- lesson_picture: measured name=slots file=experiments/slots rows=slots limits=587,835,989,989,989 -->
    <!-- lesson_picture: timelines name=turns_and_ring files=03_double_buffer-slots_1-cpu_device,03_double_buffer-cpu_device -->
    <!-- end -->

measured has a bar of TFLOP/s for each value of a setting, and with limits= a mark for what was predicted of each (or, between
two commas, of none); with notes= a few words beside each, _ for blanks.
timelines shows when block 0 had copies and products in flight, for timelines of the CPU device, below each other on one scale.
The others need no words: what they show is read from the sources, whose expressions are evaluated here, so that
a picture is what the code does. All are written to docs/figures, as SVG that follows the reader's light or dark theme.
"""
import json
import re
import textwrap

from climb_table import BadInput, read_page, read_results
from idea_pictures import box, rectangle, svg, text
from page_requests import meets, parse_words, value
from record_files import newest
from timeline_tables import spans_of_block
from stale import dated

STYLE = """
    text { font: 13px sans-serif; fill: #1f2328; }
    .small { font-size: 12px; }
    .code { font: 12px monospace; }
    .line { stroke: #6e7781; stroke-dasharray: 4 3; }
    .edge { fill: none; stroke: #6e7781; }
    .one { fill: #ddebf7; stroke: #2f6fab; }
    .other { fill: #fdf1d6; stroke: #a87c1f; }
    .third { fill: #dcf2e1; stroke: #2a8c4a; }
    .used { fill: #2f6fab; stroke: #2f6fab; }
    .marked { fill: #f8d7d4; stroke: #c7352b; }
    .limit { stroke: #c7352b; stroke-width: 2; }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3; }
      .line { stroke: #9198a1; }
      .edge { stroke: #9198a1; }
      .one { fill: #173a5e; stroke: #6cb0f0; }
      .other { fill: #4a3a12; stroke: #d9b25b; }
      .third { fill: #153d22; stroke: #57c27c; }
      .used { fill: #6cb0f0; stroke: #6cb0f0; }
      .marked { fill: #5c2320; stroke: #ff7b72; }
      .limit { stroke: #ff7b72; }
    }"""


def picture(height, title, shapes):
    return svg(height, title, shapes, STYLE)


def line(x1, y1, x2, y2, style="line"):
    return f'<line class="{style}" x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}"/>'


# --- What the sources say ---------------------------------------------------------------------------------------------


class Sources:
    """Constants and expressions of the lessons' sources."""

    WGMMA, CORES, TILE = "common/ptx/wgmma.cuh", "common/device/wgmma_core.cuh", "common/device/swizzled_tile.cuh"
    FMA = "common/device/fma_core.cuh"

    def __init__(self, root):
        self.root = root

    def found(self, path, pattern):
        match = re.search(pattern, read_page(self.root / path), re.DOTALL)
        if not match:
            raise BadInput(f"{path}: has nothing like {pattern}, which a picture shows")
        return match.groups() if len(match.groups()) > 1 else match[1]

    def constant(self, path, name):
        return int(self.found(path, rf"constexpr int {name} = (\d+);"))

    def tile_shape(self, path):
        return [int(size) for size in self.found(path, r"constexpr TileShape kTile\{(\d+), (\d+), (\d+)\};")]

    def evaluated(self, expression, **values):
        """A C++ expression of integers, which but for the division are written as in Python."""
        panel_bytes = self.found(self.TILE, r"kPanelBytes = ([^;]*);")
        expression = re.sub(r"SwizzledTile<(\w+), \w+>::kPanelBytes", lambda match: f"({panel_bytes.replace('kRows', match[1])})",
                            expression)
        expression = re.sub(r"static_cast<\w+>", "", re.sub(r"uint64_t\{(\d+)\}", r"\1", expression))
        expression = expression.replace("shared_address(start)", "start").replace("/", "//")
        return eval(" ".join(expression.split()), {"__builtins__": {}}, values)  # pylint: disable=eval-used

    def place(self, row, chunk):
        """Where the swizzled tile keeps a chunk, within its row."""
        expression = self.found(self.TILE, r"return &panels\[column / 64\]\[row\]\[([^\]]*)\];")
        elements = self.constant(self.TILE, "kChunk")
        return self.evaluated(expression, row=row, column=chunk * elements, kChunk=elements) // elements

    def descriptor(self, start, leading_bytes, stride_bytes):
        expression = self.found(self.WGMMA, r"uint64_t matrix_descriptor\(.*?return (.*?);")
        return self.evaluated(expression, start=start, leading_bytes=leading_bytes, stride_bytes=stride_bytes)

    def operand(self, name):
        """Of a or b in lesson 02: the leading and the stride offset in bytes, and the start of each step of 16 k in bytes."""
        m, n, k = self.tile_shape("02_tiled/gemm.cuh")
        sizes = {"kRows": m, "kN": n, "kK": k}
        first = {"a": "a_rows", "b": "b_panel"}[name]
        offsets = self.found(self.CORES, rf"{first} = ptx::matrix_descriptor\(&{name}\.panels[^,]*, ([^;]*?), (\w+)\);")
        step = self.found(self.CORES, rf"{name}_k = {first} \+ ([^;]*);")
        return *(self.evaluated(offset, **sizes) for offset in offsets), [16 * self.evaluated(step, k=at, **sizes)
                                                                           for at in range(0, k, 16)]


# --- Lesson 01 --------------------------------------------------------------------------------------------------------

SECTOR, ELEMENT, WARP = 32, 2, 32  # bytes, bytes, threads


def thread_per_element(sources):
    slow, fast, _ = sources.tile_shape("01_naive/gemm.cuh")
    shapes = [text(78, 18, "C: one block for"), text(78, 35, f"{slow} × {fast} elements"),
              text(290, 18, f"a block: {slow} warps"), text(290, 35, f"of {WARP} threads")]
    for row in range(8):
        for column in range(4):
            style = "one" if (row, column) == (3, 2) else "edge"
            shapes.append(box(style, 10 + 34 * column, 48 + 16 * row, 34, 16))
    left, top, cell, high = 186, 48, 6.5, 16
    for row in range(slow):
        for column in range(fast):
            style = "used" if (row, column) == (4, 20) else "other" if row == 4 else "one"
            shapes.append(box(style, left + cell * column, top + high * row, cell, high))
    shapes += [line(112, 96, left, top), line(112, 112, left, top + high * slow),
               text(left + cell * fast / 2, top + high * slow + 17, "a warp is a row: neighbouring", style="small"),
               text(left + cell * fast / 2, top + high * slow + 33, "threads, neighbouring columns", style="small")]
    # A at the left, B above, C below B: the row and the column meet in the thread's element.
    y = top + high * slow + 48
    shapes += [text(22, y + 24, "a thread: a row of A", "start"), text(22, y + 41, "times a column of B", "start"),
               box("edge", 100, y + 94, 84, 50), box("other", 100, y + 116, 84, 8), text(92, y + 124, "A", "end", "small"),
               box("edge", 194, y, 100, 84), box("other", 248, y, 8, 84), text(302, y + 46, "B", "start", "small"),
               box("edge", 194, y + 94, 100, 50), box("used", 248, y + 116, 8, 8), text(302, y + 124, "C", "start", "small")]
    alt = (f"C is cut into blocks of {slow} rows and {fast} columns; each of the {slow} warps of a block has one row; each thread "
           "multiplies a row of A by a column of B")
    return alt, picture(y + 152, "From the grid to a thread", shapes)


def sectors_touched(pitch_in_bytes, fast_axis):
    """{sector: [lanes]} of one element of each lane of a warp: lanes walk along the row, down the rows, or nowhere."""
    step = {"along": ELEMENT, "down": pitch_in_bytes, "same": 0}[fast_axis]
    touched = {}
    for lane in range(WARP):
        touched.setdefault(lane * step // SECTOR, []).append((lane, lane * step % SECTOR // ELEMENT))
    return touched


def lanes_title(lanes):
    numbers = [lane for lane, _ in lanes]
    return f"lane {numbers[0]}" if len(numbers) == 1 else f"lanes {numbers[0]}–{numbers[-1]}"


def warp_to_sectors(_):
    """Two panels: what a warp asks for in one step of k, along columns and along rows of C."""
    cell, gap, pitch = 5.2, 10, 4096 * ELEMENT
    wide = SECTOR // ELEMENT * cell
    shapes, alts = [], []

    def sectors(touched, top, per_row):
        for i, lanes in enumerate(touched.values()):
            x, y = 20 + (wide + gap) * (i % per_row), top + 34 * (i // per_row)
            used = {place for _, place in lanes}
            shapes.extend(box("used" if place in used else "edge", x + cell * place, y, cell, 14) for place in range(SECTOR // ELEMENT))
            shapes.append(text(x + wide / 2, y + 27, lanes_title(lanes), style="small"))
        return top + 34 * -(-len(touched) // per_row)

    y = 20
    for along, of_a, of_b in (("columns", "same", "along"), ("rows", "down", "same")):
        a, b = sectors_touched(pitch, of_a), sectors_touched(pitch, of_b)
        count = len(a) + len(b)
        shapes.append(text(8, y, f"--along {along}: {count} sectors for {WARP} multiply-adds,", "start"))
        shapes.append(text(8, y + 17, f"{count * SECTOR} bytes", "start"))
        y += 17
        for name, touched in (("A", a), ("B", b)):
            plural = "s" if len(touched) > 1 else ""
            shapes.append(text(20, y + 22, f"{name}: {len(touched)} sector{plural}", "start", "small"))
            y = sectors(touched, y + 28, 4)
        alts.append(f"along {along} {len(a)} of A and {len(b)} of B")
        y += 26
    shapes += [text(8, y - 8 + 16 * i, words, "start", "small") for i, words in enumerate((
        f"A box is a sector: {SECTOR} bytes, {SECTOR // ELEMENT} elements.", "Filled: what a lane asked for."))]
    return f"Sectors that a warp asks for in one step of k: {'; '.join(alts)}", picture(y + 18, "Which lane asks for which sector", shapes)


# --- Lesson 02 --------------------------------------------------------------------------------------------------------


SHARED_TILE, REGISTER_TILE = "02_tiled/steps/1_shared_tile.cuh", "02_tiled/steps/2_register_tile.cuh"


def shared_tile(sources):
    """A block's rectangle of C, its rows of A and columns of B, and of these the two tiles of a step."""
    m, n, k = sources.tile_shape(SHARED_TILE)
    side, left, top, at = 110, 26, 26, 66  # of a matrix; of A and of B; where along k the step is
    across, down, wide = left + side + 16, top + side + 16, 28
    row, column = down + 30, across + 44
    shapes = [box("edge", left, down, side, side), box("other", left, row, side, wide), box("used", left + at, row, wide, wide),
              text(14, down + side / 2, "A"), box("edge", across, top, side, side), box("other", column, top, wide, side),
              box("used", column, top + at, wide, wide), text(across + side + 14, top + side / 2, "B"),
              box("edge", across, down, side, side), box("third", column, row, wide, wide), text(across + side + 14, down + side / 2, "C"),
              text(left + 5, row - 6, "k →", "start", "small"), text(column + wide + 4, top + 12, "k ↓", "start", "small")]
    for i, (style, words) in enumerate((("third", f"{m} × {n} of C"), ("other", "what it takes"), ("used", "tiles of a step"))):
        shapes += [box(style, 16, 44 + 28 * i - 12, 14, 14), text(36, 44 + 28 * i, words, "start", "small")]
    shapes += [text(290, down + 12, "threads copy", "start", "small"), text(290, down + 28, "both tiles to", "start", "small"),
               text(290, down + 44, "shared memory:", "start", "small"), text(290, down + 60, f"{m} × {k}, {k} × {n}", "start", "small"),
               text(290, down + 84, "each element is", "start", "small"), text(290, down + 100, f"used {n} times", "start", "small")]
    alt = (f"A block's {m} × {n} elements of C need rows of A and columns of B. In a step of k the block copies a tile of A, {m} × {k}, and "
           f"one of B, {k} × {n}, to shared memory")
    return alt, svg(down + side + 14, "A tile of C, and the tiles that it needs", shapes, STYLE)


def register_tile(sources):
    """One thread's work for one k in steps 1 and 2, and where its sums lie in the block's tile."""
    m, n, _ = sources.tile_shape(REGISTER_TILE)
    sums = sources.constant(REGISTER_TILE, "kSums")
    side = m // sums  # kSide
    cell, top = 17, 72
    shapes = []

    def work(left, count, title):
        """Elements of A on the left, of B on top, and every product of the two."""
        shapes.append(text(left + (count + 1.4) * cell / 2, 20, title))
        for i in range(count):
            shapes.append(box("one", left, top + cell * i, cell, cell))
            shapes.append(box("third", left + (1.4 + i) * cell, top - 1.4 * cell, cell, cell))
        shapes.extend(box("other", left + (1.4 + i % count) * cell, top + i // count * cell, cell, cell) for i in range(count * count))

    work(40, 1, "02.1")
    shapes += [text(34, top + 13, "A", "end", "small"), text(72, 44, "B", style="small"),
               text(60, top + 40, "2 loads,", style="small"), text(60, top + 56, "1 product", style="small")]
    work(170, sums, "02.2")
    loads, products, bottom = 2 * sums, sums * sums, top + sums * cell
    shapes += [text(164, top + 4.5 * cell, "A", "end", "small"), text(170 + (1.9 + sums) * cell, top - .7 * cell, "B", style="small"),
               text(170 + (sums + 1.4) * cell / 2, bottom + 20, f"{loads} loads, {products} products", style="small")]
    left, high, scale, thread = 124, bottom + 64, 1.2, 5  # thread: which row and column of threads is drawn
    shapes += [text(200, high - 12, f"a thread's sums in the tile, {m} × {n}"), box("edge", left, high, n * scale, m * scale)]
    shapes.extend(box("used", left + (thread + i % sums * side) * scale, high + (thread + i // sums * side) * scale, 4, 4)
                  for i in range(sums * sums))
    shapes.append(text(200, high + m * scale + 20, f"thread ({thread}, {thread}): every {side}th row and column", style="small"))
    alt = f"For one k: 02.1 loads two elements for one product, 02.2 loads {sums} of A and {sums} of B for {products} products"
    return alt, picture(round(high + m * scale + 30), "A tile in registers", shapes)


def block_to_fragment(sources):
    m, n, k = sources.tile_shape("02_tiled/gemm.cuh")
    groups = m // 64
    shapes = [text(110, 18, "A, B and C: a block"), text(110, 35, f"has {m} × {n} of C"), text(322, 18, "its tile:"),
              text(322, 35, f"{groups} warpgroups")]
    # A below left, B above right, C below right; a strip of both, and in it the tiles of one step.
    shapes += [box("edge", 30, 142, 64, 90), box("one", 30, 164, 64, 24), box("used", 54, 164, 12, 24), text(62, 248, "A", style="small"),
               box("edge", 104, 48, 96, 84), box("one", 140, 48, 24, 84), box("used", 140, 80, 24, 12), text(212, 92, "B", style="small"),
               box("edge", 104, 142, 96, 90), box("other", 140, 164, 24, 24), text(152, 248, "C", style="small"),
               text(110, 268, f"filled: tiles of one step, k = {k}", style="small")]
    left, top, side = 280, 100, 84
    for group in range(groups):
        shapes.append(box("other" if group == 0 else "one", left, top + side / groups * group, side, side / groups))
        shapes.append(text(left + side / 2, top + side / groups * (group + .5) + 4, "64 rows", style="small"))
    shapes += [line(164, 164, left, top), line(164, 188, left, top + side)]
    y = 306
    shapes += [text(80, y, "a warpgroup:"), text(80, y + 17, "4 warps of 16 rows"),
               text(276, y, "a box: two neighbouring columns;"), text(276, y + 17, "its number: the lane that has both")]
    for warp in range(4):
        shapes += [box("third" if warp == 0 else "other", 35, y + 66 + 32 * warp, 90, 32), text(80, y + 86 + 32 * warp, f"warp {warp}", style="small")]
    left, top = 208, y + 32
    shapes += [line(125, y + 66, left - 24, top), line(125, y + 98, left - 24, top + 15 * 16)]
    for row in range(16):
        shapes.append(text(left - 6, top + 12 + 15 * row, row, "end", "small"))
        for pair in range(4):
            shapes += [box("one" if row < 8 else "third", left + 32 * pair, top + 15 * row, 32, 15),
                       text(left + 16 + 32 * pair, top + 12 + 15 * row, row % 8 * 4 + pair, style="small")]
    shapes += [text(left + 136, top + 15 * row + 16 * i, words, "start", "code") for row, held in ((4, ("d[0],", "d[1]")), (12, ("d[2],", "d[3]")))
               for i, words in enumerate(held)]
    alt = (f"A block computes {m} × {n} elements, each of {groups} warpgroups 64 rows, each warp 16 rows; of 8 columns a lane has two "
           "neighbouring sums, and two eight rows below")
    return alt, picture(top + 15 * 16 + 8, "From the grid to a thread's fragment", shapes)


CHUNK_READ = 2  # the chunk of each row that the picture's ldmatrix reads


def swizzled_tile(sources):
    """Below each other: eight rows laid out plainly, and with the swizzle."""
    shapes, turns, left, wide, high = [], [], 62, 38, 21
    for top, title, place in ((0, "laid out plainly", lambda row, chunk: chunk), (250, "with the swizzle", sources.place)):
        read = [place(row, CHUNK_READ) for row in range(8)]
        turns.append(max(read.count(one) for one in read))
        groups = len(set(read))
        shapes.append(text(left, top + 18, f"{title}: {groups} group{'s' if groups > 1 else ''} of banks, {turns[-1]} turn{'s' if turns[-1] > 1 else ''}",
                           "start"))
        shapes.append(text(left - 8, top + 42, "bank", "end", "small"))
        for i in range(8):
            shapes += [text(left + wide * (i + .5), top + 42, 4 * i, style="small"),
                       text(left - 8, top + 65 + high * i, f"row {i}", "end", "small")]
        for row in range(8):
            for chunk in range(8):
                x = left + wide * place(row, chunk)
                shapes += [box("marked" if chunk == CHUNK_READ else "edge", x, top + 50 + high * row, wide, high),
                           text(x + wide / 2, top + 65 + high * row, chunk, style="small")]
    shapes += [text(200, 494 + 17 * i, words, style="small") for i, words in enumerate((
        "Above the boxes: the first of four banks. In a box:", f"which chunk of its row it is. One read takes chunk {CHUNK_READ} of eight rows."))]
    alt = (f"Chunk {CHUNK_READ} of eight rows: plainly all in the same four banks, {turns[0]} turns; with the swizzle in eight groups of "
           f"banks, {turns[1]} turn")
    return alt, picture(522, "A tile before and after the swizzle", shapes)


START = 0x4400  # of the worked example
FIELDS = (("swizzle", 62, 2), ("", 46, 16), ("SBO / 16", 32, 14), ("", 30, 2), ("LBO / 16", 16, 14), ("", 14, 2), ("start / 16", 0, 14))


def wgmma_descriptor(sources):
    """The fields, the values of A and of B, and below what the offsets lead to."""
    shapes, bit = [], 6.1
    for name, first, width in FIELDS:
        x = 4 + bit * (64 - first - width)
        shapes.append(box("one" if name else "edge", x, 26, bit * width, 26))
        if name:
            label, low = ("sw", 14) if width == 2 else (name, 0)
            shapes.append(text(x + bit * width / 2 + low, 70 if low else 44, label, style="small"))
            shapes.append(text(x + bit * width / 2 + low, 18, f"{first + width - 1}–{first}", style="small"))
    for i, name in enumerate("ab"):
        leading, stride, steps = sources.operand(name)
        fields = [[sources.descriptor(START + step, leading, stride) >> first & (1 << width) - 1
                   for field, first, width in FIELDS if field] for step in steps]
        swizzle, sbo, lbo, _ = fields[0]
        rows = ((f"{name.upper()} at {START:#x}", ""), ("sw", f"{swizzle}: 128 B"), ("SBO / 16", f"{stride} / 16 = {sbo}"),
                ("LBO / 16", f"{leading} / 16 = {lbo}" if name == "b" else f"{lbo} (ignored)"),
                ("start / 16, for each step of 16 k", ""), ("", " ".join(f"{field[3]:#x}" for field in fields)))
        for j, (words, number) in enumerate(rows):
            at, y = 4 + 204 * i, 96 + 19 * j
            shapes += [text(at, y, words, "start", "small")] * bool(words) + [text(at + 60 * bool(words), y, number, "start", "code")] * bool(number)
    _, a_stride, a_steps = sources.operand("a")
    b_leading, b_stride, b_steps = sources.operand("b")
    rows = sources.tile_shape("02_tiled/gemm.cuh")[2]

    def groups_of_rows(left, top, width):
        shapes.extend(box("edge", left, top + 18 * group, width, 18) for group in range(8))

    # A: 64 rows of a panel, eight to a group; a step of k is a quarter of every row.
    top = 260
    shapes.append(text(4, top - 24, "A, 64 rows of a panel: k runs along a row", "start"))
    groups_of_rows(20, top, 192)
    for i, step in enumerate(a_steps):
        if i == 1:
            shapes.append(box("marked", 20 + 48 * i, top, 48, 8 * 18))
        shapes.append(text(44 + 48 * i, top - 5, f"+{step}", style="small"))
    shapes += [text(222, top + 14, "8 rows of 128 bytes", "start", "small"), text(222, top + 32, f"SBO: {a_stride} bytes on", "start", "small"),
               text(4, top + 162, f"A step of 16 k is {a_steps[1]} bytes of each row. It never leaves the", "start", "small"),
               text(4, top + 178, "row of 128 bytes: an offset along k, LBO, has no use.", "start", "small")]
    # B: panels of 64 columns side by side; k runs down the rows.
    top = 488
    shapes.append(text(4, top - 12, "B, two panels of 64 columns: k runs down", "start"))
    for panel in range(2):
        groups_of_rows(64 + 140 * panel, top, 132)
        shapes.append(box("marked", 64 + 140 * panel, top + 36, 132, 36))
    for i, step in enumerate(b_steps):
        shapes.append(text(56, top + 14 + 36 * i, f"+{step}", "end", "small"))
    shapes += [text(130, top + 14, "8 rows of k", style="small"), text(130, top + 32, f"SBO: {b_stride} on", style="small"),
               text(270, top + 14, f"LBO: {b_leading} on", style="small"),
               text(4, top + 162, f"A step of 16 k is two groups of rows: {b_steps[1]} bytes.", "start", "small"),
               text(4, top + 178, f"LBO leads to the next 64 columns, {rows} rows on.", "start", "small")]
    alt = (f"The fields of a descriptor. A: SBO {a_stride}, LBO ignored, steps of {a_steps[1]} bytes along a row. B: SBO {b_stride}, LBO "
           f"{b_leading} to the next 64 columns, steps of {b_steps[1]} bytes down the rows")
    return alt, picture(top + 188, "The descriptor of wgmma, of a tile of A and of one of B", shapes)


# --- Lesson 05 --------------------------------------------------------------------------------------------------------

ASKING = .2  # how long the loader takes to ask for the loads of a slot, in steps of compute


def slots_of_05(sources):
    return int(sources.found("05_ws_double_buffer/lesson.cu", r'\{"slots", "[^"]*", \{"(\d+)"'))


def loads_and_products(slots, loads):
    """[(asked, full, begin, end)] of each step, in steps of compute: the loader waits for a free slot, compute for a full one.
    loads: how long that of each step takes."""
    times, asked, computed = [], 0, 0
    for step, load in enumerate(loads):
        asked = max(asked, times[step - slots][3] if step >= slots else 0)
        begin = max(asked + load, computed)
        computed = begin + 1
        times.append((asked, asked + load, begin, computed))
        asked += ASKING
    return times


TILE_ORDER, SIZE, MULTIPROCESSORS = "common/device/tile_order.cuh", 8192, 132


def grouped_tile(sources, index, tile_rows, tile_columns, group):
    """(row, column) of the tile with this index, by the expressions of the code."""
    def value_of(pattern, **values):
        return sources.evaluated(sources.found(TILE_ORDER, pattern), index=index, group=group, tile_columns=tile_columns, **values)

    first_row = value_of(r"first_row = ([^;]*);")
    in_group = value_of(r"in_group = ([^;]*);", first_row=first_row)
    rows = min(tile_rows - first_row, group)
    row, column = sources.found(TILE_ORDER, r"return \{([^,]*), ([^}]*)\};")
    return tuple(sources.evaluated(place, first_row=first_row, in_group=in_group, rows=rows) for place in (row, column))


def tile_order(sources):
    m, n, _ = sources.tile_shape("05_ws_double_buffer/gemm.cuh")
    tile_rows, tile_columns, side = SIZE // m, SIZE // n, 156
    high, wide = side / tile_rows, side / tile_columns
    shapes, told, top = [], [], 66
    for i, group in enumerate((1, sources.constant(TILE_ORDER, "kTileGroup"))):
        left = 34 + 200 * i
        wave = [grouped_tile(sources, index, tile_rows, tile_columns, group) for index in range(MULTIPROCESSORS)]
        rows, columns = {row for row, _ in wave}, {column for _, column in wave}
        kilobytes = (len(rows) * m + len(columns) * n) * 2 * 64 // 1024  # of 64 k, with two bytes an element
        shapes += [text(left + side / 2, 20, "row by row" if group == 1 else f"{group} rows together"),
                   box("other", left, top - 22, wide * len(columns), 12), text(left - 14, top - 11, "B"),
                   box("other", left - 20, top, 12, high * len(rows)), text(left - 14, top + high * len(rows) + 16, "A"),
                   box("edge", left, top, side, side)]
        shapes += [box("used", left + wide * column, top + high * row, wide, high) for row, column in wave]
        shapes += [text(left + side / 2, top + side + 22 + 18 * j, words) for j, words in enumerate((
            f"{len(rows)} rows of A's tiles,", f"{len(columns)} columns of B's:", f"{kilobytes} KB for a step of k"))]
        told.append(f"{len(rows)} rows and {len(columns)} columns")
    alt = (f"The first {MULTIPROCESSORS} tiles of C at {SIZE}³: row by row they need {told[0]} of tiles, {group} rows together "
           f"{told[1]}")
    return alt, svg(top + side + 70, f"The first {MULTIPROCESSORS} tiles, in two orders", shapes, STYLE)


# --- Recorded files ---------------------------------------------------------------------------------------------------


def short(tflops):
    return f"{tflops:.{0 if tflops >= 100 else 1 if tflops >= 1 else 2}f}"


def measured(request_line, words, results_folder):
    """(name, alternative text, SVG)"""
    values, only = parse_words(request_line, words, ("name", "file", "rows", "limits", "notes"))
    if not {"name", "file", "rows"} <= set(values):
        raise BadInput(f"{request_line}: needs name=, file= and rows=")
    path = newest(results_folder, values["file"])
    if path is None:
        raise BadInput(f"{request_line}: there is no {values['file']}")
    results = read_results(path)
    runs = [run for run in results["runs"] if run["settings"].get(values["rows"]) and meets(run, only)]
    limits = [float(limit) if limit else None for limit in values.get("limits", "," * (len(runs) - 1)).split(",")]
    if not runs or len(limits) != len(runs):
        raise BadInput(f"{request_line}: {len(limits)} limits for {len(runs)} runs")
    notes = values.get("notes", "," * (len(runs) - 1)).replace("_", " ").split(",")
    if len(notes) != len(runs):
        raise BadInput(f"{request_line}: {len(notes)} notes for {len(runs)} runs")
    most = max([run["tflops"] for run in runs] + [limit for limit in limits if limit])
    left, right = 84, 350
    heading = textwrap.wrap(f"TFLOP/s by {values['rows']}. {results['gpu']}, {dated(results)}.", 56)
    shapes = [text(8, 16 + 16 * i, words, "start", "small") for i, words in enumerate(heading)]
    y = 10 + 16 * len(heading)
    for run, limit, note in zip(runs, limits, notes):
        end = left + (right - left) * run["tflops"] / most
        shapes += [text(left - 10, y + 16, value(run, values["rows"]), "end"), box("one", left, y, end - left, 22)]
        if limit:
            mark = left + (right - left) * limit / most
            shapes.append(line(mark, y - 4, mark, y + 26, "limit"))
            end = mark if end < mark < end + 40 else end  # the number stands beside the bar, and not on the mark
        shapes.append(text(end + 8, y + 16, short(run["tflops"]), "start"))
        below = ", ".join(words for words in (f"predicted at most {limit:g}" if limit else "", note) if words)
        shapes += [text(left, y + 37, below, "start", "small")] * bool(below)
        y += 48 if below else 30
    alt = "TFLOP/s by " + values["rows"] + ": " + ", ".join(f"{value(run, values['rows'])} {short(run['tflops'])}" for run in runs)
    return values["name"], alt, picture(y, f"Measured by {values['rows']}", shapes)


def merged(intervals):
    """The union of intervals, in order."""
    result = []
    for begin, end in sorted(intervals):
        if result and begin <= result[-1][1]:
            result[-1][1] = max(result[-1][1], end)
        else:
            result.append([begin, end])
    return result


def cycles_in_flight(timeline, what):
    """When block 0 had copies, or products, in flight."""
    return merged([1000 * begin, 1000 * end] for lane, spans in spans_of_block(timeline).items()  # a cycle is shown as a ns
                  if lane.endswith(f"{what} in flight") for _, begin, end in spans)


def timelines(request_line, words, results_folder):
    """(name, alternative text, SVG)"""
    values = parse_words(request_line, words, ("name", "files"))[0]
    if set(values) != {"name", "files"}:
        raise BadInput(f"{request_line}: needs name= and files=")
    recorded = [json.loads(read_page(results_folder / "traces" / f"{name}.json")) for name in values["files"].split(",")]
    if any(timeline["metadata"]["unit"] != "cycles" for timeline in recorded):
        raise BadInput(f"{request_line}: recording slows a GPU down, and a ring more than one slot; needs timelines of the CPU device")
    lanes = [(timeline, [("one", "copies", cycles_in_flight(timeline, "copies")),
                         ("third", "products", cycles_in_flight(timeline, "products"))]) for timeline in recorded]
    longest = max(spans[-1][1] for _, both in lanes for _, _, spans in both)
    shapes, alts, left, right, y = [], [], 70, 384, 20
    for tick in range(0, int(longest) + 1, 4000):
        x = left + (right - left) * tick / longest
        shapes += [*(line(x, 28 + 92 * i, x, 90 + 92 * i) for i in range(len(lanes))),
                   text(x, 14 + 92 * len(lanes), tick, style="small")]
    for timeline, both in lanes:
        slots = int(dict(word.split("=") for word in timeline["metadata"]["settings"].split())["slots"])
        end = max(spans[-1][1] for _, _, spans in both)
        name = f"{slots} slot{'s' if slots > 1 else ''}"
        shapes.append(text(20, y, f"{name}: {len(both[1][2])} products in {end:.0f} cycles", "start"))
        for i, (style, lane, spans) in enumerate(both):
            shapes.append(text(left - 8, y + 27 + 28 * i, lane, "end", "small"))
            shapes += [box(style, left + (right - left) * first / longest, y + 11 + 28 * i, (right - left) * (last - first) / longest, 22)
                       for first, last in spans]
        alts.append(f"with {name} {end:.0f} cycles")
        y += 92
    facts = recorded[0]["metadata"]
    shapes += [text(8, y + 14 + 16 * i, words, "start", "small") for i, words in enumerate((
        "cycles of the CPU device's virtual clock;", f"a block at {facts['shape'].replace('x', '×')}; {dated(facts)}"))]
    return (values["name"], f"When copies and products of a block are in flight: {', '.join(alts)}",
            picture(y + 38, "One slot, and a ring", shapes))


DRAWN = {"thread_per_element": thread_per_element, "warp_to_sectors": warp_to_sectors, "shared_tile": shared_tile,
         "register_tile": register_tile,
         "block_to_fragment": block_to_fragment, "swizzled_tile": swizzled_tile, "wgmma_descriptor": wgmma_descriptor, "tile_order": tile_order}
FROM_FILES = {"measured": measured, "timelines": timelines}


def drawn(request_line, words, root):
    """(name, alternative text, SVG)"""
    name, *words = words or [""]
    if name in FROM_FILES:
        return FROM_FILES[name](request_line, words, root / "docs" / "results")
    if name not in DRAWN:
        raise BadInput(f"{request_line}: there is no picture '{name}'; there are {', '.join([*DRAWN, *FROM_FILES])}")
    if words:
        raise BadInput(f"{request_line}: '{words[0]}': this picture needs no words")
    return name, *DRAWN[name](Sources(root))
