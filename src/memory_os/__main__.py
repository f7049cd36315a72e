"""`python -m memory_os` is the `memory-os` command."""

from memory_os.cli import main

main()
