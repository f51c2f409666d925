"""`python -m callboard`."""

import sys

from callboard.service.command_line import main

if __name__ == "__main__":
    sys.exit(main())
