"""The command line: one small file a command; data on standard output, talk on standard error.

Commands only parse, call and print. What they print of a run is for the operator; what readers may
see is the public folder. Everything heavy is imported inside the command that needs it.
"""
