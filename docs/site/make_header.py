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
