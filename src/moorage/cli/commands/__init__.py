"""The commands as users see them: one module a command, with its arguments, options and help.

They import only what is needed to parse a command line. The work is in the module of the same name in
`moorage.cli`, which is imported when a command is invoked: help and wrong arguments need nothing of the
scheduler.
"""
