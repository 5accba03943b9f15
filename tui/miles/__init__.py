"""All that is known about Miles' outside: flags, log lines, folders, metrics. Pure."""
