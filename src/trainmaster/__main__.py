"""`python -m trainmaster`: the command, where the folder into which it was installed is not on the PATH."""

from trainmaster.cli.entry import main

if __name__ == "__main__":
    main()
