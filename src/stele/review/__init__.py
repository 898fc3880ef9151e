"""Reviews folders of schemas against files, a git ref or a registry, and makes a registry match a folder.

Nothing here prints or ends a process: the commands of `stele.cli` do.
"""
