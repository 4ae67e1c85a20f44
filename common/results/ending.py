"""How scripts end: as main() says, or, where their input is bad, with exit code 2 and one line."""
import sys
from pathlib import Path


def end_with(main, *bad_input):
    """`bad_input`: the exceptions that say what is wrong in one line."""
    try:
        sys.exit(main())
    except bad_input as error:
        print(f"{Path(sys.argv[0]).name}: error: {error}", file=sys.stderr)
        sys.exit(2)
