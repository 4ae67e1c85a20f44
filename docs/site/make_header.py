#!/usr/bin/env python3
"""Writes the head of every page: Doxygen's own for its version, with the scripts that the style sheets bring.

    make_header.py DOXYGEN HEADER
"""
import subprocess
import sys
import tempfile
from pathlib import Path

SCRIPTS = """<link rel="icon" type="image/svg+xml" href="$relpath^favicon.svg"/>
<noscript><style>.needs-script { display: none !important; }</style></noscript>
<script type="text/javascript" src="$relpath^doxygen-awesome-darkmode-toggle.js"></script>
<script type="text/javascript" src="$relpath^doxygen-awesome-fragment-copy-button.js"></script>
<script type="text/javascript">
DoxygenAwesomeDarkModeToggle.init();
DoxygenAwesomeFragmentCopyButton.init();
addEventListener("load", () => {
  const SCROLL = ".contents :is(.scrolls, .diff, .fragment, table, tbody, .memproto, .lesson-code)";
  const mark = (box) => {
    const scrolls = /auto|scroll/.test(getComputedStyle(box).overflowX), hidden = box.scrollWidth - box.clientWidth;
    box.classList.toggle("more-left", scrolls && box.scrollLeft > 1);
    box.classList.toggle("more-right", scrolls && hidden - box.scrollLeft > 1);
  };
  const sizes = new ResizeObserver((changes) => changes.forEach((change) => mark(change.target)));
  for (const box of document.querySelectorAll(SCROLL)) {
    box.addEventListener("scroll", () => mark(box), { passive: true });
    sizes.observe(box);
  }
  const page = location.pathname.split("/").pop() || "index.html";
  $(() => $("#main-menu a").filter((_, link) => link.getAttribute("href") === page).attr("aria-current", "page")); // behind Doxygen's menu
});
</script>
</head>"""


def main():
    doxygen, header = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([doxygen, "-w", "html", "header.html", "footer.html", "style.css"], cwd=folder, check=True,
                       stdout=subprocess.DEVNULL)
        text = Path(folder, "header.html").read_text(encoding="utf-8")
    if text.count("</head>") != 1:
        sys.exit("make_header.py: error: Doxygen's header has no </head>")
    Path(header).write_text(text.replace("</head>", SCRIPTS), encoding="utf-8")


if __name__ == "__main__":
    main()
