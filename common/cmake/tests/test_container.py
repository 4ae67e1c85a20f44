#!/usr/bin/env python3
"""Holds the Dockerfile and .devcontainer together with what they build from, as far as that shows without Docker."""
import json
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")


class Container(unittest.TestCase):
    def test_its_only_step_is_setup(self):
        self.assertEqual(re.findall(r"^RUN (.*)$", DOCKERFILE, re.MULTILINE), ["common/setup.sh"])

    def test_it_copies_what_setup_reads_and_no_more(self):
        copied = {source for source, _ in re.findall(r"^COPY (\S+) (\S+)$", DOCKERFILE, re.MULTILINE)}
        setup = (ROOT / "common/setup.sh").read_text(encoding="utf-8")
        self.assertEqual(copied, {"common/setup.sh", *re.findall(r'"\$repository/([^"]+)"', setup)})
        for path, folder in re.findall(r"^COPY (\S+) (\S+)$", DOCKERFILE, re.MULTILINE):
            self.assertTrue((ROOT / path).is_file(), path)
            self.assertEqual(str(pathlib.Path(path).parent) + "/", folder)

    def test_the_codespace_is_built_from_it(self):
        folder = ROOT / ".devcontainer"
        build = json.loads((folder / "devcontainer.json").read_text(encoding="utf-8"))["build"]
        self.assertEqual((folder / build["dockerfile"]).resolve(), ROOT / "Dockerfile")
        self.assertEqual((folder / build["context"]).resolve(), ROOT)
        for argument in build["args"]:
            self.assertIn(f"\nARG {argument}=", DOCKERFILE)

    def test_the_codespace_climbs_by_the_readmes_first_command(self):
        container = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text(encoding="utf-8"))
        readme = (ROOT / "README.md").read_text(encoding="utf-8")
        self.assertEqual(container["postCreateCommand"], re.search(r"^common/setup\.sh && .*$", readme, re.MULTILINE)[0])


if __name__ == "__main__":
    unittest.main()
