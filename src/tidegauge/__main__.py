"""``python -m tidegauge`` is the command line."""

from tidegauge.cli.main import program

if __name__ == "__main__":
    program(prog_name="tidegauge")
