"""Writes a regular file whole or not at all, and anything else (a pipe, a device, /dev/stdout) in place.

Of a symbolic link the target is replaced; the link stays. The programs do the same: common/host/base/atomic_file.hpp.
"""
import os
import pathlib
import sys
import tempfile

NEW_FILE_MODE = 0o666


def can_be_rewritten(path):
    """Can a second version take the place of the first? Not in a pipe or a device, nor where stdout goes."""
    path = pathlib.Path(path)
    return not path.exists() or (path.is_file() and stream_into(path) is None)


def stream_into(path):
    """This script's own stdout or stderr, if that is the file."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if os.path.samestat(os.stat(path), os.fstat(stream.fileno())):
                return stream
        except (AttributeError, OSError, ValueError):
            pass  # closed, or replaced by a test
    return None


def write_whole(path, text):
    """Ends the script with exit code 1 and the system's reason if that fails, as on a full disk."""
    try:
        if can_be_rewritten(path):
            replace(pathlib.Path(os.path.realpath(path)), text)
        elif stream := stream_into(path):
            stream.write(text)
            stream.flush()
        else:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
    except OSError as error:
        sys.exit(f"{pathlib.Path(sys.argv[0]).name}: error: {path}: cannot be written: {error.strerror}")


def replace(path, text):
    mode = path.stat().st_mode if path.exists() else NEW_FILE_MODE & ~current_umask()
    temporary = tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, prefix=f"{path.name}.part-",
                                            delete=False)
    try:
        with temporary as file:
            file.write(text)
        os.chmod(temporary.name, mode & 0o7777)
        os.replace(temporary.name, path)
    except BaseException:
        os.unlink(temporary.name)
        raise


def current_umask():
    umask = os.umask(0)
    os.umask(umask)
    return umask
