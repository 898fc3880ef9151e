"""The script that a process of `work_processes` begins with: it is told where its packages are."""

import json
import sys

if __name__ == "__main__":
    sys.path[:], *_bounds = json.loads(sys.argv[1])
    from stele.service.process_worker import main

    main(*_bounds)
