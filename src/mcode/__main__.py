"""`python -m mcode`: the same as the command `mcode`."""

from mcode.cli import main

if __name__ == "__main__":
    main()
