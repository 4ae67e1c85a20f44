#!/usr/bin/env python3
"""Sends SIGINT to `07_streams` while it works: `test_interrupt.py PROGRAM`. Exit code 77: there is no GPU for it."""
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

EXIT_INTERRUPTED, EXIT_SKIPPED = 130, 77


def main(program):
    with tempfile.TemporaryDirectory() as folder:
        result_file = pathlib.Path(folder) / "results.json"
        command = [program, "--shape", "64x256x256", "--batches", "100000", "--json", str(result_file)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            first_line = process.stdout.readline()  # printed once Ctrl-C is caught
            if not first_line:
                error = process.communicate()[1]
                print(error)
                return EXIT_SKIPPED if "CUDA found none" in error else 1
            time.sleep(1)
            begin = time.monotonic()
            process.send_signal(signal.SIGINT)
            error = process.communicate(timeout=60)[1]
        seconds = time.monotonic() - begin
        print(f"exit code {process.returncode} after {seconds:.1f} s, stderr: {error}")
        assert process.returncode == EXIT_INTERRUPTED, process.returncode
        assert error.startswith("07_streams: interrupted") and error.count("\n") == 1, error
        assert not result_file.exists()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
