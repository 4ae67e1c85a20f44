#!/usr/bin/env python3
"""Tests of script.py: what a script writes to."""
import os
import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest

from script import can_be_rewritten, write_whole

FOLDER = pathlib.Path(__file__).resolve().parent


def script(path, **streams):
    """A script that writes to the path, by itself."""
    code = "import sys; from script import write_whole; print('before'); write_whole(sys.argv[1], 'text')"
    return subprocess.run([sys.executable, "-c", code, path], env={**os.environ, "PYTHONPATH": str(FOLDER)}, text=True,
                          stderr=subprocess.PIPE, check=False, timeout=600, **streams)


class WholeFile(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_a_pipe_is_written_to_and_stays_a_pipe(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        self.assertFalse(can_be_rewritten(pipe))
        write_whole(pipe, "through")
        self.assertEqual(os.read(reader, 100), b"through")
        self.assertTrue(pipe.is_fifo())
        self.assertEqual([path.name for path in self.folder.iterdir()], ["pipe"])

    def test_of_a_link_the_target_is_replaced_and_keeps_its_permissions(self):
        target, link = self.folder / "target", self.folder / "link"
        target.write_text("old", encoding="utf-8")
        target.chmod(0o640)
        link.symlink_to("target")
        write_whole(link, "new")
        self.assertTrue(link.is_symlink())
        self.assertEqual(target.read_text(encoding="utf-8"), "new")
        self.assertEqual(stat.S_IMODE(target.stat().st_mode), 0o640)

    def test_a_new_file_may_be_read_by_whom_the_umask_lets(self):
        before = os.umask(0o022)
        self.addCleanup(os.umask, before)
        write_whole(self.folder / "new", "text")
        self.assertEqual(stat.S_IMODE((self.folder / "new").stat().st_mode), 0o644)

    def test_devices_stay_and_stdout_gets_what_is_for_it(self):
        self.assertEqual(script("/dev/null", stdout=subprocess.PIPE).stdout, "before\n")
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/null").st_mode))
        self.assertEqual(script("/dev/stdout", stdout=subprocess.PIPE).stdout, "before\ntext")
        output = self.folder / "output"
        with output.open("w", encoding="utf-8") as file:
            script("/dev/stdout", stdout=file)
        self.assertEqual(output.read_text(encoding="utf-8"), "before\ntext")

    def test_a_full_disk_is_a_failure_with_its_reason(self):
        ran = script("/dev/full", stdout=subprocess.PIPE)
        self.assertEqual((ran.returncode, ran.stderr), (1, "-c: error: /dev/full: cannot be written: No space left on "
                                                           "device\n"))


if __name__ == "__main__":
    unittest.main()
