"""The script that starts a process of `work_processes`. Its argument has the paths of the packages."""

import json
import sys

if __name__ == "__main__":
    sys.path[:], *_bounds = json.loads(sys.argv[1])
    from stele.service.process_worker import main

    main(*_bounds)
