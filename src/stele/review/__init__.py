"""Reviews folders of schemas: against files, a git ref or a registry, and brings a registry to what a folder says.

Nothing here prints or ends a process: the commands of `stele.cli` do.
"""
