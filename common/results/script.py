"""What scripts share: how they end, a result file as text, and a file that is written whole."""
import json
import os
import pathlib
import sys
import tempfile

NEW_FILE_MODE = 0o666


def end_with(main, *bad_input):
    """As main() says, or, where the input is bad, with exit code 2 and one line. `bad_input`: the exceptions that say what is wrong in one line."""
    try:
        sys.exit(main())
    except bad_input as error:
        print(f"{pathlib.Path(sys.argv[0]).name}: error: {error}", file=sys.stderr)
        sys.exit(2)


def json_rows(document):
    """A result file as text: an object with a line for each field, and where a field is a list a line for each of its elements. So a
    run is a line, and the whole is one JSON document. The programs write the same: common/host/base/json.hpp."""
    fields = [f"{text_of(name)}:{rows_of(value)}" for name, value in document.items()]
    return "{\n" + ",\n".join(fields) + "\n}\n"


def rows_of(value):
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(map(text_of, value)) + "\n]"
    return text_of(value)


def text_of(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


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
    """Writes a regular file whole or not at all, and anything else (a pipe, a device, /dev/stdout) in place. Of a symbolic link the
    target is replaced; the link stays. The programs do the same: common/host/base/atomic_file.hpp. Ends the script with exit code 1 and the system's reason if that fails, as on a full disk."""
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
