"""The command line: stdout carries the payload, stderr what is said about it, the exit code the outcome."""
