"""Pictures of an idea, drawn from numbers that a page names.

    <!-- picture: straddling_rows aligned=4096 columns=5000 -->
    <!-- picture: stream_k tiles=8 clusters=5 -->
    <!-- end -->

straddling_rows shows rows of a TMA box, 64 columns of bf16, over the lines of 128 bytes that L2 is asked for: of a matrix whose
rows begin where lines do, of one whose rows do not, and of the latter in a cluster of two blocks. stream_k shows how many clusters
work off some tiles: whole, and cut along K. They are written to docs/figures/NAME.svg, as SVG that follows the reader's light
or dark theme. Pages that ask for them lie one folder below the root.
"""
from climb_table import BadInput
from page_requests import parse_words

LINE, ROW = 128, 64 * 2  # bytes
ROWS = 8  # that are shown; rows begin at multiples of 16 bytes, so the ninth begins where the first does

STYLE = """
    text { font: 13px sans-serif; fill: #1f2328; }
    .small { font-size: 12px; }
    .line { stroke: #6e7781; stroke-dasharray: 4 3; }
    .one { fill: #ddebf7; stroke: #2f6fab; }
    .other { fill: #fdf1d6; stroke: #a87c1f; }
    .idle { fill: none; stroke: #6e7781; stroke-dasharray: 3 3; }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3; }
      .line { stroke: #9198a1; }
      .one { fill: #173a5e; stroke: #6cb0f0; }
      .other { fill: #4a3a12; stroke: #d9b25b; }
      .idle { stroke: #9198a1; }
    }"""


def svg(height, title, shapes, style=STYLE, width=760):
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
             'role="img" aria-labelledby="title">', f'  <title id="title">{title}</title>', f"  <style>{style}\n  </style>",
             *(f"  {shape}" for shape in shapes), "</svg>"]
    return "\n".join(lines) + "\n"


def text(x, y, words, anchor="middle", style=""):
    style = f' class="{style}"' if style else ""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}"{style}>{words}</text>'


def rectangle(style, x, y, width, height):
    return f'<rect class="{style}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="3"/>'


def first_byte(columns, row):
    """Of a row of the matrix, within its line."""
    return row * columns * 2 % LINE


def lines_touched(columns, row):
    return (first_byte(columns, row) + ROW - 1) // LINE + 1


def requests(columns, rows=range(ROWS)):
    return sum(lines_touched(columns, row) for row in rows)


def straddling_rows(aligned, columns):
    """Three panels of eight rows, side by side."""
    half = ROWS // 2
    panels = [(aligned, f"{aligned} columns", f"{ROWS} rows, {requests(aligned)} requests", ROWS),
              (columns, f"{columns} columns", f"{ROWS} rows, {requests(columns)} requests", ROWS),
              (columns, f"{columns} columns, cluster of two",
               f"{requests(columns, range(half))} of one block, {requests(columns, range(half, ROWS))} of the other", half)]
    shapes, pixels = [], 100 / LINE
    for row in range(ROWS):
        shapes.append(text(52, 69 + 24 * row, f"row {row}", "end", "small"))
    for panel, (width, title, summary, others) in enumerate(panels):
        left = 64 + 236 * panel
        shapes.append(text(left + 100, 20, title))
        for row in range(ROWS):
            style = "one" if row < others else "other"
            shapes += [rectangle(style, left + pixels * first_byte(width, row), 56 + 24 * row, pixels * ROW, 17),
                       text(left + 212, 69 + 24 * row, lines_touched(width, row), style="small")]
        for line in range(3):
            shapes.append(f'<line class="line" x1="{left + 100 * line}" y1="46" x2="{left + 100 * line}" y2="254"/>')
        shapes += [text(left + 50, 42, f"{LINE} bytes", style="small"), text(left + 150, 42, f"{LINE} bytes", style="small"),
                   text(left + 100, 276, summary)]
    shapes.append(text(400, 302, "Both blocks of the cluster receive all rows: each asks for half of them.", style="small"))
    alt = (f"Rows of {ROW} bytes over cache lines: with {aligned} columns eight rows take {requests(aligned)} requests, with "
           f"{columns} columns {requests(columns)}; in a cluster of two each block makes half of them")
    return alt, svg(314, "Rows that straddle cache lines", shapes)


def cluster_shares(tiles, clusters):
    """For each cluster the parts (tile, begin, end) of an equal share of the tiles, in tiles' times."""
    shares = []
    for cluster in range(clusters):
        begin, end, parts = cluster * tiles / clusters, (cluster + 1) * tiles / clusters, []
        for tile in range(int(begin), tiles):
            if tile < end - 1e-9:
                parts.append((tile, max(begin, tile), min(end, tile + 1)))
        shares.append(parts)
    return shares


def stream_k(tiles, clusters):
    """Two panels of as many rows as clusters, side by side."""
    waves = -(-tiles // clusters)
    pixels = 250 / waves  # of a tile
    bottom = 40 + 30 * clusters
    shapes = [text(235, 20, "whole tiles"), text(585, 20, "the same tiles, cut along K")]

    def part(left, row, tile, begin, end):
        style = "other" if tile % 2 else "one"
        shapes.extend([rectangle(style, left + pixels * begin, 32 + 30 * row, pixels * (end - begin), 24),
                       text(left + pixels * (begin + end) / 2, 48 + 30 * row, tile, style="small")])

    for cluster, parts in enumerate(cluster_shares(tiles, clusters)):
        shapes.append(text(98, 48 + 30 * cluster, f"cluster {cluster}", "end", "small"))
        for wave in range(waves):
            tile = wave * clusters + cluster
            if tile < tiles:
                part(110, cluster, tile, wave, wave + 1)
            else:
                shapes.append(rectangle("idle", 110 + pixels * wave, 32 + 30 * cluster, pixels, 24))
        for tile, begin, end in parts:
            part(460, cluster, tile, begin - parts[0][1], end - parts[0][1])
    for left in (110, 460):
        shapes.append(f'<line class="line" x1="{left + 250}" y1="26" x2="{left + 250}" y2="{bottom}"/>')
    shapes.append(text(110, bottom + 18, f"{waves} tiles' time", "start", "small"))
    shapes.append(text(460, bottom + 18, f"{tiles / clusters:g} tiles' time; parts are added up", "start", "small"))
    alt = (f"{clusters} clusters and {tiles} tiles: whole tiles take {waves} tiles' time, cut along K they take "
           f"{tiles / clusters:g}")
    return alt, svg(bottom + 30, "Tiles cut along K, so that all clusters have the same work", shapes)


DRAWN = {"straddling_rows": (straddling_rows, ("aligned", "columns")), "stream_k": (stream_k, ("tiles", "clusters"))}


def drawn(line, words):
    """(name, alternative text, SVG)"""
    name, *words = words or [""]
    if name not in DRAWN:
        raise BadInput(f"{line}: there is no picture '{name}'; there are {', '.join(DRAWN)}")
    draw, keys = DRAWN[name]
    values = parse_words(line, words, keys)[0]
    if set(values) != set(keys) or not all(value.isdigit() and int(value) > 0 for value in values.values()):
        raise BadInput(f"{line}: needs {' and '.join(key + '=NUMBER' for key in keys)}")
    return name, *draw(**{key: int(value) for key, value in values.items()})


def picture_text(line, words):
    name, alt, _ = drawn(line, words)
    return [f"![{alt}](../docs/figures/{name}.svg)"]


def idea_pictures(line, words, figures_folder):
    """{path: SVG}"""
    name, _, picture = drawn(line, words)
    return {figures_folder / f"{name}.svg": picture}
